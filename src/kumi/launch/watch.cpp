#include "kumi/launch/watch.hpp"

#include "kumi/base/machine.hpp"
#include "kumi/launch/host/binding.hpp"
#include "kumi/launch/host/process.hpp"
#include "kumi/launch/stats_table.hpp"
#include "kumi/launch/traffic_map.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kumi::launch {
namespace {

using namespace std::chrono_literals;

/// Between asking nodes to end because another failed, and killing them: the job is gone within a second.
constexpr auto failure_grace = 400ms;
/// The same after the user's own signal: programs may have something to save.
constexpr auto signal_grace = 5s;
/// For output that is still in a pipe when its node has ended.
constexpr auto output_grace = 200ms;

constexpr std::array signals_watched{SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

bool is_terminating(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT; }

bool is_ignored(int signal) {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::string plural(std::size_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

} // namespace

Watch::Watch(const RunOptions& options, std::string program_path, const base::JobKeys& keys)
    : options_(options), program_path_(std::move(program_path)), host_(base::host_name()), out_sink_(STDOUT_FILENO),
      err_sink_(STDERR_FILENO),
      rendezvous_({.nodes = options.nodes,
                   .host = host_,
                   .cores = base::cores_allowed(),
                   .traffic_wanted = options.show_traffic,
                   .stats_wanted = options.show_stats,
                   // We are the ones who notice; this is for a node whose kumi run is stopped.
                   .answer_seconds_max = options.join_max.count() == 0
                                             ? 0u
                                             : static_cast<std::uint32_t>(options.join_max.count()) + 30,
                   .keys = keys}) {}

Watch::~Watch() {
    signal_nodes(SIGKILL);
    kill_leftovers();
    ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

// ---- starting

Result<void> Watch::start() {
    sigset_t watched;
    sigemptyset(&watched);
    ::signal(SIGCHLD, SIG_DFL); // ignored, as some starters leave it, it would hide how nodes end
    for (const int signal : signals_watched)
        if (!is_ignored(signal)) sigaddset(&watched, signal); // nohup, and shells for what runs in the background
    ::sigprocmask(SIG_BLOCK, &watched, &old_mask_);
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1); // what a node leaves behind becomes ours to end

    auto guardian = host::Guardian::start();
    if (!guardian) return guardian.error();
    guardian_.emplace(*std::move(guardian));
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!epoll_ || !signals_) return system_error(errno, "preparing to watch the nodes");
    watch_descriptor(signals_.get(), Source::signals, 0, EPOLLIN);

    const std::vector<cpu_set_t> binding = options_.bind ? host::plan_binding(options_.nodes) : std::vector<cpu_set_t>{};
    for (std::uint32_t node = 0; node < options_.nodes; ++node)
        if (auto started = start_node(node, binding); !started) return started;
    if (options_.must_join && options_.join_max.count() != 0) join_deadline_ = now() + options_.join_max;
    return {};
}

Result<void> Watch::start_node(std::uint32_t node, const std::vector<cpu_set_t>& binding) {
    const bool terminal = ::isatty(STDOUT_FILENO) != 0;
    auto out = host::make_output_path(terminal);
    if (!out) return out.error();
    auto err = host::make_output_path(false);
    if (!err) return err.error();
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return system_error(errno, "making a socket for a node");

    host::ProcessOptions process{.program = program_path_, .arguments = options_.arguments,
                           .environment_added = options_.environment_added};
    process.boot_socket.reset(sockets[1]);
    process.standard_output = std::move(out->nodes);
    process.standard_error = std::move(err->nodes);
    if (!binding.empty()) process.binding = binding[node];

    NodeProcess& mine = nodes_.emplace_back(out_sink_, err_sink_, options_.label ? fmt::format("[{}] ", node) : "");
    ++ended_count_; // until it has started
    mine.ended = true;
    mine.boot.reset(sockets[0]);
    mine.out = std::move(out->ours);
    mine.err = std::move(err->ours);
    if (node == 0) {
        auto input = input_.open();
        if (!input) return input.error();
        process.standard_input = *std::move(input);
    } else {
        process.standard_input.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    auto pid = host::start_process(process);
    if (!pid) return pid.error();
    mine.pid = *pid;
    mine.ended = false;
    --ended_count_;
    guardian_->guard(mine.pid);
    watch_descriptor(mine.boot.get(), Source::boot, node, EPOLLIN);
    watch_descriptor(mine.out.get(), Source::out, node, EPOLLIN);
    watch_descriptor(mine.err.get(), Source::err, node, EPOLLIN);
    if (node == 0 && input_.is_terminal()) watch_descriptor(STDIN_FILENO, Source::input, 0, EPOLLIN);
    return {};
}

void Watch::watch_descriptor(int descriptor, Source source, std::uint32_t node, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = std::uint64_t{node} << 32 | static_cast<std::uint32_t>(source);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

// ---- watching

int Watch::until_end() {
    while (!all_ended()) turn();
    return finish();
}

Instant Watch::next_deadline() const {
    Instant next = kill_deadline_;
    if (!failed_) next = std::min(next, join_deadline_);
    // Output that could not be written is tried again soon; its readers are slow, so there is no hurry.
    if (!out_sink_.empty() || !err_sink_.empty()) next = std::min(next, now() + 5ms);
    return next;
}

void Watch::turn() {
    // Nodes write faster than we are read: their pipes stay full, and would keep waking us.
    if (out_sink_.full() || err_sink_.full()) std::this_thread::sleep_for(2ms);
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), milliseconds_until(next_deadline()));
    for (int i = 0; i < count; ++i) {
        const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
        on_event(static_cast<Source>(static_cast<std::uint32_t>(data)), static_cast<std::uint32_t>(data >> 32));
    }
    out_sink_.flush();
    check_output();
    err_sink_.flush();
    on_deadlines();
}

void Watch::on_event(Source source, std::uint32_t node) {
    switch (source) {
    case Source::signals: return on_signals();
    case Source::input:
    case Source::input_room: return on_input();
    case Source::boot: return on_boot(node);
    case Source::out: return on_output(nodes_[node].out, nodes_[node].out_lines);
    case Source::err: return on_output(nodes_[node].err, nodes_[node].err_lines);
    }
}

void Watch::on_deadlines() {
    const Instant time = now();
    if (time >= kill_deadline_) {
        signal_nodes(SIGKILL);
        kill_deadline_ = never;
    }
    if (!failed_ && time >= join_deadline_ && rendezvous_.joined_count() < nodes_.size()) {
        const bool nobody = rendezvous_.joined_count() == 0;
        const bool only_one = rendezvous_.joined_count() + 1 == nodes_.size();
        fail(1, nobody ? fmt::format("{} did not join the job within {} s: it never called kumi::Job::join(); "
                                     "--no-join runs programs that are not Kumi's, --join-timeout waits longer",
                                     options_.program, options_.join_max.count())
                       : fmt::format("node{} {} on {} did not join within {} s; --join-timeout waits longer",
                                     only_one ? "" : "s", rendezvous_.missing(), host_, options_.join_max.count()));
    }
}

void Watch::on_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        on_signal(static_cast<int>(info.ssi_signo));
}

void Watch::on_signal(int signal) {
    if (signal == SIGCHLD) return reap();
    if (is_terminating(signal)) {
        ++end_requests_;
        if (kill_deadline_ != never) signal = SIGKILL; // asked twice: now
        if (!failed_) {
            failed_ = true;
            exit_code_ = 128 + signal;
            err_sink_.add(fmt::format("kumi run: ended by signal {} ({}), passed on to {}\n", signal, ::strsignal(signal),
                                      plural(nodes_.size() - ended_count_, "node")));
        }
        kill_deadline_ = now() + signal_grace;
        return signal_nodes(signal);
    }
    signal_nodes(signal);
    if (signal == SIGTSTP) ::kill(::getpid(), SIGSTOP); // the nodes first, then we; SIGCONT comes to us and goes on
    if (signal == SIGCONT && input_.is_terminal()) watch_descriptor(STDIN_FILENO, Source::input, 0, EPOLLIN);
}

void Watch::on_boot(std::uint32_t node) {
    NodeProcess& mine = nodes_[node];
    if (!mine.boot) return;
    const bool open = mine.frames.read_from(mine.boot.get());
    bool sound = true;
    while (sound) {
        auto frame = mine.frames.next();
        sound = frame.has_value();
        if (!sound || !*frame) break;
        for (Reply& reply : rendezvous_.on_frame(node, std::move(**frame)))
            nodes_[reply.node].replies.push_back(std::move(reply));
    }
    if (!open || !sound) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, mine.boot.get(), nullptr);
        mine.boot.reset();
    }
    for (std::uint32_t to = 0; to < nodes_.size(); ++to)
        if (!nodes_[to].replies.empty()) send_replies(to);
    if (const auto& reason = rendezvous_.failure(node))
        fail(1, fmt::format("{} cannot go on: {}", describe(node), *reason));
    check_missing();
}

