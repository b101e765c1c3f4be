#include "kumi/device/mpi/endpoint.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/sync/futex.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <sched.h>
#include <utility>

namespace kumi::device::mpi {

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t large_to_one_max = 2; // one is filled while the other is sent
constexpr std::uint32_t yields_max = 64;      // before naps
constexpr Duration nap_min = 10us;
constexpr Duration nap_max = 200us;

constexpr std::uint64_t token_of(std::uint32_t packet, std::uint32_t large) {
    return (std::uint64_t{large} << 32) | packet;
}
constexpr std::uint32_t packet_in(std::uint64_t token) { return static_cast<std::uint32_t>(token); }
constexpr std::uint32_t large_in(std::uint64_t token) { return static_cast<std::uint32_t>(token >> 32); } // 0: none

Node node_count(MPI_Comm comm) {
    int count = 0;
    MPI_Comm_size(comm, &count);
    return static_cast<Node>(count);
}

} // namespace

Endpoint::Endpoint(MPI_Comm own, const Options& options)
    : comm_(own),
      options_(options), traits_{.device = "mpi",
                                 .message_bytes_max = options.message_bytes_max,
                                 // In each direction one window inside MPI, and one here behind a large message.
                                 .bytes_per_peer_max =
                                     2 * (window_packets * (options.packet_bytes + options.page_bytes + sizeof(Held)) +
                                          sizeof(Peer)),
                                 .latency_class_ns = 1'000,
                                 .bandwidth_class_mb = 5'000,
                                 .ignores_deadlines = options.sleeps_in_mpi},
      peers_(node_count(own)), receives_end_(options.receives + options.page_receives),
      large_receives_(receives_end_, options.large_receives_max),
      large_sends_(large_receives_.end(), options.large_sends_max),
      page_sends_(large_sends_.end() + 1, options.page_sends_max), sends_(page_sends_.end(), options.sends_max),
      barrier_(large_sends_.end()), requests_(sends_.end(), options.sleeps_in_mpi),
      packets_(
          std::make_unique_for_overwrite<std::byte[]>((options.receives + options.sends_max) * options.packet_bytes)),
      pages_(std::make_unique_for_overwrite<std::byte[]>((options.page_receives + options.page_sends_max) *
                                                         options.page_bytes)),
      large_buffers_(large_sends_.end()), large_messages_(large_sends_.end()), page_nodes_(options.page_sends_max) {
    KUMI_ASSERT(options.receives != 0 && options.page_receives != 0 &&
                options.message_bytes_max <= std::numeric_limits<int>::max());
    KUMI_ASSERT(options.packet_bytes > sizeof(PacketHeader) && options.page_bytes > options.packet_bytes);
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    self_ = static_cast<Node>(rank);
    ready_.reserve(2 * receives_end_);
    kept_back_.reserve(options.large_receives_max);
    for (std::uint32_t index = 0; index < receives_end_; ++index) post_receive(index);
}

bool Endpoint::is_page(std::uint32_t index) const noexcept {
    return index < receives_end_ ? index >= options_.receives : page_sends_.has(index);
}

std::byte* Endpoint::packet(std::uint32_t index) noexcept {
    const bool is_receive = index < receives_end_;
    if (!is_page(index))
        return &packets_[(is_receive ? index : options_.receives + index - sends_.first()) * options_.packet_bytes];
    return &pages_[(is_receive ? index - options_.receives : options_.page_receives + index - page_sends_.first()) *
                   options_.page_bytes];
}

/// Null if there is no memory.
std::byte* Endpoint::large_buffer(std::uint32_t index) noexcept {
    auto& buffer = large_buffers_[index];
    if (!buffer) buffer.reset(new (std::nothrow) std::byte[options_.message_bytes_max]);
    return buffer.get();
}

// ---- sending

pm::SendSlot Endpoint::try_reserve(Node to, std::size_t bytes) noexcept {
    KUMI_ASSERT(to < nodes() && bytes <= options_.message_bytes_max);
    Peer& peer = peers_[to];
    const bool is_large = bytes > options_.page_bytes - sizeof(PacketHeader);
    const bool is_page_sized = !is_large && bytes > options_.packet_bytes - sizeof(PacketHeader);
    IndexPool& sends = is_page_sized ? page_sends_ : sends_;
    if (peer.has_left) return {};
    if (peer.next - peer.taken >= window_packets - 1) return refuse();
    if (is_large && peer.large_under_way == large_to_one_max) return refuse();
    // leave some for the other nodes
    if (is_page_sized && peer.pages_under_way >= std::max(1u, options_.page_sends_max / 2)) return refuse();
    const auto is_full = [&] { return !sends.has_free() || (is_large && !large_sends_.has_free()); };
    if (is_full() && !is_polling_) collect(); // not in poll(), which delivers only what it found at its start
    if (is_full()) return refuse();
    if (!is_large) {
        const std::uint32_t index = sends.take();
        if (is_page_sized) {
            page_nodes_[index - page_sends_.first()] = to;
            ++peer.pages_under_way;
        }
        return {to, MutableBytes(packet(index) + sizeof(PacketHeader), bytes), token_of(index, 0)};
    }
    const std::uint32_t large = large_sends_.take();
    std::byte* const buffer = large_buffer(large);
    if (buffer == nullptr) return large_sends_.give_back(large), refuse();
    ++peer.large_under_way;
    return {to, MutableBytes(buffer, bytes), token_of(sends_.take(), large)};
}

