#include "kumi/reliable/endpoint/endpoint.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <utility>

namespace kumi::reliable {
namespace {

constexpr std::size_t idle_bytes_max = std::size_t{64} << 20;

std::size_t capacity_for(std::size_t bytes) noexcept { return std::size_t{1} << BlockPool::size_class_of(bytes); }

/// The packet size, reduced so that two packets fit into the credit that the peer guarantees.
std::uint32_t fitting(std::uint32_t packet_bytes, std::uint32_t credit_guaranteed) noexcept {
    return std::clamp((credit_guaranteed / 2 - weight_of(0)) & ~7u, packet_bytes_min, packet_bytes);
}

/// Most weight of packets from one peer that are not read yet. It is a window of the smallest packets. The window alone
/// does not ensure this: while readers keep messages, packets are acknowledged but not read.
std::uint32_t unread_weight_max(const EndpointOptions& options) noexcept {
    return options.window_packets_max * weight_of(sizeof(PacketHeader) + sizeof(RecordHeader));
}

/// How often messages that wait for memory are tried again, and peers are checked that are said not to listen.
constexpr Duration look_interval = std::chrono::milliseconds(20);

constexpr std::size_t queue_bytes = std::size_t{1} << 19;

std::size_t queue_bytes_max(const EndpointOptions& options) noexcept {
    // A copied message lies between the headers of its packets.
    const std::size_t head_share = options.message_bytes_max / (packet_bytes_min - piece_head_bytes) + 1;
    return std::max(queue_bytes, 2 * capacity_for(options.message_bytes_max + head_share * piece_head_bytes));
}

} // namespace

Endpoint::Endpoint(const EndpointOptions& options)
    : options_(options), pool_(idle_bytes_max),
      guaranteed_(std::min(CreditPool::guaranteed(options.receive_bytes, options.nodes, packet_bytes_min),
                         unread_weight_max(options))),
      credits_(options.receive_bytes, options.nodes, guaranteed_, unread_weight_max(options), options.first_sequence),
      peers_(options.nodes), ready_(options.nodes), reports_(options.nodes) {
    KUMI_ASSERT((options.window_packets_max & (options.window_packets_max - 1)) == 0);
    KUMI_ASSERT(options.window_packets_max <= ack_words_max * 64); // else packets that arrived would be taken for lost
    if (has_watch()) deadline_ = next_watch_ = Instant{}; // the first on_time() sets it
    timed_.reserve(options.nodes);
    open_.reserve(options.nodes);
    stalled_.reserve(options.nodes);
    checks_.reserve(options.nodes);
    touched_.reserve(options.nodes);
    narrow_.reserve(options.nodes);
}

Introduction Endpoint::introduction() const noexcept {
    return {.incarnation = options_.incarnation, .credit_guaranteed = guaranteed_};
}

void Endpoint::introduce(Node peer, const Introduction& introduction) {
    const PathSize path(introduction.sure_bytes, fitting(introduction.packet_bytes, introduction.credit_guaranteed));
    const SenderOptions sending{.packet_bytes = path.bytes(),
                                .window_packets_max = options_.window_packets_max,
                                .queue_bytes = queue_bytes,
                                .credit_guaranteed = introduction.credit_guaranteed,
                                .first_sequence = options_.first_sequence,
                                .hold_max = options_.hold_max};
    const ReceiverOptions receiving{.peer = peer,
                                    .window_packets_max = options_.window_packets_max,
                                    .message_bytes_max = options_.message_bytes_max,
                                    .held_bytes_max = capacity_for(options_.message_bytes_max),
                                    .aside_bytes_max = 2 * options_.receive_bytes,
                                    .first_sequence = options_.first_sequence,
                                    .ack_delay_max = options_.ack_delay_max};
    auto made = std::make_unique<Peer>(pool_, sending, receiving, path);
    made->incarnation = introduction.incarnation;
    made->transmission = options_.first_sequence + 1;
    made->heard_at = awake_;
    if (const auto& old = peers_[peer]) { // it stays in the lists that it is in
        made->ready = old->ready;
        made->timed = old->timed;
        made->open = old->open;
        made->stalled = old->stalled;
        made->touched = old->touched;
        old->receiver.clear();
        made->receiver.on_kept(old->receiver.held_bytes());
        credits_.reset(peer);
    }
    peers_[peer] = std::move(made);
}

std::size_t Endpoint::bytes_per_peer_max(const EndpointOptions& options) noexcept {
    return sizeof(Peer) + Sender::slots_bytes_max(options.window_packets_max) +
           options.window_packets_max * sizeof(Block*) + queue_bytes_max(options) + Sender::packed_bytes_most +
           (options.window_packets_max / (starts_min + 1) + 1) * capacity_for(started_packet_max) +
           capacity_for(options.message_bytes_max) + 2 * options.receive_bytes +
           capacity_for(packet_bytes_max); // a packet that arrives in fragments
}

// ---- state

void Endpoint::set_packet_bytes(Node node, std::uint32_t bytes, Instant now) noexcept {
    Peer& peer = *peers_[node];
    peer.path.set_limit(fitting(bytes, peer.sender.credit_guaranteed()), now);
    peer.sender.set_packet_bytes(peer.path.bytes());
}

void Endpoint::begin_talk(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    peer.talked = true;
    peer.path.begin(now);
    if (peer.path.next_probe() <= now) make_ready(node);
}

/// Applies what was found out about the path to the sender, and to the list of narrow paths.
void Endpoint::on_path(Node node) noexcept {
    Peer& peer = *peers_[node];
    if (peer.path.bytes() != peer.sender.packet_bytes()) peer.sender.set_packet_bytes(peer.path.bytes());
    if (peer.path.take_narrow() && std::ranges::find(narrow_, node) == narrow_.end()) narrow_.push_back(node);
}

std::optional<Node> Endpoint::next_narrow_path() noexcept {
    if (narrow_.empty()) return std::nullopt;
    const Node node = narrow_.back();
    narrow_.pop_back();
    return node;
}

bool Endpoint::all_arrived() const noexcept {
    return std::all_of(peers_.begin(), peers_.end(),
                       [](const auto& peer) { return peer->gone != Gone::no || peer->sender.idle(); });
}

// ---- lists

void Endpoint::make_ready(Node peer) noexcept {
    if (std::exchange(peers_[peer]->ready, true)) return;
    ready_.push(peer);
}

void Endpoint::watch(Node peer, Instant deadline) noexcept {
    if (deadline == never) return;
    deadline_ = std::min(deadline_, deadline);
    if (!std::exchange(peers_[peer]->timed, true)) timed_.push_back(peer);
}

void Endpoint::touch(Node peer) noexcept {
    if (!std::exchange(peers_[peer]->touched, true)) touched_.push_back(peer);
}

Instant Endpoint::deadline_of(Node node, Instant now) const noexcept {
    const Peer& peer = *peers_[node];
    const Instant ack = peer.receiver.ack_deadline();
    const bool is_looked_at = peer.memory_wait.since != Instant{} || peer.refused.is_on;
    const Instant look = is_looked_at ? now + look_interval : never;
    // A peer that is ready waits for the driver, not for a time. Probes are sent along with messages: the driver is not
    // woken for them alone.
    const bool may_probe = !peer.sender.idle() && !(peer.ready && peer.path.next_probe() <= now);
    const Instant probe = may_probe ? peer.path.next_probe() : never;
    return std::min({peer.sender.deadline(now), peer.ready && ack <= now ? never : ack, look, probe});
}

// ---- messages out

std::byte* Endpoint::try_reserve(Node to, std::size_t bytes) noexcept {
    KUMI_ASSERT(bytes <= options_.message_bytes_max);
    if (is_gone(to)) return nullptr;
    Sender& sender = peers_[to]->sender;
    std::byte* const room = sender.try_reserve(bytes);
    note_memory(to, room == nullptr && sender.found_no_memory() ? bytes : 0, room != nullptr ? bytes : 0, true);
    return room;
}

void Endpoint::commit(Node to, std::size_t bytes, Instant now) noexcept {
    Peer& peer = *peers_[to];
    if (is_gone(to)) return peer.sender.cancel();
    if (!peer.sender.waits_for_peer()) peer.asked(awake_, now);
    peer.sender.commit(bytes);
    after_commit(to, now);
}

void Endpoint::cancel(Node to) noexcept { peers_[to]->sender.cancel(); }

bool Endpoint::try_send(Node to, const Pieces& message, Instant now, base::FunctionRef<void()> leave) noexcept {
    Peer& peer = *peers_[to];
    if (is_gone(to)) return false;
    if (!peer.sender.waits_for_peer()) peer.asked(awake_, now);
    const bool is_long = message.size() > peer.sender.append_bytes_max();
    const auto on_part = [&] { after_commit(to, now), leave(); };
    const bool is_taken = is_long ? peer.sender.try_append_long(message, on_part) : peer.sender.try_append(message);
    note_memory(to, !is_taken && peer.sender.found_no_memory() ? message.size() : 0, is_taken ? message.size() : 0,
                true);
    if (is_taken) after_commit(to, now);
    return is_taken;
}

void Endpoint::after_commit(Node to, Instant now) noexcept {
    Peer& peer = *peers_[to];
    if (peer.sender.is_urgent(now)) peer.sender.close_open_packet();
    if (peer.sender.has_closed()) make_ready(to);
    if (peer.sender.has_open() && !std::exchange(peer.open, true)) open_.push_back(to);
}

void Endpoint::flush() noexcept {
    for (const Node node : open_) {
        Peer& peer = *peers_[node];
        peer.open = false;
        if (!peer.sender.has_open()) continue;
        peer.sender.close_open_packet();
        make_ready(node);
    }
    open_.clear();
}

/// Sends a small message when nothing else is under way: what try_send(), next_series() and on_sent() do together.
/// After a system call the caches are full of the system's code, so every line of code that is not run counts twice.
Bytes Endpoint::try_send_now(Node to, const Pieces& message, Instant now) noexcept {
    Peer& peer = *peers_[to];
    Sender& sender = peer.sender;
    Receiver& receiver = peer.receiver;
    const bool plain = peer.gone == Gone::no && !peer.ask && !receiver.has_aside();
    const bool has_credit = credits_.outstanding(to) > guaranteed_ / 2; // else the peer must be granted more
    if (!plain || !has_credit || message.size() > sender.append_bytes_max()) return {};
    const auto packet_bytes = static_cast<std::uint32_t>(sizeof(PacketHeader) + record_bytes(message.size()));
    std::byte* const packet = sender.send_alone(packet_bytes, peer.transmission, now);
    if (packet == nullptr) return {};
    peer.asked(awake_, now);
    note_talk(to, now);
    ++peer.counters.packets_sent;
    peer.counters.bytes_sent += packet_bytes;

    write_record(packet + sizeof(PacketHeader), message);
    PacketHeader header;
    header.sequence = sender.last_sequence();
    header.flags = flag::data;
    header.bytes = static_cast<std::uint16_t>(packet_bytes);
    address(to, header, credits_.limit(to), false, now);
    OutPacket whole{packet, packet_bytes, {}, false};
    finish(peer, header, whole, 0);
    ++peer.transmission;
    watch(to, sender.timeout_deadline());
    return {packet, packet_bytes};
}

void Endpoint::on_not_sent(Node to) noexcept {
    peers_[to]->sender.send_again();
    make_ready(to);
}

} // namespace kumi::reliable
