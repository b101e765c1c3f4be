#include "kumi/lab/keeper/session.hpp"

#include "kumi/lab/keeper/request.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr int no_program = 127;
constexpr int not_started = 126;

base::Descriptor open_process(pid_t pid) {
    return base::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(int process) {
    pollfd ended{process, POLLIN, 0};
    return ::poll(&ended, 1, 0) != 0;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

/// Runs on the host, in its namespaces. `parent` is the process that waits for this one.
[[noreturn]] void become_command(Request& request, const std::string& host, int parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (has_ended(parent)) ::_exit(not_reached); // before it could be watched
    ::setsid();
    for (int i = 0; i < 3; ++i) ::dup2(request.streams[static_cast<std::size_t>(i)].get(), i);
    if (::chdir(request.folder.c_str()) != 0 && ::chdir("/") != 0) ::_exit(not_started);
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::vector<std::string> words = command_of({request.words.begin() + 1, request.words.end()});
    auto arguments = pointers_to(words);
    auto variables = pointers_to(request.environment);
    environ = variables.data();
    ::execvp(arguments[0], arguments.data());
    const int reason = errno;
    const std::string said = fmt::format("kumi: {}: {}\n", host, system_error(reason, words[0]).text());
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, said.data(), said.size());
    ::_exit(reason == ENOENT ? no_program : not_started);
}

/// Passes on signals until the command has ended; answers its exit code, as a shell has it.
int watch(pid_t command, int connection) {
    const base::Descriptor process = open_process(command);
    while (true) {
        pollfd news[] = {{process.get(), POLLIN, 0}, {connection, POLLIN, 0}};
        if (::poll(news, 2, -1) < 0) continue;
        if (news[0].revents != 0) break;
        if (news[1].revents == 0) continue;
        unsigned char number = 0;
        const ssize_t got = ::recv(connection, &number, 1, 0);
        if (got < 0 && errno == EINTR) continue;
        ::kill(-command, got == 1 && number > 0 && number < NSIG ? number : SIGKILL);
        if (got != 1) break; // the kumi command that asked is gone
    }
    int status = 0;
    while (::waitpid(command, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Answer execute(const Lab& lab, const std::string& lab_name, Request& request, int connection) {
    if (request.words.size() < 2) return {not_reached, "exec: which host, and what shall it run?"};
    const std::string& name = request.words[0];
    const auto host = lab.plan.find_host(name);
    if (!host) return {not_reached, host.error().text()};
    // So that the kumi command finds this lab from inside, too.
    std::erase_if(request.environment, [](const std::string& variable) { return variable.starts_with("KUMI_LAB="); });
    request.environment.push_back("KUMI_LAB=" + lab_name);
    const base::Descriptor self = open_process(::getpid());
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {not_reached, system_error(errno, "starting a command (pipe)").text()};
    const base::Descriptor started(ends[0]);
    base::Descriptor starting(ends[1]);
    if (const auto done = enter(lab.hosts[*host]); !done)
        return {not_reached, fmt::format("host {}: {}", name, done.error().text())};
    const pid_t command = ::fork();
    if (command < 0)
        return {not_reached, system_error(errno, fmt::format("starting a command on {} (fork)", name)).text()};
    if (command == 0) become_command(request, name, self.get());
    request.streams.clear(); // so that readers of the command's output see its end
    starting.reset();
    char nothing = 0;
    // Ends when exec has closed the other end: a signal before that would not reach the command's process group.
    while (::read(started.get(), &nothing, 1) < 0 && errno == EINTR) {
    }
    return {watch(command, connection), ""};
}

std::vector<pid_t> pids_of(const Lab& lab) {
    std::vector<pid_t> pids;
    for (const Host& host : lab.hosts) pids.push_back(host.pid);
    return pids;
}

/// The keeper ends this process last: the connection breaks when nothing of the lab is left.
[[noreturn]] void end_lab() {
    ::kill(::getppid(), SIGTERM);
    while (true) ::pause();
}

} // namespace

std::vector<std::string> command_of(const std::vector<std::string>& words) {
    if (words.size() == 1 && words[0].find_first_of(" \t\n") != std::string::npos) return {"/bin/sh", "-c", words[0]};
    return words;
}

void serve(const Lab& lab, const std::string& lab_name, base::Descriptor connection, int changes) {
    auto request = receive_request(connection.get());
    if (!request) ::_exit(1); // not from a kumi command, or it is gone
    if (request->verb == "down") end_lab();
    Answer answer;
    if (request->verb == "exec") {
        answer = execute(lab, lab_name, *request, connection.get());
    } else if (request->verb == "status") {
        answer = {0, fmt::format("lab {}, keeper pid {}\n{}", lab_name, ::getppid(),
                                 describe(lab.plan, lab.conditions, pids_of(lab)))};
    } else {
        const auto change = change_network(lab, request->verb, request->words);
        // The keeper is told before the kumi command is answered: the next request may depend on the change.
        if (change && ::write(changes, &*change, sizeof *change) != sizeof *change) ::_exit(1);
        if (!change) answer = {1, change.error().text()};
    }
    send_answer(connection.get(), answer);
    ::_exit(0);
}

} // namespace kumi::lab
