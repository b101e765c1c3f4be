#include "kumi/device/shmem/channel.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/data/bitmap.hpp"
#include "kumi/base/sync/futex.hpp"
#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kumi::device::shmem {
namespace {

// Kinds of ring records.
constexpr std::uint16_t kind_inline = 1; // the message itself
constexpr std::uint16_t kind_buffer = 2; // a BufferRecord

/// The position of a large message in its sender's buffers.
struct BufferRecord {
    std::uint64_t bytes;
    std::uint32_t unit;
    std::uint32_t reserved;
};

// Values of SendSlot::token().
constexpr std::uint64_t token_inline = 0; // a buffer's token is its unit + 1

/// Most messages taken from one ring before the next ring is checked. The limit starts at one and doubles while each
/// poll finds more: a look at the line after the last message costs a cache miss, which a stream hides but an answer to
/// that message would wait for.
constexpr std::uint32_t window_max = 64;

/// Rings that stay watched although they are quiet: a node rarely waits for more than two at a time.
constexpr std::size_t quiet_rings_max = 2;

/// Polls between two calls of forget_quiet_rings().
constexpr std::uint32_t polls_between_sweeps = 4096;

constexpr std::uint32_t lines_for(std::size_t bytes) noexcept {
    return static_cast<std::uint32_t>((bytes + 8 + sizeof(base::RingLine) - 1) / sizeof(base::RingLine));
}

constexpr std::uint64_t bit_of(Node node) noexcept { return std::uint64_t{1} << (node % 64); }

/// A record's payload, which continues through the lines after the first.
std::byte* payload(base::RingLine* line) noexcept { return reinterpret_cast<std::byte*>(line) + 8; }

} // namespace

ShmemChannel::ShmemChannel(std::shared_ptr<Segment> segment, Node self, pm::Waker* waker, LifeLock lock)
    : segment_(std::move(segment)), self_(self), waker_(waker),
      inline_bytes_max_(static_cast<std::uint32_t>(segment_->layout().inline_bytes_max())),
      bell_(segment_->mailbox(self).bell, segment_->attention(self), segment_->fencing()),
      watched_bits_(segment_->layout().writer_words()), paced_(now()),
      attendance_(segment_, self, std::move(lock), paced_), buffers_(*segment_, self) {
    const Layout& layout = segment_->layout();
    outgoing_.reserve(layout.nodes);
    incoming_.reserve(layout.nodes);
    watched_.reserve(layout.nodes);
    refused_.reserve(layout.nodes);
    for (Node peer = 0; peer < layout.nodes; ++peer) {
        outgoing_.push_back({Writer(segment_->ring(peer, self), segment_->control(peer, self)),
                             Button(segment_->mailbox(peer).bell, segment_->attention(peer)[self / 64], self % 64,
                                    segment_->fencing())});
        incoming_.emplace_back(segment_->ring(self, peer), segment_->control(self, peer));
    }
    traits_ = {.device = "shmem",
               .message_bytes_max = layout.buffer_bytes,
               .bytes_per_peer_max = 2 * layout.bytes_per_pair() + sizeof(Outgoing) + sizeof(Reader),
               .latency_class_ns = 100,
               .bandwidth_class_mb = 10'000,
               .polls_memory = true};
}

ShmemChannel::~ShmemChannel() {
    if (attendance_.leave()) announce_departures();
}

// ---- sending

pm::SendSlot ShmemChannel::refuse(Node to, std::uint32_t lines) noexcept {
    Outgoing& out = outgoing_[to];
    if (out.lines_refused == 0) refused_.push_back(to);
    out.lines_refused = lines;
    ++sends_refused_;
    // A thread that sleeps on the channel did not know of this when it armed.
    if (is_slept_on_ && !out.ring.wait_for_room(lines)) wake_node(self_);
    return {};
}

