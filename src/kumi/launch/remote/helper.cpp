#include "kumi/launch/remote/helper.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/launch/host/processes/environment.hpp"
#include "kumi/launch/host/processes/limits.hpp"
#include "kumi/launch/remote/link.hpp"
#include "kumi/launch/host/nodes.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace kumi::launch::remote {
namespace {

using namespace std::chrono_literals;

/// For output that is still in a pipe when all nodes have ended.
constexpr auto output_grace = 200ms;
/// Output that waits to be sent; what is more waits in the nodes' pipes.
constexpr std::size_t kept_bytes_max = std::size_t{1} << 18;

/// What came from the user for node 0, until it takes it.
class NodeInput {
public:
    /// Answers the node's end.
    Result<base::Descriptor> open() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "making a pipe for node 0's input");
        to_node_.reset(ends[1]);
        ::fcntl(to_node_.get(), F_SETFL, O_NONBLOCK);
        return base::Descriptor(ends[0]);
    }

    void add(std::string_view text) {
        ended_ = ended_ || text.empty();
        held_ += text;
    }
    bool is_open() const noexcept { return static_cast<bool>(to_node_); }
    bool has_more() const noexcept { return !held_.empty(); }
    int to_node() const noexcept { return to_node_.get(); }

    /// Gives it what it takes now; answers how much that is.
    std::size_t pump() {
        std::size_t taken = 0;
        while (to_node_ && !held_.empty()) {
            const ssize_t written = ::write(to_node_.get(), held_.data(), held_.size());
            if (written < 0 && errno == EINTR) continue;
            if (written < 0 && errno == EAGAIN) return taken;
            if (written < 0) ended_ = true, held_.clear(); // it does not want it
            else held_.erase(0, static_cast<std::size_t>(written)), taken += static_cast<std::size_t>(written);
        }
        if (ended_) to_node_.reset();
        return taken;
    }

private:
    base::Descriptor to_node_;
    std::string held_;
    bool ended_ = false;
};

