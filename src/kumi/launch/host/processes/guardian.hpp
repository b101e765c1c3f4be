#pragma once

#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

/// A small process that outlives `kumi run` for a moment if that is killed. It kills the nodes' process groups, and
/// what left its group but still carries the job's mark: a node may have children of its own, which no parent-death
/// signal reaches.
class Guardian {
public:
    /// Starts it. `mark` is a variable, "NAME=value", that only processes of this job have in their environment.
    static Result<Guardian> start(std::string mark);

    Guardian(Guardian&&) noexcept = default;
    Guardian& operator=(Guardian&&) = delete;
    /// Dismisses it: nothing is left to guard.
    ~Guardian();

    /// From now on this process group is killed if we are.
    void guard(pid_t group) noexcept { tell(group); }
    /// This group is gone: its number may soon be somebody else's.
    void forget(pid_t group) noexcept { tell(-group); }

    /// Starts another one in the place of one that was killed; `groups` are what it has to guard. Does without where no
    /// process can be had.
    void replace(const std::vector<pid_t>& groups) noexcept;

    pid_t pid() const noexcept { return pid_; }

private:
    explicit Guardian(std::string mark) : mark_(std::move(mark)) {}

    Result<void> fork_one();
    void tell(pid_t word) noexcept;

    std::string mark_;
    base::Descriptor line_;
    pid_t pid_ = -1;
};

} // namespace kumi::launch::host