pm::SendSlot ShmemChannel::try_reserve(Node to, std::size_t bytes) noexcept {
    KUMI_ASSERT(to < outgoing_.size());
    if (bytes > inline_bytes_max_) return try_reserve_buffer(to, bytes);
    base::RingLine* line = outgoing_[to].ring.try_reserve(lines_for(bytes));
    if (line == nullptr) [[unlikely]]
        return refuse(to, lines_for(bytes));
    return {to, MutableBytes(payload(line), bytes), token_inline};
}

pm::SendSlot ShmemChannel::try_reserve_buffer(Node to, std::size_t bytes) noexcept {
    KUMI_ASSERT(bytes <= traits_.message_bytes_max);
    if (outgoing_[to].ring.try_reserve(1) == nullptr) return refuse(to, 1);
    const auto unit = buffers_.try_take(bytes);
    if (!unit) {
        buffer_refused_ = bytes;
        ++sends_refused_;
        if (is_slept_on_ && !buffers_.wait_for(bytes)) wake_node(self_); // as in refuse()
        return {};
    }
    return {to, MutableBytes(buffers_.address(*unit), bytes), std::uint64_t{*unit} + 1};
}

void ShmemChannel::commit(const pm::SendSlot& slot) noexcept {
    Outgoing& out = outgoing_[slot.to()];
    if (slot.token() == token_inline) {
        out.ring.commit(kind_inline, static_cast<std::uint32_t>(slot.bytes().size()));
    } else {
        base::RingLine* line = out.ring.try_reserve(1); // the line that try_reserve_buffer() found
        if (line == nullptr) { // the receiver has been lost since
            KUMI_ASSERT(out.is_closed);
            return cancel(slot);
        }
        const BufferRecord record{slot.bytes().size(), static_cast<std::uint32_t>(slot.token() - 1), 0};
        buffers_.note_sent(record.unit, slot.to());
        std::memcpy(payload(line), &record, sizeof record);
        out.ring.commit(kind_buffer, sizeof record);
    }
    count_and_ring(slot.to(), slot.bytes().size());
}

inline void ShmemChannel::count_and_ring(Node to, std::size_t bytes) noexcept {
    Outgoing& out = outgoing_[to];
    ++out.sent.messages;
    out.sent.bytes += bytes;
    if (out.bell.press()) [[unlikely]]
        rouse(to);
}

[[gnu::always_inline]] inline bool ShmemChannel::try_send_inline(Node to, const Pieces& content,
                                                                 std::uint32_t lines) noexcept {
    KUMI_ASSERT(to < outgoing_.size());
    // A copy, which stays in registers: to the compiler, the bytes that are written could overlap the original.
    Writer ring = outgoing_[to].ring;
    base::RingLine* const line = ring.try_reserve(lines);
    if (line == nullptr) [[unlikely]]
        return static_cast<bool>(refuse(to, lines));
    content.copy_to(payload(line));
    ring.commit(kind_inline, static_cast<std::uint32_t>(content.size()));
    outgoing_[to].ring = ring;
    count_and_ring(to, content.size());
    return true;
}

bool ShmemChannel::try_send(Node to, Bytes bytes) noexcept {
    // With one line, the usual case, much of what the ring does is known at compile time.
    if (bytes.size() > sizeof base::RingLine::payload) return try_send(to, Bytes{}, bytes);
    return try_send_inline(to, bytes, 1);
}

bool ShmemChannel::try_send(Node to, Bytes head, Bytes body) noexcept {
    const Pieces pieces(head, body);
    if (pieces.size() > inline_bytes_max_) return pm::Channel::try_send(to, head, body);
    return try_send_inline(to, pieces, lines_for(pieces.size()));
}

void ShmemChannel::cancel(const pm::SendSlot& slot) noexcept {
    // Reserved lines need not be returned: the next reservation takes their place.
    if (slot.token() != token_inline) buffers_.give_back(static_cast<std::uint32_t>(slot.token() - 1));
}

// ---- receiving

