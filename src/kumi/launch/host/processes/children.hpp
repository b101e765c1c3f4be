#pragma once

#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/launch/host/processes/guardian.hpp"
#include "kumi/launch/host/processes/process.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

/// The variable with a mark that is different for each Children. It is in the environment of all processes that a
/// Children starts, and so in that of the processes which those start.
inline constexpr const char* mark_variable = "KUMI_STARTER";

/// Makes this process the parent of processes whose own parent ends, and lets it learn how its children end. Call it
/// once, before the first child is started.
void adopt_orphans() noexcept;

/// Takes away all children of this process that have ended. Tells of each before, while its number is still nobody
/// else's; its status is as waitpid(2) has it. For the owner of the process, on SIGCHLD.
void reap(base::FunctionRef<void(pid_t, int)> on_end);

/// Which orphans, that is processes that have left their group and whose parent has ended, belong to a Children.
enum class Orphans {
    ours,   // all: this process has no other children
    marked, // those with its mark; one that has left its group and cleared its environment is not found
};

/// Processes that this one has started, each in a group of its own. Neither they nor what they started outlives this
/// process, even where it is killed:
/// - the kernel kills the processes themselves (parent-death signal) and their groups (Process::leash);
/// - the guardian kills what has left its group, by the mark in its environment. It is replaced when it is killed. So
///   only what left its group survives, and only where guardian and starter are killed within a moment.
class Children final {
public:
    /// Before anything is started.
    static Result<Children> open(Orphans orphans = Orphans::ours);

    Children(Children&&) noexcept = default;
    Children& operator=(Children&&) = delete;
    ~Children();

    Result<pid_t> start(ProcessOptions options);

    /// To its whole group, if it has not ended.
    void signal(pid_t pid, int number) const noexcept;

    /// A child of this process has ended and is not taken away yet. If it is one of these, kills what is left of its
    /// group and answers true. Replaces the guardian, if that is the one that has ended.
    bool on_end(pid_t pid);

    /// Takes away all children of this process that have ended, and tells of those that are among these. For a process
    /// that has no other Children.
    void reap(base::FunctionRef<void(pid_t, int)> on_end);

    /// Kills what those that have ended have started and left behind outside their groups: it has become a child of
    /// this process.
    void kill_leftovers() noexcept;

    /// A folder for files that they leave, in memory where the system has that; made by the first call. It is removed
    /// with all in it after the last of them has ended; by the guardian, where this process is killed.
    Result<std::string> own_folder();

    pid_t guardian() const noexcept { return guardian_.pid(); }

private:
    Children(std::string mark, std::string folder, Guardian guardian, Orphans orphans)
        : mark_(std::move(mark)), folder_(std::move(folder)), guardian_(std::move(guardian)), orphans_(orphans) {}

    std::vector<pid_t> groups() const;
    bool is_running(pid_t pid) const noexcept;

    std::string mark_;   // the variable by which the guardian knows them
    std::string folder_; // a path, whether it exists or not
    Guardian guardian_;
    Orphans orphans_;
    std::vector<Process> running_;
};

} // namespace kumi::launch::host