pm::SendSlot Endpoint::refuse() noexcept {
    has_refused_ = true;
    return {};
}

void Endpoint::give_back_send(std::uint32_t index) noexcept {
    if (!is_page(index)) return sends_.give_back(index);
    --peers_[page_nodes_[index - page_sends_.first()]].pages_under_way;
    page_sends_.give_back(index);
}

void Endpoint::commit(const pm::SendSlot& slot) noexcept {
    const Node to = slot.to();
    Peer& peer = peers_[to];
    const std::size_t bytes = slot.bytes().size();
    const std::uint32_t large = large_in(slot.token());
    const std::uint32_t sequence = peer.next;
    send_packet(to, packet_in(slot.token()), large == 0 ? Kind::small : Kind::large, bytes);
    if (large != 0) {
        large_messages_[large] = {to, sequence};
        ++sends_under_way_;
        MPI_Isend(slot.bytes().data(), static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to), large_tag(sequence),
                  comm_, requests_.begin(large));
    }
    ++peer.sent.messages;
    peer.sent.bytes += bytes;
}

void Endpoint::cancel(const pm::SendSlot& slot) noexcept {
    give_back_send(packet_in(slot.token()));
    if (const std::uint32_t large = large_in(slot.token()); large != 0) {
        large_sends_.give_back(large);
        --peers_[slot.to()].large_under_way;
    }
    on_room();
}

/// Sends a packet whose content has been written.
void Endpoint::send_packet(Node to, std::uint32_t index, Kind kind, std::size_t bytes) noexcept {
    know(to);
    Peer& peer = peers_[to];
    peer.told = peer.arrivals.taken();
    const PacketHeader header{kind == Kind::credit ? 0 : peer.next++, peer.told, kind,
                              static_cast<std::uint32_t>(bytes)};
    std::memcpy(packet(index), &header, sizeof header);
    const std::size_t carried = sizeof header + (kind == Kind::small ? bytes : 0);
    ++sends_under_way_;
    MPI_Isend(packet(index), static_cast<int>(carried), MPI_BYTE, static_cast<int>(to),
              is_page(index) ? page_tag : packet_tag, comm_, requests_.begin(index));
}

void Endpoint::know(Node node) noexcept {
    if (!std::exchange(peers_[node].is_known, true) && node != self_) known_.push_back(node);
}

// ---- what MPI has done

std::size_t Endpoint::collect(bool waits) noexcept {
    take_back_kept();
    if (ready_handled_ != 0) {
        ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(ready_handled_));
        ready_handled_ = 0;
    }
    const std::size_t count = requests_.collect(
        waits, [this](std::uint32_t index, const MPI_Status& status) { on_completed(index, status); });
    if (count != 0) idle_sleeps_.store(0, std::memory_order_relaxed); // a hint
    return count;
}

void Endpoint::on_completed(std::uint32_t index, const MPI_Status& status) noexcept {
    if (index < receives_end_) {
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        ready_.push_back({index, static_cast<std::uint32_t>(bytes), static_cast<Node>(status.MPI_SOURCE)});
    } else if (large_receives_.has(index)) {
        const LargeMessage& message = large_messages_[index];
        Peer& peer = peers_[message.node];
        peer.arrivals.held(message.sequence).state = Held::State::complete;
        if (peer.arrivals.complete() != nullptr && !std::exchange(peer.is_deliverable, true))
            deliverable_.push_back(message.node);
    } else if (index == barrier_) {
        is_barrier_over_ = true;
    } else {
        --sends_under_way_;
        on_room();
        if (large_sends_.has(index)) {
            --peers_[large_messages_[index].node].large_under_way;
            large_sends_.give_back(index);
        } else {
            give_back_send(index);
        }
    }
}