void Watch::send_replies(std::uint32_t node) {
    NodeProcess& mine = nodes_[node];
    while (!mine.replies.empty() && mine.boot) {
        Reply& reply = mine.replies.front();
        const std::ptrdiff_t sent = boot::send_some(mine.boot.get(), reply.frame, reply.descriptor ? reply.descriptor->get() : -1);
        if (sent < 0) break; // it is ending; reap() will say why
        if (sent > 0) reply.descriptor.reset();
        reply.frame.erase(reply.frame.begin(), reply.frame.begin() + sent);
        if (!reply.frame.empty()) return watch_descriptor(mine.boot.get(), Source::boot, node, EPOLLIN | EPOLLOUT);
        mine.replies.pop_front();
    }
    mine.replies.clear();
    if (mine.boot) watch_descriptor(mine.boot.get(), Source::boot, node, EPOLLIN);
}

void Watch::on_output(base::Descriptor& from, Collector& lines) {
    if (!from || out_sink_.full() || err_sink_.full()) return; // its pipe holds it back until we have caught up
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got > 0) return lines.add({buffer.data(), static_cast<std::size_t>(got)});
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    lines.finish();
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, from.get(), nullptr);
    from.reset();
}

void Watch::on_input() {
    const bool foreground = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    const bool more = foreground && input_.pump();
    if (!more) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr); // until SIGCONT, if we are in the background
        if (foreground) input_.close();
        return;
    }
    // While the node takes nothing, wait for it and not for the keyboard.
    if (input_.blocked()) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
        watch_descriptor(input_.to_node(), Source::input_room, 0, EPOLLOUT);
    } else {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, input_.to_node(), nullptr);
        watch_descriptor(STDIN_FILENO, Source::input, 0, EPOLLIN);
    }
}

