#include "kumi/launch/host/nodes.hpp"

#include "kumi/launch/host/processes/environment.hpp"
#include "kumi/launch/host/output_path.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

// The numbers under which a node finds what it gets besides its standard streams.
constexpr int boot_socket_number = 3;
constexpr int cluster_number = 4;

constexpr const char* cluster_variable = "KUMI_CLUSTER";

} // namespace

Nodes::Nodes(NodesOptions options, Poller& poller, Children& children, Listener& listener)
    : options_(std::move(options)), poller_(poller), children_(children), listener_(listener),
      sharing_(options_.count) {
    std::vector<std::string> added{fmt::format("{}={}", boot::socket_variable, boot_socket_number),
                                   fmt::format("KUMI_NODES={}", options_.nodes)};
    if (options_.cluster) added.push_back(fmt::format("{}=/proc/self/fd/{}", cluster_variable, cluster_number));
    options_.environment = with(without_other_launchers(std::move(options_.environment)), added);
}

// ---- starting

Result<void> Nodes::start() {
    const MpiNeed need = options_.mpi ? mpi_need_of(options_.program) : MpiNeed::none;
    if (need != MpiNeed::none) {
        pmi_.emplace(*std::move(options_.mpi), poller_, children_, listener_);
        if (auto started = pmi_->start(options_.program, need); !started) return started;
    }
    std::vector<BoundCore> cores = options_.bind ? bind_nodes(options_.count) : std::vector<BoundCore>{};
    for (std::uint32_t slot = 0; slot < options_.count; ++slot)
        if (auto started = start_node(slot, cores.empty() ? nullptr : &cores[slot]); !started) return started;
    return {};
}

Result<void> Nodes::start_node(std::uint32_t slot, BoundCore* core) {
    auto out = make_output_path(options_.terminal);
    if (!out) return out.error();
    auto err = make_output_path({});
    if (!err) return err.error();
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return system_error(errno, "making a socket for a node");
    base::Descriptor ours(sockets[0]);
    const base::Descriptor theirs(sockets[1]);
    const bool has_input = slot == 0 && options_.input;
    const base::Descriptor input =
        has_input ? std::move(options_.input) : base::Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));

    ProcessOptions process{.program = options_.program,
                           .arguments = options_.arguments,
                           .environment =
                               with(options_.environment, {fmt::format("KUMI_NODE={}", options_.first + slot),
                                                           fmt::format("KUMI_HOST_SLOT={}", slot)}),
                           .binding = {},
                           .descriptors = {input.get(), out->nodes.get(), err->nodes.get(), theirs.get()}};
    if (options_.cluster) process.descriptors.push_back(options_.cluster.get());
    base::Descriptor pmi_socket;
    if (pmi_) {
        auto socket = pmi_->open_slot(slot, static_cast<int>(process.descriptors.size()), process.environment);
        if (!socket) return socket.error();
        pmi_socket = *std::move(socket);
        process.descriptors.push_back(pmi_socket.get());
    }
    if (core != nullptr) process.binding = core->processors;
    const auto pid = children_.start(process);
    if (!pid) return pid.error();

    NodeProcess& mine = nodes_.emplace_back();
    mine.pid = *pid;
    mine.boot = std::move(ours);
    mine.out = std::move(out->ours);
    mine.err = std::move(err->ours);
    if (core != nullptr) mine.core_claim = std::move(core->claim);
    poller_.watch(mine.boot.get(), {Source::boot, slot}, EPOLLIN);
    poller_.watch(mine.out.get(), {Source::out, slot}, EPOLLIN);
    poller_.watch(mine.err.get(), {Source::err, slot}, EPOLLIN);
    listener_.on_started(options_.first + slot, *pid);
    return {};
}

// ---- what they say

void Nodes::on_event(Source source, std::uint32_t slot) {
    switch (source) {
    case Source::boot: return on_boot(slot);
    case Source::out: return on_output(slot, Stream::out);
    case Source::err: return on_output(slot, Stream::err);
    case Source::pmi:
    case Source::pmix: return pmi_->on_event(source, slot);
    default: return;
    }
}

void Nodes::on_boot(std::uint32_t slot) {
    NodeProcess& mine = nodes_[slot];
    if (!mine.boot) return;
    const bool open = mine.frames.read_from(mine.boot.get());
    bool sound = true;
    while (sound) {
        auto frame = mine.frames.next();
        sound = frame.has_value();
        if (!sound) say_failed(slot, frame.error().text());
        if (!sound || !*frame) break;
        if (!boot::is_of_node((*frame)->kind)) continue;
        if ((*frame)->kind == boot::Kind::share) on_share(slot, std::move((*frame)->descriptor));
        else listener_.on_frame(options_.first + slot, std::move(**frame));
    }
    if (!open || !sound) {
        poller_.forget(mine.boot.get());
        mine.boot.reset();
    }
    send_letters(slot);
}

