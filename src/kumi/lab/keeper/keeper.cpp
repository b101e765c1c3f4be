#include "kumi/lab/keeper/keeper.hpp"

#include "kumi/lab/network/carrier.hpp"
#include "kumi/lab/keeper/close_others.hpp"
#include "kumi/lab/network/command.hpp"
#include "kumi/lab/keeper/control.hpp"
#include "kumi/lab/keeper/session.hpp"
#include "kumi/lab/network/user_namespace.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr std::chrono::seconds ready_max{20};
constexpr std::size_t sessions_max = 10'000;

/// Moves this process to a network of its own, the switch; without root, to a user namespace first.
Result<void> become_switch() {
    if (::unshare(CLONE_NEWNET) == 0) return {};
    if (errno != EPERM) return system_error(errno, "making a network namespace");
    if (auto done = make_user_namespace(UserInside::myself); !done) return done;
    if (::unshare(CLONE_NEWNET) != 0) return system_error(errno, "making a network namespace");
    return {};
}

/// A switch is no host: it neither talks on its networks nor shows bridged packets to iptables. Systems without these
/// settings do neither anyway.
void calm_switch() {
    for (const auto& [path, value] : {std::pair{"/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"},
                                      {"/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"},
                                      {"/proc/sys/net/bridge/bridge-nf-call-iptables", "0"},
                                      {"/proc/sys/net/bridge/bridge-nf-call-ip6tables", "0"},
                                      {"/proc/sys/net/bridge/bridge-nf-call-arptables", "0"}})
        std::ofstream(path) << value;
}

class Keeper {
public:
    Keeper(const KeeperOptions& options, StateFolder state)
        : options_(options), state_(std::move(state)), lab_{options.plan, {}, Conditions(options.plan)} {}

    /// Makes everything; then the lab is up.
    Result<void> build() {
        std::ofstream(state_.path() + "/pid") << ::getpid() << "\n";
        if (auto done = watch_signals(); !done) return done;
        if (auto done = become_switch(); !done) return done;
        calm_switch();
        if (auto done = start_hosts(); !done) return done;
        if (auto done = wire(); !done) return done;
        auto listener = listen_in(state_.path());
        if (!listener) return listener.error();
        listener_ = *std::move(listener);
        return {};
    }

    /// Serves requests until it is told to end.
    void run() {
        while (true) {
            pollfd news[] = {
                {signals_.get(), POLLIN, 0}, {changes_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
            if (::poll(news, 3, -1) < 0) continue;
            if (news[0].revents != 0 && !take_signal()) return;
            if (news[1].revents != 0) take_change(); // before the next request, which may ask for it
            else if (news[2].revents != 0) take_connection();
        }
    }

    /// Takes everything down.
    void end() noexcept {
        listener_.reset();
        for (const Host& host : lab_.hosts)
            if (host.pid > 0) ::kill(host.pid, SIGKILL);
        for (const Host& host : lab_.hosts)
            while (host.pid > 0 && ::waitpid(host.pid, nullptr, 0) < 0 && errno == EINTR) {
            }
        state_.remove();
    }

private:
    Result<void> watch_signals() {
        sigset_t wanted;
        sigemptyset(&wanted);
        for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&wanted, number);
        ::sigprocmask(SIG_SETMASK, &wanted, nullptr);
        ::signal(SIGPIPE, SIG_IGN);
        signals_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
        int ends[2];
        if (!signals_ || ::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "setting up the lab's keeper");
        changes_read_.reset(ends[0]);
        changes_write_.reset(ends[1]);
        return {};
    }

    Result<void> start_hosts() {
        const base::Descriptor self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
        if (!self) return system_error(errno, "setting up the lab's keeper (pidfd_open)");
        std::vector<std::string> kept = options_.kept;
        kept.push_back(state_.parent()); // so that the kumi command works on hosts, too
        for (std::size_t i = 0; i < options_.plan.hosts.size(); ++i) {
            auto host = Host::start(lab_.plan, i, kept, self.get());
            if (!host) return host.error();
            lab_.hosts.push_back(*std::move(host));
        }
        return {};
    }

    /// Puts all cables in and waits until they carry.
    Result<void> wire() {
        std::vector<pid_t> pids;
        for (const Host& host : lab_.hosts) pids.push_back(host.pid);
        if (auto done = run_lines({"ip", "-batch", "-"}, switch_links(lab_.plan, pids)); !done) return done;
        for (const Host& host : lab_.hosts) host.tell_wired();
        std::string limits;
        for (const PlannedHost& host : lab_.plan.hosts)
            for (const Port& port : host.ports) {
                const PlannedNetwork& network = lab_.plan.networks[port.network];
                if (network.bits_per_second > 0) limits += shaping(port.name, network.bits_per_second, network.mtu);
            }
        if (auto done = run_lines({"tc", "-batch", "-"}, limits); !done) return done;
        const Instant deadline = now() + ready_max;
        for (std::size_t i = 0; i < lab_.hosts.size(); ++i)
            if (auto done = lab_.hosts[i].wait_until_ready(deadline); !done)
                return error("host {}: {}", lab_.plan.hosts[i].name, done.error().text());
        for (const PlannedHost& host : lab_.plan.hosts)
            for (const Port& port : host.ports)
                if (auto done = wait_for_carrier(port.name, deadline); !done) return done;
        return {};
    }

    /// False: the lab is to end.
    bool take_signal() {
        signalfd_siginfo signal;
        if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return true;
        if (signal.ssi_signo != SIGCHLD) return false;
        pid_t ended = 0;
        while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
            const auto host =
                std::find_if(lab_.hosts.begin(), lab_.hosts.end(), [&](const Host& one) { return one.pid == ended; });
            if (host != lab_.hosts.end()) host->pid = 0; // a host that crashed; the others go on, as hosts do
            else --sessions_;
        }
        return true;
    }