// ---- ends

void Watch::reap() {
    while (true) {
        siginfo_t info{};
        // Looked at first and taken away later: until then its number is nobody else's.
        if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        const pid_t pid = info.si_pid;
        const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                        [&](const NodeProcess& node) { return node.pid == pid && !node.ended; });
        if (found != nodes_.end()) {
            ::kill(-pid, SIGKILL); // what it leaves behind
            guardian_->forget(pid);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        if (found == nodes_.end()) continue; // a node's orphan
        found->ended = true;
        ++ended_count_;
        on_node_end(static_cast<std::uint32_t>(found - nodes_.begin()), status);
    }
}

void Watch::on_node_end(std::uint32_t node, int status) {
    on_boot(node); // its last words
    if (failed_) return;
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        fail(128 + signal, fmt::format("{} was killed by signal {} ({}){}", describe(node), signal, ::strsignal(signal),
                                       WCOREDUMP(status) ? ", core dumped" : ""));
    } else if (WEXITSTATUS(status) != 0) {
        fail(WEXITSTATUS(status), fmt::format("{} exited with code {}", describe(node), WEXITSTATUS(status)));
    } else if (rendezvous_.has_joined(node) && !rendezvous_.has_left(node)) {
        fail(1, fmt::format("{} exited with code 0 without leaving the job: let main() return, so that kumi::Job ends "
                            "before the process does",
                            describe(node)));
    }
    check_missing();
}

/// A node that has ended without joining is missed as soon as another has joined.
void Watch::check_missing() {
    if (failed_ || rendezvous_.joined_count() == 0) return;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
        if (nodes_[node].ended && !rendezvous_.has_joined(node))
            return fail(1, fmt::format("{} exited before it joined the job, and the others wait for it", describe(node)));
}