/// In the node's name.
void Nodes::say_failed(std::uint32_t slot, const std::string& why) {
    const Bytes text = bytes_of(std::string_view(why));
    listener_.on_frame(options_.first + slot, boot::Frame{boot::Kind::failed, {text.begin(), text.end()}, {}});
}

void Nodes::on_share(std::uint32_t slot, base::Descriptor descriptor) {
    for (Sharing::Answer& answer : sharing_.on_share(slot, std::move(descriptor))) {
        auto frame = boot::encode(boot::Kind::shared, {}, answer.descriptor != nullptr);
        post(answer.slot, std::make_shared<const std::vector<std::byte>>(std::move(frame)),
             std::move(answer.descriptor));
    }
}

void Nodes::on_output(std::uint32_t slot, Stream stream) {
    base::Descriptor& from = stream == Stream::out ? nodes_[slot].out : nodes_[slot].err;
    if (!from || held_) return;
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got > 0)
        return listener_.on_output(options_.first + slot, stream, {buffer.data(), static_cast<std::size_t>(got)});
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    poller_.forget(from.get());
    from.reset();
    listener_.on_output(options_.first + slot, stream, "");
}

bool Nodes::is_output_open() const {
    return std::any_of(nodes_.begin(), nodes_.end(), [](const NodeProcess& node) { return node.out || node.err; });
}

void Nodes::read_rest() {
    hold_output(false);
    for (std::uint32_t slot = 0; slot < nodes_.size(); ++slot)
        for (const auto& [from, stream] :
             {std::pair{&nodes_[slot].out, Stream::out}, {&nodes_[slot].err, Stream::err}}) {
            // No more than a pipe can hold, 16 pages of at most 64 KiB: a process that still fills it is no node.
            for (int reads = 0; reads < 16 && *from; ++reads) {
                pollfd ready{from->get(), POLLIN, 0};
                if (::poll(&ready, 1, 0) <= 0) break;
                on_output(slot, stream);
            }
        }
}

void Nodes::on_child_end(pid_t pid, int status) {
    const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                    [&](const NodeProcess& node) { return node.pid == pid && !node.ended; });
    if (found == nodes_.end()) {
        if (pmi_) pmi_->on_child_end(pid, status);
        return;
    }
    const auto slot = static_cast<std::uint32_t>(found - nodes_.begin());
    found->ended = true;
    found->core_claim.reset();
    ++ended_count_;
    on_boot(slot); // its last words
    if (pmi_) pmi_->read_last_words(slot);
    if (pmi_ && is_over()) pmi_->stop();
    listener_.on_end(options_.first + slot, status);
}

// ---- what they are told

void Nodes::send(std::uint32_t node, const SharedFrame& frame) {
    boot::FrameHeader header{};
    if (read_value(*frame, header) && !boot::is_of_node(header.kind)) {
        if (pmi_) pmi_->on_answer(frame);
        return;
    }
    if (node != every_node) return post(node - options_.first, frame);
    for (std::uint32_t slot = 0; slot < nodes_.size(); ++slot) post(slot, frame);
}

void Nodes::post(std::uint32_t slot, SharedFrame frame, std::shared_ptr<base::Descriptor> descriptor) {
    nodes_[slot].letters.add(std::move(frame), std::move(descriptor));
    send_letters(slot);
}

void Nodes::send_letters(std::uint32_t slot) {
    NodeProcess& mine = nodes_[slot];
    if (mine.boot) want_room(slot, mine.letters.send(mine.boot.get()));
}

void Nodes::want_room(std::uint32_t slot, bool wanted) {
    NodeProcess& mine = nodes_[slot];
    if (wanted == mine.wants_room) return;
    mine.wants_room = wanted;
    poller_.watch(mine.boot.get(), {Source::boot, slot}, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Nodes::signal(int number) {
    for (const NodeProcess& node : nodes_)
        if (!node.ended) children_.signal(node.pid, number);
}

void Nodes::hold_output(bool hold) {
    if (hold == held_) return;
    held_ = hold;
    for (std::uint32_t slot = 0; slot < nodes_.size(); ++slot)
        for (const auto& [from, source] :
             {std::pair{&nodes_[slot].out, Source::out}, {&nodes_[slot].err, Source::err}}) {
            if (!*from) continue;
            if (hold) poller_.forget(from->get());
            else poller_.watch(from->get(), {source, slot}, EPOLLIN);
        }
}

} // namespace kumi::launch::host