    void take_change() {
        Change change;
        if (::read(changes_read_.get(), &change, sizeof change) == sizeof change) lab_.conditions.apply(change);
    }

    void take_connection() {
        base::Descriptor connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!connection || sessions_ >= sessions_max) return;
        const pid_t keeper = ::getpid();
        const pid_t session = ::fork();
        if (session > 0) ++sessions_;
        if (session != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != keeper) ::_exit(1);
        listener_.reset();
        ::close(state_.lock());
        serve(lab_, options_.name, std::move(connection), changes_write_.get());
    }

    const KeeperOptions& options_;
    StateFolder state_;
    Lab lab_;
    std::size_t sessions_ = 0;
    base::Descriptor signals_;
    base::Descriptor changes_read_;
    base::Descriptor changes_write_;
    base::Descriptor listener_;
};

/// Lets go of the folder, the terminal and the descriptors of the process that started this one.
void leave_terminal(int report, const StateFolder& state) {
    if (::chdir("/") != 0) ::_exit(1);
    ::prctl(PR_SET_NAME, "kumi-lab");
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard < 3; ++standard) ::dup2(nowhere, standard);
    close_others(report, state.lock());
}

[[noreturn]] void keep(const KeeperOptions& options, StateFolder state, base::Descriptor report) {
    const int said = report.release();
    leave_terminal(said, state);
    Keeper keeper(options, std::move(state));
    const auto built = keeper.build();
    if (!built) keeper.end();
    const std::string text = built ? lab_is_up : built.error().text();
    const bool heard = ::write(said, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(said);
    if (built && heard) keeper.run();
    if (built) keeper.end();
    ::_exit(0);
}

} // namespace

Result<base::Descriptor> start_keeper(const KeeperOptions& options, StateFolder state) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "starting the lab's keeper (pipe)");
    base::Descriptor report(ends[0]);
    base::Descriptor said(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) return system_error(errno, "starting the lab's keeper (fork)");
    if (child == 0) {
        ::setsid();
        const pid_t keeper = ::fork(); // not the leader of the session, so no terminal can become its own
        if (keeper == 0) keep(options, std::move(state), std::move(said));
        ::_exit(keeper < 0 ? 1 : 0);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) return error("starting the lab's keeper: there are too many processes");
    return report;
}

} // namespace kumi::lab
