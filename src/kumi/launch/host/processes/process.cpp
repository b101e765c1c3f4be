#include "kumi/launch/host/processes/process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

constexpr int descriptors_max = 8;

Result<std::string> check_program(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return error("{}: no such program", path);
        return system_error(errno, path);
    }
    if (S_ISDIR(status.st_mode)) return error("{}: is a folder, not a program", path);
    if (::access(path.c_str(), X_OK) != 0)
        return error("{}: not executable; chmod +x it, or name its interpreter", path);
    return path;
}

/// From now on the kernel sends SIGKILL to the calling process's group when the other end of the pipe `leash` is
/// closed: that is SIGIO with another number. It does so while anybody has this end open, so the program inherits it,
/// with a number from `number` on. Where a kernel cannot do this the guardian still does.
void put_on_leash(int leash, int number) {
    const f_owner_ex group{F_OWNER_PGRP, ::getpgrp()};
    if (::fcntl(leash, F_SETOWN_EX, &group) != 0 || ::fcntl(leash, F_SETSIG, SIGKILL) != 0) return;
    if (::fcntl(leash, F_SETFL, O_ASYNC) == 0) ::fcntl(leash, F_DUPFD, number);
}

/// What the child does between fork and exec. Only calls that are safe there; answers the errno of what failed.
int become_program(const ProcessOptions& options, char* const* arguments, char* const* environment, pid_t parent,
                   int leash) {
    ::setpgid(0, 0);
    if (options.is_leashed) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1); // it died before it could be watched
    if (options.binding) ::sched_setaffinity(0, sizeof *options.binding, &*options.binding);
    int lifted[descriptors_max];
    const int count = static_cast<int>(options.descriptors.size());
    // Out of the way first: a source may have the number of another's target.
    for (int i = 0; i < count; ++i)
        if ((lifted[i] = ::fcntl(options.descriptors[static_cast<std::size_t>(i)], F_DUPFD_CLOEXEC, 10)) < 0)
            return errno;
    if ((leash = ::fcntl(leash, F_DUPFD_CLOEXEC, 10)) < 0) return errno;
    for (int i = 0; i < count; ++i)
        if (::dup2(lifted[i], i) < 0) return errno;
    if (options.is_leashed) put_on_leash(leash, descriptors_max);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGPIPE, &standard, nullptr);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(options.program.c_str(), arguments, environment);
    return errno;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

} // namespace

Result<std::string> find_program(const std::string& name) {
    if (name.empty()) return error("the program's name is empty");
    if (name.find('/') != std::string::npos) return check_program(name);
    const char* path = std::getenv("PATH");
    const std::string folders =
        path == nullptr ? "" : fmt::format("{}:", path); // each ends at a colon, the last one, too
    for (std::string_view left = folders; !left.empty();) {
        const std::size_t colon = left.find(':');
        const std::string_view folder = colon == 0 ? "." : left.substr(0, colon); // as shells take an empty one
        const std::string candidate = fmt::format("{}/{}", folder, name);
        if (check_program(candidate)) return candidate;
        left.remove_prefix(colon + 1);
    }
    if (::access(name.c_str(), F_OK) == 0)
        return error("{}: no such program in PATH; for the one here write ./{}", name, name);
    return error("{}: no such program in PATH", name);
}

Result<Process> start_process(const ProcessOptions& options) {
    KUMI_ASSERT(options.descriptors.size() <= descriptors_max);
    std::vector<std::string> argument_texts{options.program};
    argument_texts.insert(argument_texts.end(), options.arguments.begin(), options.arguments.end());
    std::vector<std::string> environment_texts = options.environment;
    const std::vector<char*> arguments = pointers_to(argument_texts);
    const std::vector<char*> environment = pointers_to(environment_texts);

    int failure_ends[2], leash_ends[2];
    if (::pipe2(failure_ends, O_CLOEXEC) != 0)
        return system_error(errno, fmt::format("starting {} (pipe)", options.program));
    base::Descriptor failure_in(failure_ends[0]), failure_out(failure_ends[1]);
    if (::pipe2(leash_ends, O_CLOEXEC) != 0)
        return system_error(errno, fmt::format("starting {} (pipe)", options.program));
    base::Descriptor leash_theirs(leash_ends[0]), leash(leash_ends[1]);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return system_error(errno, fmt::format("starting {} (fork)", options.program));
    if (pid == 0) {
        const int failure =
            become_program(options, arguments.data(), environment.data(), parent, leash_theirs.get());
        [[maybe_unused]] const auto written = ::write(failure_out.get(), &failure, sizeof failure);
        ::_exit(127);
    }
    ::setpgid(pid, pid); // as the child does, whichever comes first
    failure_out.reset();
    int failure = 0;
    while (true) { // ends when exec has closed the other end, or failed
        const ssize_t got = ::read(failure_in.get(), &failure, sizeof failure);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) return Process{pid, std::move(leash)};
        if (failure == ENOEXEC) return error("{}: not a program for this machine (no #! line?)", options.program);
        if (failure == ENOENT)
            return error("{}: the interpreter that it names (#! line) does not exist", options.program);
        return system_error(failure, fmt::format("starting {}", options.program));
    }
}

} // namespace kumi::launch::host