// Inlined into poll(): the call would cost a tenth of a small message.
[[gnu::always_inline]] inline std::size_t ShmemChannel::drain(const Watched& from, pm::Handler handler,
                                                              std::size_t messages_max) noexcept {
    Reader& ring = *from.reader;
    std::size_t handled = 0;
    for (; handled < messages_max; ++handled) {
        const base::RecordHeader header = ring.front();
        if (header.kind == 0) break;
        const std::byte* record = payload(&ring.line());
        if (header.kind == kind_inline) [[likely]] {
            pm::Message message(from.node, Bytes(record, header.bytes));
            handler(message);
        } else {
            deliver_buffer(from.node, record, handler);
        }
        if (ring.pop(header)) [[unlikely]]
            wake_node(from.node);
    }
    return handled;
}

std::size_t ShmemChannel::poll(pm::Handler handler, std::size_t messages_max) noexcept {
    KUMI_ASSERT(!polling_); // a handler must not poll
    polling_ = true;
    for (std::size_t word = 0; word < watched_bits_.size(); ++word)
        if (const std::uint64_t fresh = bell_.attention(word, watched_bits_[word])) [[unlikely]]
            watch_rings(word, fresh);
    std::size_t handled = 0;
    for (Watched& ring : watched_) {
        if (ring.reader->empty()) {
            ring.window = 1;
            continue;
        }
        ring.active = true;
        handled += drain(ring, handler, std::min<std::size_t>(ring.window, messages_max - handled));
        ring.window = std::min(2 * ring.window, window_max);
        if (handled >= messages_max) [[unlikely]] { // the next poll starts with the next ring
            std::rotate(watched_.begin(), watched_.begin() + (&ring - watched_.data()) + 1, watched_.end());
            break;
        }
    }
    if (++polls_ >= polls_of_look_) [[unlikely]]
        after_many_polls();
    polling_ = false;
    return handled;
}

/// Does what is due once in so many polls: looks for nodes that are gone, and forgets quiet rings.
void ShmemChannel::after_many_polls() noexcept {
    const Instant time = now();
    pace_.on_polls(time - std::exchange(paced_, time));
    look_for_departures(time);
    if (polls_ >= polls_between_sweeps) {
        polls_ = 0;
        if (watched_.size() > quiet_rings_max) forget_quiet_rings();
    }
    polls_of_look_ = std::min(polls_ + pace_.polls(), polls_between_sweeps);
}

void ShmemChannel::watch_rings(std::size_t word, std::uint64_t bits) noexcept {
    watched_bits_[word] |= bits;
    base::for_each_bit(bits, [&](unsigned bit) {
        const auto from = static_cast<Node>(word * 64 + bit);
        watched_.push_back({.reader = &incoming_[from], .node = from});
    });
}

void ShmemChannel::forget_quiet_rings() noexcept {
    // Active rings are moved to the front; they stay, and so do a few quiet ones.
    const auto quiet =
        std::partition(watched_.begin(), watched_.end(), [](const Watched& ring) { return ring.active; });
    const auto staying = std::max<std::ptrdiff_t>(quiet - watched_.begin(), quiet_rings_max);
    const std::span<Watched> forgotten = std::span(watched_).subspan(static_cast<std::size_t>(staying));
    for (Watched& ring : watched_) ring.active = false;
    if (forgotten.empty()) return;
    for (const Watched& ring : forgotten) {
        watched_bits_[ring.node / 64] &= ~bit_of(ring.node);
        bell_.unwatch(ring.node / 64, bit_of(ring.node));
    }
    bell_.fence();
    // Check once more: a record written before the fence rang no bell.
    for (const Watched& ring : forgotten)
        if (ring.reader->front().kind != 0) bell_.watch(ring.node / 64, bit_of(ring.node));
    watched_.resize(static_cast<std::size_t>(staying));
}

void ShmemChannel::deliver_buffer(Node from, const std::byte* record, pm::Handler handler) noexcept {
    BufferRecord place{};
    std::memcpy(&place, record, sizeof place);
    const Layout& layout = segment_->layout();
    KUMI_ASSERT(place.unit < layout.units() && place.bytes <= layout.buffer_bytes - place.unit * unit_bytes);
    const std::byte* bytes = segment_->buffers(from) + std::size_t{place.unit} * unit_bytes;
    const std::uint64_t token = std::uint64_t{from} << 32 | place.unit;
    pm::Message message(from, Bytes(bytes, place.bytes), this, token);
    handler(message);
    if (!message.was_kept()) release(token);
}