void Watch::fail(int code, const std::string& what) {
    if (failed_) return;
    failed_ = true;
    exit_code_ = code;
    const std::size_t running = nodes_.size() - ended_count_;
    if (!what.empty())
        err_sink_.add(fmt::format("kumi run: {}{}\n", what,
                                  running == 0 ? "" : fmt::format("; ending {}", plural(running, "node"))));
    signal_nodes(SIGTERM);
    signal_nodes(SIGCONT); // a stopped node cannot end
    kill_deadline_ = now() + failure_grace;
}

void Watch::signal_nodes(int signal) {
    for (const NodeProcess& node : nodes_)
        if (!node.ended) ::kill(-node.pid, signal);
}

/// What nodes have started and left behind outside their process groups: it has become our child.
void Watch::kill_leftovers() {
    for (int round = 0; round < 100; ++round) {
        std::ifstream children(fmt::format("/proc/self/task/{}/children", ::gettid()));
        bool any = false;
        for (pid_t pid = 0; children >> pid;) {
            if (guardian_ && pid == guardian_->pid()) continue;
            any = true;
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
        if (!any) return;
    }
}

void Watch::drain_output() {
    Instant deadline = now() + output_grace;
    const auto open = [&] {
        return std::any_of(nodes_.begin(), nodes_.end(), [](const NodeProcess& node) { return node.out || node.err; });
    };
    while (open() && now() < deadline) {
        std::array<epoll_event, 64> events;
        const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 10);
        for (int i = 0; i < count; ++i) {
            const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
            const auto source = static_cast<Source>(static_cast<std::uint32_t>(data));
            if (source == Source::out || source == Source::err) on_event(source, static_cast<std::uint32_t>(data >> 32));
        }
        for (Sink* sink : {&out_sink_, &err_sink_}) {
            sink->flush();
            if (!sink->full()) continue;
            flush_patiently(*sink); // the reader's time is not the nodes'
            deadline = sink->full() ? now() : now() + output_grace;
        }
    }
    for (NodeProcess& node : nodes_) {
        node.out_lines.finish();
        node.err_lines.finish();
    }
}

/// Waits for a slow reader as any program does; a signal ends that.
void Watch::flush_patiently(Sink& sink) {
    while (sink.flush() && !sink.empty()) {
        constexpr int patience_ms = 1000; // when we have been asked to end
        const unsigned requests_before = end_requests_;
        pollfd ready[] = {{sink.descriptor(), POLLOUT, 0}, {signals_.get(), POLLIN, 0}};
        if (::poll(ready, 2, requests_before == 0 ? -1 : patience_ms) == 0) return;
        if (ready[1].revents != 0) on_signals();
        if (end_requests_ != requests_before) return;
    }
}

/// Output that cannot be written ends the job.
void Watch::check_output() {
    const int reason = out_sink_.error_number();
    if (reason == 0 || failed_) return;
    if (reason == EPIPE) return fail(128 + SIGPIPE, ""); // who read it has seen enough
    fail(1, system_error(reason, "writing what the nodes print").text());
}

int Watch::finish() {
    kill_leftovers();
    drain_output();
    if (options_.must_join && rendezvous_.joined_count() == 0)
        fail(1, fmt::format("{} ended without joining the job: it never called kumi::Job::join(); --no-join runs programs "
                            "that are not Kumi's",
                            options_.program));
    if (options_.show_traffic && exit_code_ == 0) out_sink_.add(draw_traffic(rendezvous_.traffic()));
    // When the job failed, what nodes counted may tell why; unless they had no time to say.
    const auto& stats = rendezvous_.stats();
    const bool reported = std::any_of(stats.begin(), stats.end(), [](const auto& report) { return report.has_value(); });
    if (options_.show_stats && (reported || exit_code_ == 0)) out_sink_.add(draw_stats(stats));
    flush_patiently(out_sink_);
    check_output();
    flush_patiently(err_sink_);
    return exit_code_;
}

std::string Watch::describe(std::uint32_t node) const {
    return fmt::format("node {} on {} (pid {})", node, host_, nodes_[node].pid);
}

} // namespace kumi::launch
