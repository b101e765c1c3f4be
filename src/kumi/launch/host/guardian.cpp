#include "kumi/launch/host/guardian.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace kumi::launch::host {
namespace {

/// Reads process groups until the line breaks. A negative number forgets a group; zero is the dismissal.
[[noreturn]] void stand_guard(int line) {
    ::setsid(); // the terminal's signals are not for us
    ::prctl(PR_SET_NAME, "kumi-guardian");
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard < 3; ++standard) ::dup2(nowhere, standard); // hold nobody's terminal or pipe
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
    ::_exit(0);
}

} // namespace

Result<Guardian> Guardian::start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "starting the guardian (pipe)");
    base::Descriptor read_end(ends[0]);
    base::Descriptor write_end(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return system_error(errno, "starting the guardian (fork)");
    if (pid == 0) {
        write_end.reset();
        stand_guard(read_end.get());
    }
    return Guardian(std::move(write_end), pid);
}

Guardian::~Guardian() {
    if (!line_) return;
    tell(0);
    line_.reset();
    ::waitpid(pid_, nullptr, 0);
}

void Guardian::tell(pid_t word) noexcept {
    // A few bytes into an empty pipe: written whole and at once.
    [[maybe_unused]] const auto written = ::write(line_.get(), &word, sizeof word);
}

} // namespace kumi::launch::host