void ShmemChannel::release(std::uint64_t token) noexcept {
    const auto owner = static_cast<Node>(token >> 32);
    if (return_buffer(*segment_, owner, static_cast<std::uint32_t>(token))) wake_node(owner);
}

// ---- departures

/// Makes every node look for nodes that have left or died, this one too.
void ShmemChannel::announce_departures() noexcept {
    for (Node node = 0; node < outgoing_.size(); ++node)
        if (Button::announce(segment_->mailbox(node).bell, segment_->departures(node))) rouse(node);
}

/// Looks for dead nodes if that is due, and notices those that are gone. A node that is gone is lost when its messages
/// have been handed out; until then the word stays set, for the next look.
void ShmemChannel::look_for_departures(Instant time) noexcept {
    const bool is_due = time >= attendance_.next_look();
    if (is_due && attendance_.find_dead(time)) announce_departures();
    const std::size_t word = watched_bits_.size(); // the one behind those of the writers
    // A node may die between the moment when it finds another one dead and the moment when it tells all nodes of that.
    // So the look that is due does not rely on being told.
    if (!is_due && bell_.attention(word) == 0) return;
    bell_.take(word);
    for (Node node = 0; node < outgoing_.size(); ++node) {
        if (outgoing_[node].is_closed || !attendance_.is_gone(node)) continue;
        if (incoming_[node].front().kind != 0) {
            bell_.watch(node / 64, bit_of(node)); // a node that died behind its record may not have rung the bell
            bell_.watch(word, 1);
            continue;
        }
        has_lost_ = outgoing_[node].is_closed = true;
        outgoing_[node].ring.close();
        buffers_.reclaim(node);
    }
}

// ---- sleeping

bool ShmemChannel::arm() noexcept {
    // The coarse time is ahead of now(), so that a look is due when a sleep that ends for it has ended.
    look_for_departures(now_coarse());
    // The caller may wait for a node that is lost since it last asked, be it by this look or by one of a poll.
    if (std::exchange(has_lost_, false)) return false;
    bell_.fall_asleep();
    for (std::size_t word = 0; word < watched_bits_.size(); ++word)
        if (watched_bits_[word] != 0) bell_.unwatch(word, watched_bits_[word]);
    bell_.fence();
    if (!something_to_do()) {
        watched_.clear();
        std::fill(watched_bits_.begin(), watched_bits_.end(), 0);
        return true;
    }
    bell_.wake_up();
    stop_waiting_for_room();
    for (std::size_t word = 0; word < watched_bits_.size(); ++word)
        if (watched_bits_[word] != 0) bell_.watch(word, watched_bits_[word]);
    return false;
}

/// Checks after the fence, before sleep, whether there is something to do.
bool ShmemChannel::something_to_do() noexcept {
    for (const Watched& ring : watched_)
        if (ring.reader->front().kind != 0) return true;
    for (std::size_t word = 0; word < bell_.word_count(); ++word)
        if (bell_.attention(word) != 0) return true;
    for (const Node to : refused_)
        if (!outgoing_[to].ring.wait_for_room(outgoing_[to].lines_refused)) return true;
    if (buffer_refused_ != 0 && !buffers_.wait_for(buffer_refused_)) return true;
    // Acquire (in seq_cst): partner of the store in wake().
    return woken_.exchange(false, std::memory_order_seq_cst);
}

void ShmemChannel::stop_waiting_for_room() noexcept {
    for (const Node to : refused_) {
        outgoing_[to].ring.stop_waiting();
        outgoing_[to].lines_refused = 0;
    }
    refused_.clear();
    if (buffer_refused_ != 0) buffers_.stop_waiting();
    buffer_refused_ = 0;
}

void ShmemChannel::sleep(Instant deadline) noexcept {
    KUMI_ASSERT(waker_ == nullptr); // with a waker the futex is never woken
    pm::block(begin_sleep(), deadline);
    end_sleep();
}