/// A file without a name, which nodes read as often as they like.
Result<base::Descriptor> file_of(const std::string& text) {
    base::Descriptor file(::memfd_create("kumi-cluster", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return system_error(errno, "keeping the cluster file in memory");
    ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    return file;
}

/// Takes a standard stream of this process under another number. Its own number leads to /dev/null from now on.
base::Descriptor take_stream(int number) {
    base::Descriptor stream(::fcntl(number, F_DUPFD_CLOEXEC, 10));
    const base::Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ::dup2(nowhere.get(), number);
    return stream;
}

class Helper final : public host::Listener {
public:
    Helper(host::Poller& poller, host::Children& children, int signals)
        : poller_(poller), children_(children), signals_(signals),
          link_(poller, {host::Source::link, 0}, take_stream(STDIN_FILENO), take_stream(STDOUT_FILENO)) {}

    int run(std::string_view version) {
        const std::chrono::nanoseconds clock = std::chrono::system_clock::now().time_since_epoch();
        link_.send_text(encode(Hello{full_version(version), clock.count(), base::cores_allowed()}));
        while (!is_alone_ && !is_finished()) turn(deadline_);
        if (!is_alone_ && nodes_) {
            nodes_->read_rest(); // this process may have stood still for longer than the grace
            link_.send(LinkKind::done);
        }
        while (!is_alone_ && link_.kept_bytes() != 0) turn(never);
        return is_alone_ ? 1 : 0;
    }

    void on_started(std::uint32_t, pid_t pid) override { pids_.push_back(pid); }
    void on_frame(std::uint32_t node, boot::Frame frame) override {
        link_.send(LinkKind::frame, node, static_cast<std::uint32_t>(frame.kind), frame.body);
    }
    void on_output(std::uint32_t node, host::Stream stream, std::string_view text) override {
        link_.send(stream == host::Stream::out ? LinkKind::out : LinkKind::err, node, 0, bytes_of(text));
    }
    void on_end(std::uint32_t node, int status) override {
        link_.send(LinkKind::ended, node, static_cast<std::uint32_t>(status));
    }

private:
    void turn(Instant deadline) {
        for (const host::Event& event : poller_.wait(deadline)) {
            if (event.source == host::Source::signals) on_signals();
            else if (event.source == host::Source::link) on_link();
            else if (event.source == host::Source::input_room) pump_input();
            else if (nodes_) nodes_->on_event(event.source, event.index);
        }
        is_alone_ = is_alone_ || !link_.flush();
        if (!nodes_) return;
        nodes_->hold_output(output_held_ || link_.kept_bytes() > kept_bytes_max);
        if (!nodes_->is_over()) return;
        if (deadline_ == never) children_.kill_leftovers();
        // The reader's time is not the nodes'.
        if (deadline_ == never || output_held_ || link_.kept_bytes() != 0) deadline_ = now() + output_grace;
    }

    bool is_finished() const {
        return is_refused_ || (nodes_ && nodes_->is_over() && (!nodes_->is_output_open() || now() >= deadline_));
    }

    void on_signals() {
        signalfd_siginfo info{};
        while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        }
        children_.reap([&](pid_t pid, int status) {
            if (nodes_) nodes_->on_child_end(pid, status);
        });
    }

    void on_link() {
        const bool open = link_.read();
        while (true) {
            auto frame = link_.reader().next();
            if (!frame) {
                std::fprintf(stderr, "kumi host-helper: %s; kumi run starts it, nobody else does\n",
                             frame.error().text().c_str());
                is_alone_ = true;
                return;
            }
            if (!*frame) break;
            on_link_frame(**frame);
        }
        is_alone_ = !open;
    }

    void on_link_frame(LinkFrame& frame) {
        switch (frame.kind) {
        case LinkKind::job: return on_job(frame.body);
        case LinkKind::frame: return on_answer(frame);
        case LinkKind::signal:
            if (nodes_) nodes_->signal(static_cast<int>(frame.value));
            return;
        case LinkKind::hold: output_held_ = true; return;
        case LinkKind::resume: output_held_ = false; return;
        case LinkKind::input: input_.add(text_of(frame.body)); return pump_input();
        default: return;
        }
    }

    void on_answer(const LinkFrame& frame) {
        const bool known =
            frame.node == host::every_node || (frame.node >= first_ && frame.node - first_ < pids_.size());
        if (!nodes_ || !known) return;
        nodes_->send(frame.node, std::make_shared<const std::vector<std::byte>>(
                                     boot::encode(static_cast<boot::Kind>(frame.value), frame.body)));
    }

    void on_job(Bytes body) {
        if (nodes_) return;
        if (const auto started = start(body); !started) {
            link_.send(LinkKind::refused, 0, 0, bytes_of(std::string_view(started.error().text())));
            is_refused_ = true;
            return;
        }
        link_.send(LinkKind::started, 0, 0, std::as_bytes(std::span(pids_)));
    }

    Result<void> start(Bytes body) {
        auto order = decode_order(body);
        if (!order) return order.error();
        first_ = order->first;
        for (const std::string& variable : order->environment)
            ::setenv(std::string(host::name_of(variable)).c_str(),
                     variable.c_str() + std::min(variable.size(), host::name_of(variable).size() + 1), 1);
        if (::chdir(order->folder.c_str()) != 0)
            return error(
                "{}, where kumi run was started, cannot be entered there: {}; cd to a folder that all hosts have",
                order->folder, std::generic_category().message(errno));
        ::setenv("PWD", order->folder.c_str(), 1);
        auto program = host::find_program(order->program);
        if (!program) return program.error();
        if (auto fits = host::check_limits(order->count); !fits) return fits;

        host::NodesOptions options{.first = order->first,
                                   .count = order->count,
                                   .nodes = order->nodes,
                                   .program = *std::move(program),
                                   .arguments = std::move(order->arguments),
                                   .environment = host::own_environment(),
                                   .bind = order->bind,
                                   .terminal = {},
                                   .input = {},
                                   .cluster = {},
                                   .mpi = {}};
        if (!order->job_name.empty() && !order->parts.empty()) {
            const std::size_t own = host::part_of(order->parts, order->first);
            options.mpi =
                host::JobMap{std::move(order->job_name), std::move(order->parts), own, order->mpi_over_kumi};
        }
        if (order->is_terminal) options.terminal = winsize{order->rows, order->columns, 0, 0};
        if (order->cluster_text) {
            auto file = file_of(*order->cluster_text);
            if (!file) return file.error();
            options.cluster = *std::move(file);
        }
        if (order->first == 0) {
            auto input = input_.open();
            if (!input) return input.error();
            options.input = *std::move(input);
        }
        nodes_.emplace(std::move(options), poller_, children_, *this);
        return nodes_->start();
    }

    void pump_input() {
        if (!input_.is_open()) return;
        const int pipe = input_.to_node();
        const std::size_t taken = input_.pump();
        if (taken != 0) link_.send(LinkKind::taken, 0, static_cast<std::uint32_t>(taken));
        if (!input_.is_open()) return;
        if (input_.has_more()) poller_.watch(pipe, {host::Source::input_room, 0}, EPOLLOUT);
        else poller_.forget(pipe);
    }

    host::Poller& poller_;
    host::Children& children_;
    int signals_;
    Link link_;
    std::optional<host::Nodes> nodes_; // once they are ordered
    std::uint32_t first_ = 0;
    std::vector<pid_t> pids_;
    NodeInput input_;
    bool output_held_ = false; // by kumi run
    bool is_refused_ = false;
    bool is_alone_ = false;     // kumi run is gone
    Instant deadline_ = never;  // for output, when all nodes have ended
};

} // namespace

int help_kumi_run(std::string_view version) {
    const auto complain = [](const Error& reason) {
        std::fprintf(stderr, "kumi host-helper: %s\n", reason.text().c_str());
        return 1;
    };
    host::adopt_orphans();
    auto children = host::Children::open();
    if (!children) return complain(children.error());
    auto poller = host::Poller::open();
    if (!poller) return complain(poller.error());
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &watched, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    const base::Descriptor signals(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals) return complain(system_error(errno, "preparing to watch the nodes"));
    poller->watch(signals.get(), {host::Source::signals, 0}, EPOLLIN);
    Helper helper(*poller, *children, signals.get());
    return helper.run(version);
}

} // namespace kumi::launch::remote
