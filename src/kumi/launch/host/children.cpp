#include "kumi/launch/host/children.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch::host {

Result<Children> Children::open() {
    ::signal(SIGCHLD, SIG_DFL);         // ignored, as some starters leave it, it would hide how they end
    ::prctl(PR_SET_CHILD_SUBREAPER, 1); // what they leave behind becomes ours to end
    auto guardian = Guardian::start();
    if (!guardian) return guardian.error();
    return Children(*std::move(guardian));
}

Children::~Children() {
    for (const pid_t pid : running_) ::kill(-pid, SIGKILL);
    if (!running_.empty()) kill_leftovers();
}

Result<pid_t> Children::start(const ProcessOptions& options) {
    auto pid = start_process(options);
    if (!pid) return pid;
    running_.push_back(*pid);
    guardian_.guard(*pid);
    return pid;
}

void Children::signal(pid_t pid, int number) const noexcept {
    if (std::find(running_.begin(), running_.end(), pid) != running_.end()) ::kill(-pid, number);
}

void Children::reap(base::FunctionRef<void(pid_t, int)> on_end) {
    while (true) {
        siginfo_t info{};
        // Looked at first and taken away later: until then its number is nobody else's.
        if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        const pid_t pid = info.si_pid;
        const bool ours = std::erase(running_, pid) != 0; // or an orphan
        if (ours) {
            ::kill(-pid, SIGKILL); // what it leaves behind
            guardian_.forget(pid);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        if (ours) on_end(pid, status);
    }
}

void Children::kill_leftovers() noexcept {
    for (int round = 0; round < 100; ++round) {
        std::ifstream children(fmt::format("/proc/self/task/{}/children", ::gettid()));
        bool any = false;
        for (pid_t pid = 0; children >> pid;) {
            if (pid == guardian_.pid()) continue;
            any = true;
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
        if (!any) return;
    }
}

} // namespace kumi::launch::host