pm::Watched ShmemChannel::begin_sleep() noexcept {
    ++sleeps_;
    is_slept_on_ = true;
    const Instant deadline = attendance_.next_look();
    if (waker_ != nullptr) return {.deadline = deadline};
    return {.deadline = deadline, .word = &bell_.state().asleep, .value = 1};
}

void ShmemChannel::end_sleep() noexcept {
    is_slept_on_ = false;
    bell_.wake_up();
    stop_waiting_for_room();
    // Acquire: partner of the store in wake(): a wake-up that this sleep consumes has made visible what it was for.
    woken_.exchange(false, std::memory_order_acquire);
}

void ShmemChannel::wake() noexcept {
    woken_.store(true, std::memory_order_seq_cst); // partner: the exchange in something_to_do(), after asleep = 1
    wake_node(self_);
}

void ShmemChannel::wake_node(Node node) noexcept {
    if (Button::wake(segment_->mailbox(node).bell)) rouse(node);
}

/// Wakes the thread of a node whose doorbell already says awake.
void ShmemChannel::rouse(Node node) noexcept {
    if (waker_ != nullptr) waker_->wake(node);
    else base::futex_wake(segment_->mailbox(node).bell.asleep);
}

// ---- counters

std::vector<pm::Counter> ShmemChannel::counters() const {
    pm::Traffic all;
    for (const Outgoing& out : outgoing_) {
        all.messages += out.sent.messages;
        all.bytes += out.sent.bytes;
    }
    return {{"messages_sent", all.messages},
            {"bytes_sent", all.bytes},
            {"sends_refused", sends_refused_},
            {"sleeps", sleeps_}};
}

std::vector<pm::Counter> ShmemChannel::counters(Node peer) const {
    KUMI_ASSERT(peer < outgoing_.size());
    return {{"messages_sent", outgoing_[peer].sent.messages}, {"bytes_sent", outgoing_[peer].sent.bytes}};
}

// ---- remote memory

Result<MutableBytes> ShmemChannel::expose(std::uint64_t offset, std::size_t bytes) {
    KUMI_ASSERT(offset % page_bytes == 0);
    if (offset > window_bytes() || bytes > window_bytes() - offset)
        return error("exposing {} of memory behind {}: there are addresses for {}; raise KUMI_SHMEM_EXPOSED (is there "
                     "a limit: ulimit -f?)",
                     base::readable_bytes(bytes), base::readable_bytes(offset), base::readable_bytes(window_bytes()));
    const std::uint64_t reserved_bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
    if (exposed_.missing(offset, reserved_bytes) > base::memory_available_bytes())
        return error("exposing {} of memory: this host has only {} left", base::readable_bytes(bytes),
                     base::readable_bytes(base::memory_available_bytes()));
    std::byte* window = segment_->window(self_);
    if (window == nullptr) return error("exposing memory: no addresses left (is there a limit: ulimit -v?)");
    if (exposed_.missing(offset, reserved_bytes) > 0)
        if (auto reserved = segment_->reserve_window(self_, offset, reserved_bytes); !reserved) return reserved.error();
    exposed_.add(offset, reserved_bytes);
    return MutableBytes(window + offset, bytes);
}

void ShmemChannel::conceal(std::uint64_t offset, std::size_t bytes) noexcept {
    KUMI_ASSERT(offset % page_bytes == 0 && bytes % page_bytes == 0 && offset <= window_bytes() &&
                bytes <= window_bytes() - offset);
    if (bytes == 0) return;
    segment_->release_window(self_, offset, bytes);
    exposed_.remove(offset, bytes);
}

Result<void> ShmemChannel::reach(Node node) {
    if (segment_->window(node) != nullptr) return {};
    return error("mapping the exposed memory of node {}: no addresses left (is there a limit: ulimit -v?)", node);
}

std::byte* ShmemChannel::direct(Node node, std::uint64_t offset) noexcept {
    KUMI_ASSERT(offset <= window_bytes());
    std::byte* window = segment_->window(node);
    return window == nullptr ? nullptr : window + offset;
}

} // namespace kumi::device::shmem
