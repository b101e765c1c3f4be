#pragma once

#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/launch/host/guardian.hpp"
#include "kumi/launch/host/process.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

/// Names their starter in the environment of all that it starts, and of what that starts.
inline constexpr const char* mark_variable = "KUMI_STARTER";

/// The processes that this one has started, each in a group of its own. Neither they nor what they started outlives it,
/// even where it is killed:
/// - the kernel kills the processes themselves (parent-death signal) and their groups (Process::leash);
/// - the guardian kills what has left its group, by the mark in its environment. It is replaced when it is killed. So
///   only what left its group survives, and only where guardian and starter are killed within a moment.
class Children final {
public:
    /// Before anything is started.
    static Result<Children> open();

    Children(Children&&) noexcept = default;
    Children& operator=(Children&&) = delete;
    ~Children();

    Result<pid_t> start(ProcessOptions options);

    /// To its whole group, if it has not ended.
    void signal(pid_t pid, int number) const noexcept;

    /// Takes away those that have ended, with what is left of their groups, and tells of each: its status is as
    /// waitpid(2) has it.
    void reap(base::FunctionRef<void(pid_t, int)> on_end);

    /// Kills what they have started and left behind outside their groups: it has become our child.
    void kill_leftovers() noexcept;

    pid_t guardian() const noexcept { return guardian_.pid(); }

private:
    Children(std::string mark, Guardian guardian) : mark_(std::move(mark)), guardian_(std::move(guardian)) {}

    std::vector<pid_t> groups() const;

    std::string mark_; // the variable by which the guardian knows them
    Guardian guardian_;
    std::vector<Process> running_;
};

} // namespace kumi::launch::host
