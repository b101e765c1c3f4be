#include "kumi/launch/watch.hpp"

#include "kumi/base/machine.hpp"
#include "kumi/launch/host/environment.hpp"
#include "kumi/launch/stats_table.hpp"
#include "kumi/launch/traffic_map.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch {
namespace {

using namespace std::chrono_literals;
using host::Source;
using remote::JobOrder;
using remote::RemoteHost;

/// Between asking nodes to end because another failed, and killing them: the job is gone within a second.
constexpr auto failure_grace = 400ms;
/// The same after the user's own signal: programs may have something to save.
constexpr auto signal_grace = 5s;
/// For other hosts to tell that what was killed has ended.
constexpr auto abandon_grace = 2s;
/// For output that is still in a pipe when its node has ended.
constexpr auto output_grace = 200ms;

constexpr std::array signals_watched{SIGCHLD, SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                     SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

bool is_terminating(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

bool is_ignored(int signal) {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::string plural(std::size_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// Where we were started, by the name that the user knows it by, which other hosts may know it by, too.
std::string own_folder() {
    std::error_code wrong;
    const char* const named = std::getenv("PWD");
    if (named != nullptr && named[0] == '/' && std::filesystem::equivalent(named, ".", wrong)) return named;
    return std::filesystem::current_path(wrong);
}

/// What nodes on other hosts find in their environment, over what those have of their own.
std::vector<std::string> environment_for_hosts(const std::vector<std::string>& added) {
    std::vector<std::string> variables = host::own_environment();
    std::erase_if(variables, [](const std::string& variable) { return host::is_of_host(host::name_of(variable)); });
    return host::with(std::move(variables), added);
}

} // namespace

Watch::Watch(const RunOptions& options, Plan plan, const base::JobKeys& keys)
    : options_(options), plan_(std::move(plan)), out_sink_(STDOUT_FILENO), err_sink_(STDERR_FILENO),
      rendezvous_({.parts = plan_.parts,
                   .traffic_wanted = options.show_traffic,
                   .stats_wanted = options.show_stats,
                   // We are the ones who notice; this is for a node whose kumi run is stopped.
                   .answer_seconds_max = options.join_max.count() == 0
                                             ? 0u
                                             : static_cast<std::uint32_t>(options.join_max.count()) + 30,
                   .keys = keys}) {}

Watch::~Watch() {
    children_.reset();
    ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

// ---- starting

Result<void> Watch::start() {
    ::sigprocmask(SIG_SETMASK, nullptr, &old_mask_);
    auto children = host::Children::open();
    if (!children) return children.error();
    children_.emplace(*std::move(children));
    auto poller = host::Poller::open();
    if (!poller) return poller.error();
    poller_.emplace(*std::move(poller));
    sigset_t watched;
    sigemptyset(&watched);
    for (const int signal : signals_watched)
        if (!is_ignored(signal)) sigaddset(&watched, signal); // nohup, and shells for what runs in the background
    ::sigprocmask(SIG_BLOCK, &watched, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return system_error(errno, "preparing to watch the nodes");
    poller_->watch(signals_.get(), {Source::signals, 0}, EPOLLIN);
    return plan_.is_here() ? start_here() : start_on_hosts();
}

Result<void> Watch::start_here() {
    auto program = host::find_program(options_.program);
    if (!program) return program.error();
    for (std::uint32_t node = 0; node < options_.nodes; ++node)
        nodes_.emplace_back(out_sink_, err_sink_, options_.label ? fmt::format("[{}] ", node) : "");
    auto input = input_.open();
    if (!input) return input.error();
    here_.emplace(host::NodesOptions{.first = 0,
                                     .count = options_.nodes,
                                     .program = *std::move(program),
                                     .arguments = options_.arguments,
                                     .environment = host::with(host::own_environment(), options_.environment_added),
                                     .bind = options_.bind,
                                     .terminal = host::own_terminal(),
                                     .input = *std::move(input),
                                     .cluster = {}},
                  *poller_, *children_, *this);
    rendezvous_.set_cores(0, base::cores_allowed());
    if (auto started = here_->start(); !started) return started;
    if (input_.is_terminal()) poller_->watch(STDIN_FILENO, {Source::input, 0}, EPOLLIN);
    on_all_started();
    return {};
}

Result<void> Watch::start_on_hosts() {
    const auto agent = remote::find_agent(options_.rsh, options_.start_max);
    if (!agent) return agent.error();
    for (std::uint32_t node = 0; node < options_.nodes; ++node)
        nodes_.emplace_back(out_sink_, err_sink_, options_.label ? fmt::format("[{}] ", node) : "");
    JobOrder order{.bind = options_.bind,
                         .folder = own_folder(),
                         .program = options_.program,
                         .arguments = options_.arguments,
                         .environment = environment_for_hosts(options_.environment_added),
                         .cluster_text = plan_.cluster_text};
    if (const auto terminal = host::own_terminal()) {
        order.is_terminal = true;
        order.rows = terminal->ws_row;
        order.columns = terminal->ws_col;
    }
    for (std::uint32_t part = 0; part < plan_.parts.size(); ++part) {
        RemoteHost& remote = remotes_.emplace_back(order_for(part, *agent, order), *poller_, *children_, *this);
        if (auto started = remote.start(); !started) return started;
    }
    input_relay_.emplace(*poller_);
    if (options_.start_max.count() != 0) start_deadline_ = now() + options_.start_max;
    return {};
}

remote::RemoteOptions Watch::order_for(std::uint32_t part, const remote::Agent& agent,
                                       const remote::JobOrder& order) const {
    std::error_code wrong;
    const Part& mine = plan_.parts[part];
    remote::RemoteOptions there{
        .index = part,
        .name = mine.host,
        .helper = {.program = agent.program, .arguments = agent.words, .environment = host::own_environment()},
        .agent = agent.text,
        .kumi_path = std::filesystem::read_symlink("/proc/self/exe", wrong),
        .version = options_.version,
        .order = order};
    there.order.first = mine.first;
    there.order.count = mine.count;
    if (names_this_host(mine.host, base::host_name())) { // nobody need be asked to start it
        there.agent = "its helper";
        there.helper.program = there.kumi_path;
        there.helper.arguments = {"host-helper"};
    } else {
        for (std::string& word : remote::words_for(mine.host, there.kumi_path))
            there.helper.arguments.push_back(std::move(word));
    }
    return there;
}

void Watch::on_host_started(std::uint32_t host, std::uint32_t cores) {
    rendezvous_.set_cores(host, cores);
    if (std::all_of(remotes_.begin(), remotes_.end(), [](const RemoteHost& remote) { return remote.has_started(); }))
        on_all_started();
}

void Watch::on_all_started() {
    start_deadline_ = never;
    if (options_.must_join && options_.join_max.count() != 0) join_deadline_ = now() + options_.join_max;
}

void Watch::on_started(std::uint32_t node, pid_t pid) {
    nodes_[node].pid = pid;
    nodes_[node].running = true;
    ++running_count_;
}

// ---- watching

int Watch::until_end() {
    while (!is_over()) turn();
    return finish();
}

bool Watch::is_over() const {
    if (here_) return here_->is_over();
    return std::all_of(remotes_.begin(), remotes_.end(), [](const RemoteHost& remote) { return remote.is_over(); });
}

Instant Watch::next_deadline() const {
    Instant next = std::min(kill_deadline_, abandon_deadline_);
    if (!failed_) next = std::min({next, start_deadline_, join_deadline_});
    for (const RemoteHost& remote : remotes_) next = std::min(next, remote.deadline());
    if (input_relay_ && input_relay_->is_ready_file()) next = now();
    // Output that could not be written is tried again soon; its readers are slow, so there is no hurry.
    if (!out_sink_.empty() || !err_sink_.empty())
        next = std::min(next, now() + (out_sink_.full() || err_sink_.full() ? 2ms : 5ms));
    return next;
}

void Watch::turn() {
    for (const host::Event& event : poller_->wait(next_deadline())) on_event(event);
    if (input_relay_ && input_relay_->is_ready_file()) on_input();
    out_sink_.flush();
    check_output();
    err_sink_.flush();
    // Nodes write faster than we are read: their pipes hold them back until we have caught up.
    const bool hold = out_sink_.full() || err_sink_.full();
    if (here_) here_->hold_output(hold);
    for (RemoteHost& remote : remotes_) remote.hold_output(hold);
    on_deadlines();
}

void Watch::on_event(const host::Event& event) {
    switch (event.source) {
    case Source::signals: return on_signals();
    case Source::input:
    case Source::input_room: return on_input();
    case Source::boot:
    case Source::out:
    case Source::err: return here_->on_event(event.source, event.index);
    case Source::link:
    case Source::link_errors: return remotes_[event.index].on_event(event.source, event.index);
    }
}

void Watch::on_deadlines() {
    const Instant time = now();
    for (RemoteHost& remote : remotes_) remote.on_deadline(time);
    if (time >= kill_deadline_) {
        signal_nodes(SIGKILL);
        kill_deadline_ = never;
        abandon_deadline_ = time + abandon_grace;
    }
    if (time >= abandon_deadline_) {
        for (RemoteHost& remote : remotes_) remote.abandon();
        abandon_deadline_ = never;
    }
    if (failed_) return;
    if (time >= start_deadline_) on_start_deadline();
    if (time >= join_deadline_) on_join_deadline();
}

void Watch::on_start_deadline() {
    constexpr std::size_t named_max = 8;
    std::string names;
    std::size_t count = 0;
    for (std::size_t part = 0; part < remotes_.size(); ++part)
        if (!remotes_[part].has_started() && ++count <= named_max)
            names += (count == 1 ? "" : ", ") + plan_.parts[part].host;
    if (count > named_max) names += fmt::format(" and {} more", count - named_max);
    fail(1, fmt::format("host{} {} did not answer within {} s: up and reachable, without a password, by {}? "
                        "--start-timeout waits longer",
                        count == 1 ? "" : "s", names, options_.start_max.count(),
                        options_.rsh.empty() ? "ssh" : options_.rsh));
}

void Watch::on_join_deadline() {
    join_deadline_ = never;
    if (rendezvous_.joined_count() == nodes_.size()) return;
    const bool nobody = rendezvous_.joined_count() == 0;
    const bool only_one = rendezvous_.joined_count() + 1 == nodes_.size();
    fail(1, nobody ? fmt::format("{} did not join the job within {} s: it never called kumi::Job::join(); "
                                 "--no-join runs programs that are not Kumi's, --join-timeout waits longer",
                                 options_.program, options_.join_max.count())
                   : fmt::format("node{} {} did not join within {} s; --join-timeout waits longer", only_one ? "" : "s",
                                 rendezvous_.missing(), options_.join_max.count()));
}

void Watch::on_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        on_signal(static_cast<int>(info.ssi_signo));
}

void Watch::on_signal(int signal) {
    if (signal == SIGCHLD)
        return children_->reap([&](pid_t pid, int status) {
            if (here_) here_->on_child_end(pid, status);
            for (RemoteHost& remote : remotes_) remote.on_child_end(pid, status);
        });
    if (is_terminating(signal)) {
        ++end_requests_;
        if (kill_deadline_ != never) { // asked twice: now
            signal = SIGKILL;
            abandon_deadline_ = now() + abandon_grace;
        }
        if (!failed_) {
            failed_ = true;
            exit_code_ = 128 + signal;
            err_sink_.add(fmt::format("kumi run: ended by signal {} ({}), passed on to {}\n", signal,
                                      ::strsignal(signal), plural(running_count_, "node")));
        }
        kill_deadline_ = now() + signal_grace;
        return signal_nodes(signal);
    }
    signal_nodes(signal);
    if (signal == SIGTSTP) ::kill(::getpid(), SIGSTOP); // the nodes first, then we; SIGCONT comes to us and goes on
    if (signal != SIGCONT) return;
    if (input_.is_terminal()) poller_->watch(STDIN_FILENO, {Source::input, 0}, EPOLLIN);
    if (input_relay_) input_relay_->watch();
}

// ---- what comes from nodes and hosts

void Watch::on_frame(std::uint32_t node, boot::Frame frame) {
    for (const Reply& reply : rendezvous_.on_frame(node, std::move(frame))) {
        if (here_) here_->send(reply.node, reply.frame);
        else if (reply.node != host::every_node)
            remotes_[part_of(plan_.parts, reply.node)].send(reply.node, reply.frame);
        else
            for (RemoteHost& remote : remotes_) remote.send(reply.node, reply.frame);
    }
    if (const auto& reason = rendezvous_.failure(node))
        fail(1, fmt::format("{} cannot go on: {}", describe(node), *reason));
    check_missing();
}

void Watch::on_output(std::uint32_t node, host::Stream stream, std::string_view text) {
    Collector& lines = stream == host::Stream::out ? nodes_[node].out_lines : nodes_[node].err_lines;
    if (text.empty()) lines.finish();
    else lines.add(text);
}

void Watch::on_host_lost(std::uint32_t host, const std::string& why) {
    const Part& part = plan_.parts[host];
    for (std::uint32_t node = part.first; node < part.first + part.count; ++node) forget_node(nodes_[node]);
    fail(1, why);
}

void Watch::on_clock_difference(std::uint32_t host, std::int64_t nanoseconds) {
    warn(fmt::format("the clock of {} is {:.1f} s {} this host's; set them by the same time server, times of files and "
                     "logs will not fit",
                     plan_.parts[host].host, std::abs(static_cast<double>(nanoseconds)) / 1e9,
                     nanoseconds > 0 ? "ahead of" : "behind"));
}

void Watch::on_input_taken(std::uint32_t bytes) { input_relay_->on_taken(bytes); }

void Watch::on_input() {
    if (!input_relay_) return on_typed_input();
    input_relay_->on_ready([&](Bytes bytes) { remotes_[0].send_input(bytes); });
}

void Watch::on_typed_input() {
    const bool foreground = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    const bool more = foreground && input_.pump();
    if (!more) {
        poller_->forget(STDIN_FILENO); // until SIGCONT, if we are in the background
        if (foreground) input_.close();
        return;
    }
    // While the node takes nothing, wait for it and not for the keyboard.
    if (input_.blocked()) {
        poller_->forget(STDIN_FILENO);
        poller_->watch(input_.to_node(), {Source::input_room, 0}, EPOLLOUT);
    } else {
        poller_->forget(input_.to_node());
        poller_->watch(STDIN_FILENO, {Source::input, 0}, EPOLLIN);
    }
}

// ---- ends

void Watch::forget_node(NodeState& node) {
    if (node.running) --running_count_;
    node.running = false;
}

void Watch::on_end(std::uint32_t node, int status) {
    forget_node(nodes_[node]);
    nodes_[node].ended = true;
    if (node == 0 && input_relay_) input_relay_->end();
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
            return fail(1,
                        fmt::format("{} exited before it joined the job, and the others wait for it", describe(node)));
}

void Watch::warn(const std::string& what) { err_sink_.add(fmt::format("kumi run: warning: {}\n", what)); }

void Watch::fail(int code, const std::string& what) {
    if (failed_) return;
    failed_ = true;
    exit_code_ = code;
    if (!what.empty())
        err_sink_.add(
            fmt::format("kumi run: {}{}\n", what,
                        running_count_ == 0 ? "" : fmt::format("; ending {}", plural(running_count_, "node"))));
    signal_nodes(SIGTERM);
    signal_nodes(SIGCONT); // a stopped node cannot end
    kill_deadline_ = now() + failure_grace;
}

void Watch::signal_nodes(int signal) {
    if (here_) here_->signal(signal);
    for (RemoteHost& remote : remotes_) remote.signal(signal);
}

/// What was printed here before the end; helpers on other hosts have seen to it there.
void Watch::drain_output() {
    Instant deadline = now() + output_grace;
    if (here_) here_->hold_output(false);
    while (here_ && here_->is_output_open() && now() < deadline) {
        for (const host::Event& event : poller_->wait(now() + 10ms))
            if (event.source == Source::out || event.source == Source::err) here_->on_event(event.source, event.index);
        for (Sink* sink : {&out_sink_, &err_sink_}) {
            sink->flush();
            if (!sink->full()) continue;
            flush_patiently(*sink); // the reader's time is not the nodes'
            deadline = sink->full() ? now() : now() + output_grace;
        }
    }
    if (here_) here_->read_rest(); // this process may have stood still for longer than any grace
    for (NodeState& node : nodes_) {
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
    children_->kill_leftovers();
    drain_output();
    if (options_.must_join && rendezvous_.joined_count() == 0)
        fail(1,
             fmt::format("{} ended without joining the job: it never called kumi::Job::join(); --no-join runs programs "
                         "that are not Kumi's",
                         options_.program));
    if (options_.show_traffic && exit_code_ == 0) out_sink_.add(draw_traffic(rendezvous_.traffic()));
    // When the job failed, what nodes counted may tell why; unless they had no time to say.
    const auto& stats = rendezvous_.stats();
    const bool reported =
        std::any_of(stats.begin(), stats.end(), [](const auto& report) { return report.has_value(); });
    if (options_.show_stats && (reported || exit_code_ == 0)) out_sink_.add(draw_stats(stats));
    flush_patiently(out_sink_);
    check_output();
    flush_patiently(err_sink_);
    return exit_code_;
}

std::string Watch::describe(std::uint32_t node) const {
    return fmt::format("node {} on {} (pid {})", node, plan_.parts[part_of(plan_.parts, node)].host, nodes_[node].pid);
}

} // namespace kumi::launch
