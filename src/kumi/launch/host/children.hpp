#pragma once

#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/launch/host/guardian.hpp"
#include "kumi/launch/host/process.hpp"

#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

/// The processes that this one has started, each in a group of its own. Neither they nor what they started outlives it.
class Children final {
public:
    /// Before anything is started.
    static Result<Children> open();

    Children(Children&&) noexcept = default;
    Children& operator=(Children&&) = delete;
    ~Children();

    Result<pid_t> start(const ProcessOptions& options);

    /// To its whole group, if it has not ended.
    void signal(pid_t pid, int number) const noexcept;

    /// Takes away those that have ended, with what is left of their groups, and tells of each: its status is as
    /// waitpid(2) has it.
    void reap(base::FunctionRef<void(pid_t, int)> on_end);

    /// Kills what they have started and left behind outside their groups: it has become our child.
    void kill_leftovers() noexcept;

private:
    explicit Children(Guardian guardian) : guardian_(std::move(guardian)) {}

    Guardian guardian_;
    std::vector<pid_t> running_;
};

} // namespace kumi::launch::host
