#pragma once

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

/// A small process that outlives its starter for a moment if that is killed. It then kills the nodes' process groups,
/// and processes that have left their group but still carry the mark: a node may have children of its own, which no
/// parent-death signal reaches. At last it removes the folder with their files.
class Guardian {
public:
    /// Starts a guardian. `mark` is a variable, "NAME=value", that only processes of this job have in their
    /// environment. `folder`, if it exists then, is removed when the processes have been killed.
    static Result<Guardian> start(std::string mark, std::string folder = {});

    Guardian(Guardian&&) noexcept = default;
    Guardian& operator=(Guardian&&) = delete;
    /// Dismisses the guardian: nothing is left to guard.
    ~Guardian();

    /// From now on this process group is killed if this process is.
    void guard(pid_t group) noexcept { tell(group); }
    /// This group is gone: its number may soon be somebody else's.
    void forget(pid_t group) noexcept { tell(-group); }

    /// Starts another guardian in the place of one that was killed; it guards `groups`. Where the system gives no
    /// process, there is no guardian from now on.
    void replace(const std::vector<pid_t>& groups) noexcept;

    pid_t pid() const noexcept { return pid_; }

private:
    Guardian(std::string mark, std::string folder) : mark_(std::move(mark)), folder_(std::move(folder)) {}

    Result<void> fork_one();
    void tell(pid_t word) noexcept;

    std::string mark_;
    std::string folder_;
    base::Descriptor line_;
    pid_t pid_ = -1;
};

} // namespace kumi::launch::host
