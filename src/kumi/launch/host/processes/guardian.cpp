#include "kumi/launch/host/processes/guardian.hpp"

#include "kumi/launch/host/processes/folder.hpp"
#include "kumi/launch/host/processes/marks.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

using namespace std::chrono_literals;

/// Holds nobody's terminal, pipe or leash open: only `line` stays.
void close_all_but(int line) {
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard < 3; ++standard) ::dup2(nowhere, standard);
    for (const int number : numbers_in("/proc/self/fd"))
        if (number > 2 && number != line) ::close(number);
}

/// Kills all that is marked, until nothing is: a process may have started another while it was looked for.
void kill_marked(std::string_view mark) {
    for (int round = 0; round < 100; ++round, std::this_thread::sleep_for(10ms)) {
        bool any = false;
        for (const pid_t pid : numbers_in("/proc"))
            if (is_marked(pid, mark)) any = true, ::kill(pid, SIGKILL);
        if (!any) return;
    }
}

/// Reads process groups until the line breaks. A negative number forgets a group; zero is the dismissal.
[[noreturn]] void stand_guard(int line, std::string_view mark, const std::string& folder) {
    ::setsid(); // the terminal's signals are not for the guardian
    ::prctl(PR_SET_NAME, "kumi-guardian");
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    close_all_but(line);
    std::vector<pid_t> groups;
    pid_t word = 0;
    while (true) {
        const ssize_t got = ::read(line, &word, sizeof word);
        if (got < 0 && errno == EINTR) continue;
        if (got != static_cast<ssize_t>(sizeof word)) break;
        if (word == 0) ::_exit(0);
        if (word > 0) groups.push_back(word);
        else std::erase(groups, -word);
    }
    for (const pid_t guarded : groups) ::kill(-guarded, SIGKILL);
    kill_marked(mark);
    if (!folder.empty()) remove_folder(folder);
    ::_exit(0);
}

} // namespace

Result<Guardian> Guardian::start(std::string mark, std::string folder) {
    Guardian guardian(std::move(mark), std::move(folder));
    if (auto forked = guardian.fork_one(); !forked) return forked.error();
    return guardian;
}

Result<void> Guardian::fork_one() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return system_error(errno, "starting the guardian (socketpair)");
    base::Descriptor theirs(ends[0]);
    base::Descriptor ours(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return system_error(errno, "starting the guardian (fork)");
    if (pid == 0) stand_guard(theirs.get(), mark_, folder_);
    line_ = std::move(ours);
    pid_ = pid;
    return {};
}

void Guardian::replace(const std::vector<pid_t>& groups) noexcept {
    line_.reset();
    pid_ = -1;
    if (!fork_one()) return;
    for (const pid_t group : groups) guard(group);
}

Guardian::~Guardian() {
    if (!line_) return;
    tell(0);
    line_.reset();
    ::waitpid(pid_, nullptr, 0);
}

void Guardian::tell(pid_t word) noexcept {
    // A few bytes, to a process that only reads: this does not block. One that was killed is replaced when its end is
    // seen.
    [[maybe_unused]] const auto sent = ::send(line_.get(), &word, sizeof word, MSG_NOSIGNAL);
}

} // namespace kumi::launch::host
