#include "kumi/launch/host/processes/children.hpp"

#include "kumi/base/system/keys.hpp"
#include "kumi/launch/host/processes/environment.hpp"
#include "kumi/launch/host/processes/folder.hpp"
#include "kumi/launch/host/processes/marks.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace kumi::launch::host {

namespace {

/// The status that waitpid(2) would answer.
int status_of(const siginfo_t& info) {
    if (info.si_code == CLD_EXITED) return W_EXITCODE(info.si_status, 0);
    return info.si_status | (info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

/// The children of all threads of this process.
std::vector<pid_t> own_children() {
    std::vector<pid_t> all;
    for (const int thread : numbers_in("/proc/self/task")) {
        std::ifstream children(fmt::format("/proc/self/task/{}/children", thread));
        for (pid_t pid = 0; children >> pid;) all.push_back(pid);
    }
    return all;
}

} // namespace

void adopt_orphans() noexcept {
    ::signal(SIGCHLD, SIG_DFL); // ignored, as some starters leave it, it would hide how they end
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void reap(base::FunctionRef<void(pid_t, int)> on_end) {
    while (true) {
        siginfo_t info{};
        if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        on_end(info.si_pid, status_of(info));
        ::waitpid(info.si_pid, nullptr, 0);
    }
}

Result<Children> Children::open(Orphans orphans) {
    std::array<std::uint64_t, 2> number;
    if (auto filled = base::fill_with_random(std::as_writable_bytes(std::span(number)), "marking processes"); !filled)
        return filled.error();
    const std::string name = fmt::format("{:016x}{:016x}", number[0], number[1]);
    std::string mark = fmt::format("{}={}", mark_variable, name), folder = folder_for(name);
    auto guardian = Guardian::start(mark, folder);
    if (!guardian) return guardian.error();
    return Children(std::move(mark), std::move(folder), *std::move(guardian), orphans);
}

Result<std::string> Children::own_folder() {
    if (::mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST) return folder_;
    return system_error(errno, fmt::format("making the folder {} for files of this job", folder_));
}

Children::~Children() {
    for (const Process& process : running_) ::kill(-process.pid, SIGKILL);
    for (const Process& process : running_) ::waitpid(process.pid, nullptr, 0);
    if (!std::exchange(running_, {}).empty()) kill_leftovers();
    if (!folder_.empty()) remove_folder(folder_);
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

bool Children::is_running(pid_t pid) const noexcept {
    return std::any_of(running_.begin(), running_.end(), [&](const Process& one) { return one.pid == pid; });
}

void Children::signal(pid_t pid, int number) const noexcept {
    if (is_running(pid)) ::kill(-pid, number);
}

std::vector<pid_t> Children::groups() const {
    std::vector<pid_t> all;
    for (const Process& process : running_) all.push_back(process.pid);
    return all;
}

bool Children::on_end(pid_t pid) {
    const bool ours = std::erase_if(running_, [&](const Process& process) { return process.pid == pid; }) != 0;
    if (ours) {
        ::kill(-pid, SIGKILL); // what it leaves behind
        guardian_.forget(pid);
    }
    if (pid == guardian_.pid()) guardian_.replace(groups());
    return ours;
}

void Children::reap(base::FunctionRef<void(pid_t, int)> on_end) {
    host::reap([&](pid_t pid, int status) {
        if (this->on_end(pid)) on_end(pid, status);
    });
}

void Children::kill_leftovers() noexcept {
    for (int round = 0; round < 100; ++round) {
        bool any = false;
        for (const pid_t pid : own_children()) {
            if (pid == guardian_.pid() || is_running(pid)) continue;
            if (orphans_ == Orphans::marked && !is_marked(pid, mark_)) continue;
            any = true;
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
        if (!any) return;
    }
}

} // namespace kumi::launch::host
