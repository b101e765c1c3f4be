#include "kumi/lab/keeper/host.hpp"

#include "kumi/lab/network/carrier.hpp"
#include "kumi/lab/keeper/close_others.hpp"
#include "kumi/lab/network/command.hpp"
#include "kumi/lab/keeper/furnish.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr int namespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID;
constexpr std::chrono::seconds carrier_max{5};
constexpr std::string_view go = "go";
constexpr std::string_view ready = "ready";

/// False when the other side is gone, or nothing came in time.
bool receive(int line, std::string& text, Instant deadline) {
    std::array<char, 1024> buffer;
    pollfd readable{line, POLLIN, 0};
    int found = 0;
    do {
        found = ::poll(&readable, 1, milliseconds_until(deadline));
    } while (found < 0 && errno == EINTR);
    if (found <= 0) return false;
    const ssize_t got = ::recv(line, buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    text.assign(buffer.data(), static_cast<std::size_t>(got));
    return true;
}

bool send(int line, std::string_view text) {
    return ::send(line, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

Result<void> set_up_networks(const Plan& plan, const PlannedHost& host) {
    if (auto done = run_lines({"ip", "-batch", "-"}, host_links(host)); !done) return done;
    std::string limits;
    for (const Port& port : host.ports) {
        const PlannedNetwork& network = plan.networks[port.network];
        if (network.bits_per_second == 0) continue;
        limits += shaping(port.interface, network.bits_per_second, network.mtu);
        if (auto done = set_offloads(port.interface, false); !done) return done;
    }
    if (auto done = run_lines({"tc", "-batch", "-"}, limits); !done) return done;
    for (const Port& port : host.ports)
        if (auto done = wait_for_carrier(port.interface, now() + carrier_max); !done) return done;
    return {};
}

Result<void> become_host(const Plan& plan, const PlannedHost& host, const std::vector<std::string>& kept, int line) {
    if (::chdir("/") != 0) return system_error(errno, "going to /");
    if (::sethostname(host.name.data(), host.name.size()) != 0) return system_error(errno, "setting the host name");
    if (auto done = furnish(plan.names, kept); !done) return done;
    std::string said;
    if (!receive(line, said, never) || said != go) return error("the lab's keeper is gone");
    return set_up_networks(plan, host);
}

/// The first process of a host: the parent of those that lost theirs.
[[noreturn]] void stay(int keeper) {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &children, nullptr);
    const int ended = ::signalfd(-1, &children, SFD_CLOEXEC);
    while (true) {
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        pollfd news[] = {{ended, POLLIN, 0}, {keeper, POLLIN, 0}};
        ::poll(news, 2, -1);
        if (news[1].revents != 0) ::_exit(0);
        signalfd_siginfo ignored;
        if (news[0].revents != 0 && ::read(ended, &ignored, sizeof ignored) < 0) ::_exit(1);
    }
}

[[noreturn]] void run_host(const Plan& plan, const PlannedHost& host, const std::vector<std::string>& kept, int line,
                           int keeper) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // stay() sees to a keeper that has died already
    ::prctl(PR_SET_NAME, host.name.c_str());
    ::umask(022); // of the folders and files that make the host
    close_others(line, keeper);
    if (const auto done = become_host(plan, host, kept, line); !done) {
        send(line, done.error().text());
        ::_exit(1);
    }
    if (!send(line, ready)) ::_exit(1);
    ::close(line);
    stay(keeper);
}

} // namespace

Result<Host> Host::start(const Plan& plan, std::size_t index, const std::vector<std::string>& kept, int keeper) {
    const PlannedHost& planned = plan.hosts[index];
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return system_error(errno, fmt::format("starting the host {} (socketpair)", planned.name));
    base::Descriptor ours(ends[0]);
    base::Descriptor theirs(ends[1]);
    int process = -1;
    const auto pid =
        static_cast<pid_t>(::syscall(SYS_clone, namespaces | CLONE_PIDFD | SIGCHLD, nullptr, &process, nullptr, 0));
    if (pid < 0) return system_error(errno, fmt::format("starting the host {} (clone)", planned.name));
    if (pid == 0) run_host(plan, planned, kept, theirs.get(), keeper);
    return Host{pid, base::Descriptor(process), std::move(ours)};
}

void Host::tell_wired() const {
    send(line.get(), go); // one that has died says why in its answer
}

Result<void> Host::wait_until_ready(Instant deadline) const {
    std::string said;
    if (!receive(line.get(), said, deadline))
        return now() < deadline ? error("its first process has died") : error("it was not ready in time");
    return said == ready ? Result<void>() : Error(said);
}

Result<void> enter(const Host& host) {
    if (::setns(host.process.get(), namespaces) == 0) return {};
    return errno == ESRCH ? error("it has died") : system_error(errno, "entering it");
}

Result<void> enter_network(const Host& host) {
    if (::setns(host.process.get(), CLONE_NEWNET) == 0) return {};
    return errno == ESRCH ? error("it has died") : system_error(errno, "entering its network");
}

Result<void> set_offloads(const std::string& interface, bool on) {
    const char* state = on ? "on" : "off";
    return run_command({"ethtool", "-K", interface, "tso", state, "gso", state, "tx-udp-segmentation", state});
}

} // namespace kumi::lab
