#include "kumi/launch/host/children.hpp"

#include "kumi/base/keys.hpp"
#include "kumi/launch/host/environment.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch::host {

Result<Children> Children::open() {
    ::signal(SIGCHLD, SIG_DFL);         // ignored, as some starters leave it, it would hide how they end
    ::prctl(PR_SET_CHILD_SUBREAPER, 1); // what they leave behind becomes ours to end
    std::array<std::uint64_t, 2> number;
    if (auto filled = base::fill_with_random(std::as_writable_bytes(std::span(number)), "marking processes"); !filled)
        return filled.error();
    std::string mark = fmt::format("{}={:016x}{:016x}", mark_variable, number[0], number[1]);
    auto guardian = Guardian::start(mark);
    if (!guardian) return guardian.error();
    return Children(std::move(mark), *std::move(guardian));
}

Children::~Children() {
    for (const Process& process : running_) ::kill(-process.pid, SIGKILL);
    if (!running_.empty()) kill_leftovers();
}

Result<pid_t> Children::start(ProcessOptions options) {
    options.environment = with(std::move(options.environment), {mark_});
    auto process = start_process(options);
    if (!process) return process.error();
    const pid_t pid = process->pid;
    running_.push_back(*std::move(process));
    guardian_.guard(pid);
    return pid;
}

void Children::signal(pid_t pid, int number) const noexcept {
    const auto is_it = [&](const Process& process) { return process.pid == pid; };
    if (std::any_of(running_.begin(), running_.end(), is_it)) ::kill(-pid, number);
}

std::vector<pid_t> Children::groups() const {
    std::vector<pid_t> all;
    for (const Process& process : running_) all.push_back(process.pid);
    return all;
}

void Children::reap(base::FunctionRef<void(pid_t, int)> on_end) {
    while (true) {
        siginfo_t info{};
        // Looked at first and taken away later: until then its number is nobody else's.
        if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        const pid_t pid = info.si_pid;
        // Or the guardian, or an orphan.
        const bool ours = std::erase_if(running_, [&](const Process& process) { return process.pid == pid; }) != 0;
        if (ours) {
            ::kill(-pid, SIGKILL); // what it leaves behind
            guardian_.forget(pid);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        if (pid == guardian_.pid()) guardian_.replace(groups());
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