void Endpoint::post_receive(std::uint32_t index) noexcept {
    const bool is_for_page = is_page(index);
    MPI_Irecv(packet(index), static_cast<int>(is_for_page ? options_.page_bytes : options_.packet_bytes), MPI_BYTE,
              MPI_ANY_SOURCE, is_for_page ? page_tag : packet_tag, comm_, requests_.begin(index));
}

// ---- receiving

std::size_t Endpoint::poll(pm::Handler handler, std::size_t messages_max) noexcept {
    KUMI_ASSERT(!is_polling_); // a handler must not poll
    is_polling_ = true;
    collect();
    std::size_t handed_out = 0;
    while (handed_out < messages_max) {
        if (!deliverable_.empty()) handed_out += hand_out_held(handler) ? 1 : 0;
        else if (ready_handled_ < ready_.size()) handed_out += on_packet(ready_[ready_handled_++], handler) ? 1 : 0;
        else break;
    }
    is_polling_ = false;
    give_credits();
    return handed_out;
}

/// True if a message was delivered.
bool Endpoint::on_packet(const Ready& ready, pm::Handler handler) noexcept {
    const auto [index, bytes, source] = ready;
    PacketHeader header{};
    if (!read_value(Bytes(packet(index), bytes), header) || header.kind > Kind::credit ||
        (header.kind == Kind::small ? header.bytes != bytes - sizeof header
                                    : header.bytes > options_.message_bytes_max)) {
        ++unsound_count_;
        post_receive(index);
        return false;
    }
    know(source);
    Peer& peer = peers_[source];
    // Credit packets may complete out of order.
    if (const std::uint32_t more = header.taken - peer.taken; more != 0 && more <= peer.next - peer.taken) {
        peer.taken = header.taken;
        on_room();
    }
    const std::byte* const message = packet(index) + sizeof header;
    const bool is_handed_out = header.kind == Kind::small && peer.arrivals.take_at_once(header.sequence);
    if (is_handed_out) {
        pm::Message received(source, Bytes(message, header.bytes));
        handler(received);
        on_taken(source);
    } else if (header.kind != Kind::credit) {
        hold(source, header, message);
    }
    post_receive(index);
    accept_held(source);
    return is_handed_out;
}

void Endpoint::hold(Node source, const PacketHeader& header, const std::byte* message) noexcept {
    Held packet{.kind = header.kind, .bytes = header.bytes};
    if (header.kind == Kind::small) {
        packet.copy = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(header.bytes, 1));
        copy_bytes(packet.copy.get(), Bytes(message, header.bytes));
        ++held_count_;
    }
    if (!peers_[source].arrivals.hold(header.sequence, std::move(packet))) ++unsound_count_;
}

void Endpoint::accept_held(Node source) noexcept {
    Peer& peer = peers_[source];
    for (;;) {
        const std::uint32_t sequence = peer.arrivals.accepted();
        const Held* const packet = peer.arrivals.accept();
        if (packet == nullptr) break;
        if (packet->kind == Kind::large) announced_.push_back({source, sequence});
    }
    begin_large_receives();
    if (peer.arrivals.complete() != nullptr && !std::exchange(peer.is_deliverable, true))
        deliverable_.push_back(source);
}

void Endpoint::begin_large_receives() noexcept {
    while (!announced_.empty() && large_receives_.has_free()) {
        const std::uint32_t index = large_receives_.take();
        std::byte* const buffer = large_buffer(index);
        if (buffer == nullptr) return large_receives_.give_back(index); // tried again when the next buffer is returned
        const LargeMessage message = announced_.front();
        announced_.pop_front();
        Held& packet = peers_[message.node].arrivals.held(message.sequence);
        packet.buffer = index;
        large_messages_[index] = message;
        MPI_Irecv(buffer, static_cast<int>(packet.bytes), MPI_BYTE, static_cast<int>(message.node),
                  large_tag(message.sequence), comm_, requests_.begin(index));
    }
}

void Endpoint::give_back_large_receive(std::uint32_t index) noexcept {
    large_receives_.give_back(index);
    begin_large_receives();
}

/// Delivers a held message of the node whose turn it is. True if there was one.
bool Endpoint::hand_out_held(pm::Handler handler) noexcept {
    const Node source = deliverable_.front();
    Peer& peer = peers_[source];
    Held* const packet = peer.arrivals.complete();
    if (packet == nullptr) {
        deliverable_.pop_front();
        peer.is_deliverable = false;
        return false;
    }
    if (packet->kind == Kind::goodbye) {
        peer.has_left = has_news_ = true;
        goodbyes_heard_ += source != self_ ? 1 : 0;
        peer.arrivals.take();
        return false;
    }
    if (packet->kind == Kind::large) {
        pm::Message message(source, Bytes(large_buffers_[packet->buffer].get(), packet->bytes), this, packet->buffer);
        handler(message);
        if (!message.was_kept()) give_back_large_receive(packet->buffer);
    } else {
        pm::Message message(source, Bytes(packet->copy.get(), packet->bytes));
        handler(message);
    }
    peer.arrivals.take();
    on_taken(source);
    return true;
}

