#include "kumi/launch/console/console.hpp"

#include "kumi/launch/host/processes/children.hpp"
#include "kumi/launch/job_run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace kumi::launch {
namespace {

using namespace std::chrono_literals;
using host::Source;

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

} // namespace

Console::Console(bool label) : out_(STDOUT_FILENO), err_(STDERR_FILENO), label_(label) {
    ::sigprocmask(SIG_SETMASK, nullptr, &old_mask_);
}

Console::~Console() { ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr); }

Result<void> Console::open() {
    host::adopt_orphans();
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
    return {};
}

Result<base::Descriptor> Console::open_input(bool is_here) {
    if (!is_here) {
        input_relay_.emplace(*poller_);
        return base::Descriptor();
    }
    auto input = input_.open();
    if (input && input_.is_terminal()) poller_->watch(STDIN_FILENO, {Source::input, 0}, EPOLLIN);
    return input;
}

// ---- serving the job

void Console::attend(JobRun& job) {
    job_ = &job;
    poller_->watch(job.descriptor(), {Source::job, 0}, EPOLLIN);
    while (!job.is_over()) turn();
    poller_->forget(job.descriptor());
}

void Console::turn() {
    for (const host::Event& event : poller_->wait(next_deadline())) on_event(event.source);
    if (input_relay_ && input_relay_->is_ready_file()) on_input();
    job_->turn();
    out_.flush();
    check_output();
    err_.flush();
    // Nodes write faster than this process is read: their pipes hold them back until the reader has caught up.
    job_->hold_output(is_full());
}

Instant Console::next_deadline() const {
    Instant next = job_->deadline();
    if (input_relay_ && input_relay_->is_ready_file()) next = now();
    // Output that could not be written is tried again soon; its readers are slow, so there is no hurry.
    if (!out_.empty() || !err_.empty()) next = std::min(next, now() + (is_full() ? 2ms : 5ms));
    return next;
}

void Console::on_event(host::Source source) {
    if (source == Source::signals) on_signals();
    if (source == Source::input || source == Source::input_room) on_input();
}

// ---- signals

void Console::on_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        on_signal(static_cast<int>(info.ssi_signo));
}

void Console::on_signal(int signal) {
    if (signal == SIGCHLD) return host::reap([&](pid_t pid, int status) { job_->on_child_end(pid, status); });
    if (signal == SIGQUIT && job_->is_of_kumi()) return job_->ask_for_waits();
    if (is_terminating(signal)) return on_end_request(signal);
    job_->signal(signal);
    if (signal == SIGTSTP) ::kill(::getpid(), SIGSTOP); // after the nodes; SIGCONT comes here first, and is passed on
    if (signal != SIGCONT) return;
    if (input_.is_terminal()) poller_->watch(STDIN_FILENO, {Source::input, 0}, EPOLLIN);
    if (input_relay_) input_relay_->watch();
}

void Console::on_end_request(int signal) {
    ++end_requests_;
    const std::size_t running = job_->running_count();
    if (job_->end(signal))
        err_.add(fmt::format("kumi run: ended by signal {} ({}), passed on to {}\n", signal, ::strsignal(signal),
                             plural(running, "node")));
}

// ---- input

void Console::on_input() {
    if (!input_relay_) return on_typed_input();
    input_relay_->on_ready([&](Bytes bytes) { job_->send_input(bytes); });
}

void Console::on_typed_input() {
    const bool foreground = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    const bool more = foreground && input_.pump();
    if (!more) {
        poller_->forget(STDIN_FILENO); // until SIGCONT, if this process is in the background
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

void Console::on_input_taken(std::uint32_t bytes) {
    if (input_relay_) input_relay_->on_taken(bytes);
}

void Console::on_node_ended(std::uint32_t node, int) {
    if (node == 0 && input_relay_) input_relay_->end();
}

// ---- output

void Console::on_node_started(std::uint32_t node, pid_t) {
    while (nodes_.size() <= node) {
        const std::string label = label_ ? fmt::format("[{}] ", nodes_.size()) : "";
        nodes_.push_back({Collector(out_, label), Collector(err_, label)});
    }
}

void Console::on_output(std::uint32_t node, host::Stream stream, std::string_view text) {
    Collector& lines = stream == host::Stream::out ? nodes_[node].out : nodes_[node].err;
    if (text.empty()) lines.finish();
    else lines.add(text);
}

void Console::on_warning(const std::string& what) { err_.add(fmt::format("kumi run: warning: {}\n", what)); }

void Console::on_failure(const std::string& what, std::size_t running) {
    if (what.empty()) return;
    const std::string ending = running == 0 ? "" : fmt::format("; ending {}", plural(running, "node"));
    err_.add(fmt::format("kumi run: {}{}\n", what, ending));
}

/// Output that cannot be written ends the job.
void Console::check_output() {
    const int reason = out_.error_number();
    if (reason == 0) return;
    if (reason == EPIPE) return job_->fail(128 + SIGPIPE, ""); // the reader has seen enough
    job_->fail(1, system_error(reason, "writing what the nodes print").text());
}

void Console::finish(const std::string& report) {
    out_.add(report);
    flush_patiently(out_);
    check_output();
    flush_patiently(err_);
}

/// Waits for a slow reader as any program does; a signal ends that.
void Console::flush_patiently(Sink& sink) {
    while (sink.flush() && !sink.empty()) {
        constexpr int patience_ms = 1000; // when this process has been asked to end
        const unsigned requests_before = end_requests_;
        pollfd ready[] = {{sink.descriptor(), POLLOUT, 0}, {signals_.get(), POLLIN, 0}};
        if (::poll(ready, 2, requests_before == 0 ? -1 : patience_ms) == 0) return;
        if (ready[1].revents != 0) on_signals();
        if (end_requests_ != requests_before) return;
    }
}

} // namespace kumi::launch
