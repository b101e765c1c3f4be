#include "kumi/launch/remote/remote_host.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch::remote {
namespace {

using host::Source;

/// Differences of clocks that are worth a line: what is smaller no program notices that runs for seconds.
constexpr std::int64_t clock_difference_ns_max = 2'000'000'000;
constexpr std::size_t said_bytes_max = 4096;
/// Between the helper's last word and the end of the agent.
constexpr std::chrono::seconds linger_max{3};

std::int64_t wall_clock_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string ending(int status) {
    if (WIFSIGNALED(status))
        return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    return fmt::format("ended with code {}", WEXITSTATUS(status));
}

std::string_view first_line(std::string_view text) {
    return text.substr(0, std::min(text.find_first_of("\r\n"), std::size_t{60}));
}

bool is_terminating(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT || signal == SIGKILL;
}

} // namespace

RemoteHost::RemoteHost(RemoteOptions options, host::Poller& poller, host::Children& children, RemoteListener& listener)
    : options_(std::move(options)), poller_(poller), children_(children), listener_(listener) {}

Result<void> RemoteHost::start() {
    int sockets[2];
    int errors[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return system_error(errno, "making a socket for a host");
    base::Descriptor ours(sockets[0]);
    const base::Descriptor theirs(sockets[1]);
    if (::pipe2(errors, O_CLOEXEC) != 0) return system_error(errno, "making a pipe for a host");
    errors_.reset(errors[0]);
    const base::Descriptor their_errors(errors[1]);
    ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
    base::Descriptor in(::fcntl(ours.get(), F_DUPFD_CLOEXEC, 3));
    if (!in) return system_error(errno, "making a socket for a host");

    options_.helper.descriptors = {theirs.get(), theirs.get(), their_errors.get()};
    const auto pid = children_.start(options_.helper);
    if (!pid) return pid.error();
    agent_ = *pid;
    started_ns_ = wall_clock_ns();
    poller_.watch(errors_.get(), {Source::link_errors, options_.index}, EPOLLIN);
    link_.emplace(poller_, host::Event{Source::link, options_.index}, std::move(in), std::move(ours));
    link_->send(LinkKind::job, 0, 0, encode(options_.order));
    return {};
}

// ---- what it says

void RemoteHost::on_event(Source source, std::uint32_t) {
    if (source == Source::link) on_link();
    if (source == Source::link_errors) on_errors();
}

void RemoteHost::on_link() {
    if (!link_) return;
    link_->flush();
    const bool open = link_->read();
    if (!cores_) {
        if (const auto hello = link_->reader().next_hello()) on_hello(*hello);
        else if (const Bytes noise = link_->reader().left(); noise.size() > noise_bytes_max)
            return lose(fmt::format("host {}: not Kumi's helper answers by {}, but something that starts with \"{}\"",
                                    options_.name, options_.agent, first_line(text_of(noise))));
    }
    while (link_ && cores_) {
        auto frame = link_->reader().next();
        if (!frame) return lose(fmt::format("host {} is lost: {}", options_.name, frame.error().text()));
        if (!*frame) break;
        on_frame(**frame);
    }
    if (open) return;
    link_.reset(); // how the agent ends will tell why
    if (!is_done_) linger_deadline_ = now() + linger_max;
}

void RemoteHost::on_deadline(Instant time) {
    if (time < linger_deadline_) return;
    linger_deadline_ = never;
    if (is_done_) return abandon();
    lose(fmt::format("host {} is lost: its helper is gone, and {} does not end", options_.name, options_.agent));
}

void RemoteHost::on_hello(const Hello& hello) {
    const std::string own = full_version(options_.version);
    if (hello.version != own)
        return lose(fmt::format("host {} has Kumi {} in {}, and this is Kumi {}: install the same on all hosts",
                                options_.name, hello.version, options_.kumi_path, own));
    cores_ = hello.cores;
    const std::int64_t difference = clock_difference_ns(hello.wall_clock_ns, started_ns_, wall_clock_ns());
    if (difference > clock_difference_ns_max || difference < -clock_difference_ns_max)
        listener_.on_clock_difference(options_.index, difference);
}

void RemoteHost::on_frame(LinkFrame& frame) {
    switch (frame.kind) {
    case LinkKind::started: return on_started(frame.body);
    case LinkKind::refused: return lose(fmt::format("host {}: {}", options_.name, text_of(frame.body)));
    case LinkKind::taken: return listener_.on_input_taken(frame.value);
    case LinkKind::done:
        is_done_ = true;
        linger_deadline_ = now() + linger_max;
        return;
    default: break;
    }
    if (!has_started_ || !is_mine(frame.node)) return;
    switch (frame.kind) {
    case LinkKind::frame:
        return listener_.on_frame(frame.node, {static_cast<boot::Kind>(frame.value), std::move(frame.body), {}});
    case LinkKind::out: return listener_.on_output(frame.node, host::Stream::out, text_of(frame.body));
    case LinkKind::err: return listener_.on_output(frame.node, host::Stream::err, text_of(frame.body));
    case LinkKind::ended: return listener_.on_end(frame.node, static_cast<int>(frame.value));
    default: return;
    }
}

void RemoteHost::on_started(Bytes pids) {
    if (has_started_ || pids.size() != options_.order.count * sizeof(pid_t)) return;
    has_started_ = true;
    for (std::uint32_t slot = 0; slot < options_.order.count; ++slot) {
        pid_t pid = -1;
        read_value(pids.subspan(slot * sizeof pid), pid);
        listener_.on_started(options_.order.first + slot, pid);
    }
    listener_.on_host_started(options_.index, *cores_);
}

void RemoteHost::on_errors() {
    std::array<char, 4096> buffer;
    while (errors_) {
        const ssize_t got = ::read(errors_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        if (got > 0) {
            said_.append(buffer.data(), static_cast<std::size_t>(got));
            if (said_.size() > said_bytes_max) said_.erase(0, said_.size() - said_bytes_max);
            continue;
        }
        poller_.forget(errors_.get());
        errors_.reset();
    }
}

/// The last line that says something: ": ssh: connect to host a0 port 22: Connection refused".
std::string RemoteHost::last_words() const {
    std::string_view text = said_;
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    if (const std::size_t line = text.rfind('\n'); line != std::string_view::npos) text.remove_prefix(line + 1);
    return text.empty() ? "" : fmt::format(": {}", text);
}

void RemoteHost::on_child_end(pid_t pid, int status) {
    if (pid != agent_ || agent_ended_) return;
    agent_ended_ = true;
    while (link_ && link_->is_readable()) on_link(); // its last words
    link_.reset();
    on_errors();
    if (is_done_ || is_lost_) return;
    const std::string how = fmt::format("{} {}{}", options_.agent, ending(status), last_words());
    const bool not_there = WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126);
    if (cores_) lose(fmt::format("host {} is lost: {}", options_.name, how));
    else if (not_there)
        lose(fmt::format("host {}: {} cannot be run there, install Kumi at the same place on all hosts ({})",
                         options_.name, options_.kumi_path, how));
    else lose(fmt::format("host {}: {}", options_.name, how));
}

void RemoteHost::lose(const std::string& why) {
    if (is_lost_) return;
    is_lost_ = true;
    link_.reset();
    abandon();
    listener_.on_host_lost(options_.index, why);
}

// ---- what it is told

void RemoteHost::send(std::uint32_t node, const host::SharedFrame& frame) {
    boot::FrameHeader header{};
    if (!link_ || !read_value(*frame, header)) return;
    link_->send(LinkKind::frame, node, static_cast<std::uint32_t>(header.kind), Bytes(*frame).subspan(sizeof header));
}

void RemoteHost::signal(int number) {
    if (!cores_ && is_terminating(number)) return abandon();
    if (link_) link_->send(LinkKind::signal, 0, static_cast<std::uint32_t>(number));
}

void RemoteHost::hold_output(bool hold) {
    if (hold == is_held_ || !link_) return;
    is_held_ = hold;
    link_->send(hold ? LinkKind::hold : LinkKind::resume);
}

void RemoteHost::send_input(Bytes input) {
    if (link_) link_->send(LinkKind::input, 0, 0, input);
}

void RemoteHost::abandon() { children_.signal(agent_, SIGKILL); }

} // namespace kumi::launch::remote