void Endpoint::on_taken(Node source) noexcept {
    Peer& peer = peers_[source];
    if (peer.arrivals.taken() - peer.told < window_packets / 2 || is_closing_) return;
    if (!std::exchange(peer.is_owed_credit, true)) owed_.push_back(source);
}

/// Sends credit to the nodes to which no other packet has carried it.
void Endpoint::give_credits() noexcept {
    std::erase_if(owed_, [this](Node node) {
        Peer& peer = peers_[node];
        const bool is_due = !peer.has_left && !is_closing_ && peer.arrivals.taken() - peer.told >= window_packets / 2;
        if (is_due && !sends_.has_free()) return false;
        if (is_due) {
            send_packet(node, sends_.take(), Kind::credit, 0);
            ++credits_count_;
        }
        peer.is_owed_credit = false;
        return true;
    });
}

// ---- kept messages

void Endpoint::release(std::uint64_t token) noexcept {
    const std::lock_guard lock(kept_back_mutex_);
    kept_back_.push_back(static_cast<std::uint32_t>(token));
    has_kept_back_.store(true, std::memory_order_release); // partner: the load in take_back_kept(), which then locks
}

void Endpoint::take_back_kept() noexcept {
    if (!has_kept_back_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(kept_back_mutex_);
    has_kept_back_.store(false, std::memory_order_relaxed); // under the lock, as release() writes it
    for (const std::uint32_t index : kept_back_) give_back_large_receive(index);
    kept_back_.clear();
}

// ---- sleeping

bool Endpoint::arm() noexcept {
    if (collect() != 0) return false;
    give_credits();
    if (std::exchange(has_news_, false)) {
        has_refused_ = false;
        return false;
    }
    return ready_handled_ == ready_.size() && deliverable_.empty();
}

void Endpoint::sleep(Instant deadline) noexcept {
    if (options_.sleeps_in_mpi) {
        collect(true);
        return;
    }
    if (woken_.exchange(0) != 0) return;
    // Relaxed: the length of a nap is only a guess.
    const std::uint32_t sleeps = idle_sleeps_.fetch_add(1, std::memory_order_relaxed);
    if (sleeps < yields_max) {
        ::sched_yield();
        return;
    }
    const std::uint32_t doublings = std::min((sleeps - yields_max) / 4, 8u);
    const Duration nap = std::min(nap_max, nap_min * (1u << doublings));
    base::futex_wait(woken_, 0, std::min(deadline, now() + nap));
    woken_.store(0);
}

void Endpoint::wake() noexcept {
    woken_.store(1);
    base::futex_wake(woken_);
}

// ---- leaving

bool Endpoint::close(Instant deadline) noexcept {
    is_closing_ = true;
    for (;;) {
        say_goodbyes();
        const std::size_t dropped = poll([](pm::Message&) {}, pm::all_messages);
        if (is_over()) break;
        if (dropped != 0) continue;
        if (now() >= deadline) return false;
        if (arm()) sleep(deadline);
    }
    end_receives();
    MPI_Comm_free(&comm_);
    return true;
}

void Endpoint::say_goodbyes() noexcept {
    while (goodbyes_said_ < known_.size() && sends_.has_free())
        send_packet(known_[goodbyes_said_++], sends_.take(), Kind::goodbye, 0);
}

bool Endpoint::is_over() noexcept {
    Peer& own = peers_[self_];
    if (goodbyes_said_ < known_.size() || goodbyes_heard_ < known_.size() || is_sending() ||
        own.next != own.arrivals.taken())
        return false;
    if (!std::exchange(is_in_barrier_, true)) MPI_Ibarrier(comm_, requests_.begin(barrier_));
    return is_barrier_over_;
}

void Endpoint::end_receives() noexcept {
    for (std::uint32_t index = 0; index < receives_end_; ++index) {
        if (requests_.at(index) == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&requests_.at(index));
        MPI_Wait(&requests_.at(index), MPI_STATUS_IGNORE);
    }
}

std::vector<Node> Endpoint::staying() const {
    std::vector<Node> nodes;
    for (const Node node : known_)
        if (!peers_[node].has_left) nodes.push_back(node);
    return nodes;
}

std::vector<pm::Counter> Endpoint::counters() const {
    return {{"packets_held", held_count_}, {"credits_sent", credits_count_}, {"packets_unsound", unsound_count_}};
}

} // namespace kumi::device::mpi
