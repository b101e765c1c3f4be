#pragma once

// The sending half of the connection to one peer. Messages wait in blocks; small ones share a block that already has
// the format of a packet. Blocks are cut into packets as far as the window, the peer's credit and congestion allow.
// Each packet has a slot until the peer has acknowledged it. Packets are sent, and retransmitted, from the block that
// the message was written to.
//
//      first_          unsent_            next_
//   ---- | ---------------- | --------------- |--- queue_ ---> open_
//   done   under way, or    cut, not yet       blocks that are   the packet that small
//          arrived, or lost sent               not yet cut       messages are added to

#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/reliable/blocks.hpp"
#include "kumi/reliable/counters.hpp"
#include "kumi/reliable/packet.hpp"
#include "kumi/reliable/path/congestion.hpp"
#include "kumi/reliable/path/round_trip.hpp"
#include "kumi/reliable/sender_options.hpp"

#include <vector>

namespace kumi::reliable {

class Sender {
    struct Slot {
        Block* block;
        std::uint32_t offset;
        std::uint32_t bytes; // of the packet
        Instant sent_at;
        Sequence transmission;
        bool ends_block;
        bool arrived;
        bool lost; // to be retransmitted
        bool retransmitted;
        bool in_burst;
        bool is_started; // a piece whose start has left before: the packet's head takes its place in the block
    };

public:
    /// Most packets in a series.
    static constexpr std::size_t series_max = 64;
    /// Memory for the heads of the packets of a series.
    using Heads = std::byte[series_max][head_bytes_max];

    Sender(BlockPool& pool, const SenderOptions& options, PeerCounters& counters);
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;
    ~Sender();

    // ---- messages in

    /// Reserves room for a message. Null is back-pressure. Only one reservation at a time.
    std::byte* try_reserve(std::size_t bytes) noexcept;
    void commit(std::size_t bytes) noexcept;
    void cancel() noexcept;
    /// Copies a message that fits into one packet.
    bool try_append(const Pieces& message) noexcept;
    /// Copies a longer message, with room for the headers of its packets in between. So a burst of them is one piece of
    /// memory, which the system sends nearly twice as fast as one that is gathered from many. Calls `on_part` each time
    /// that another burst may leave and more is to be copied.
    bool try_append_long(const Pieces& message, base::FunctionRef<void()> on_part = do_nothing) noexcept;
    static void do_nothing() noexcept {}
    /// The largest message that try_append() takes.
    std::size_t append_bytes_max() const noexcept {
        return packed_bytes_max_ - sizeof(PacketHeader) - sizeof(RecordHeader);
    }

    /// Whether the messages in the open packet should be sent now, or may wait for others to share the packet. They
    /// wait while other packets are about to be sent: more messages may follow, and the wait costs nothing.
    bool is_urgent(Instant now) const noexcept {
        return !has_closed() && (first_ == next_ || now - last_sent_ > options_.hold_max);
    }
    bool has_open() const noexcept { return open_ != nullptr; }
    /// True if something waits to be sent, apart from the open packet.
    bool has_closed() const noexcept { return unsent_ != next_ || !queue_.empty(); }
    /// Closes the open packet, so that it can be sent.
    void close_open_packet() noexcept;

    /// The last message was refused because the system had no memory, not because the queue was full.
    bool found_no_memory() const noexcept { return found_no_memory_; }

    // ---- packets out

    /// The next packet of at most `room` bytes that may be sent; false if there is none. Sets the fields of `header`
    /// that are about data. Retransmissions come first, and never in one series with new packets. Nothing counts as
    /// sent before on_sent(); forget_prepared() starts the series again. All calls for a series must have the same
    /// `heads`, which must exist until then. A packet that is larger than the path allows now is sent in fragments, in
    /// one series or several; the next such packet follows when the peer has acknowledged this one.
    bool next_packet(std::size_t room, Instant now, PacketHeader& header, OutPacket& packet, Heads& heads) noexcept;
    /// The first `count` packets of the series were sent, with transmission numbers from `transmission` on.
    void on_sent(std::size_t count, Sequence transmission, bool in_burst, Instant now) noexcept;
    bool has_prepared() const noexcept { return prepared_count_ != 0; }
    void forget_prepared() noexcept {
        if (kept_ != nullptr) put_starts_back();
        prepared_count_ = prepared_whole_ = 0, prepared_bytes_ = prepared_weight_ = prepared_ack_requests_ = 0;
        alike_ = 0;
    }
    bool has_repairs() const noexcept { return repairs_ != 0; }
    /// True if something waits to be sent after the prepared series.
    bool has_more_after_prepared() const noexcept {
        if (prepared_retransmits_) return repairs_ > prepared_whole_ || has_closed();
        return next_ - unsent_ > prepared_whole_ || !queue_.empty();
    }
    /// True if nothing can be sent after the prepared series before the peer answers, because of the window, or because
    /// there is little room left for more messages.
    bool is_stuck_after_prepared(Instant now) noexcept {
        if (prepared_retransmits_ || filling_ != nullptr) return false;
        if (has_more_after_prepared()) return !may_leave_next(now);
        return queue_bytes_ * 2 >= options_.queue_bytes &&
               bytes_since_ack_request_ + prepared_bytes_ >= options_.queue_bytes / 8;
    }
    /// True if next_packet() would return a packet.
    bool may_send(Instant now) noexcept { return repairs_ != 0 || may_leave_next(now); }
    /// Largest block for small messages, even where packets may be larger: the block is held until the peer has
    /// acknowledged it.
    static constexpr std::size_t packed_bytes_most = 8192;
    /// Most bytes of a series: what one sendmsg(2) may carry, with room for what encryption adds to each packet.
    static constexpr std::size_t series_bytes_max = 62'900;

    /// Allocates a block for one packet of that size and counts it as sent, if it may be sent now and nothing else is
    /// under way or waits. Otherwise null. The caller fills the block.
    std::byte* send_alone(std::uint32_t packet_bytes, Sequence transmission, Instant now) noexcept;
    Sequence last_sequence() const noexcept { return next_ - 1; }
    /// The packet of send_alone() was not sent after all: retransmit it.
    void send_again() noexcept { mark_lost(slot(next_ - 1)); }
    Instant timeout_deadline() const noexcept { return timeout_deadline_; }

    // ---- acknowledgements in

    /// Handles the acknowledgement in `header` and `words`. False if it acknowledges packets that were never sent.
    bool on_ack(const PacketHeader& header, Bytes words, Sequence next_transmission, Instant now) noexcept {
        const bool is_news = header.expected != first_ || header.latest != latest_ || is_before(credit_, header.credit);
        return is_news || !words.empty() ? on_news(header, words, next_transmission, now) : true;
    }

    // ---- time

    /// When on_time() must be called.
    Instant deadline(Instant now) const noexcept;
    /// Handles timeouts. True: the peer must be asked for an answer, although there is no packet to retransmit.
    bool on_time(Instant now) noexcept;

    // ---- state

    bool idle() const noexcept { return first_ == next_ && queue_.empty() && open_ == nullptr; }
    /// True if something was sent that has not been acknowledged, or waits for credit.
    bool waits_for_peer() const noexcept { return first_ != unsent_ || has_closed(); }
    /// Calls `what` with each message that the peer may not have received, the oldest first.
    void each_unarrived(base::FunctionRef<void(Bytes)> what) const;
    /// Forgets all messages: the peer is gone.
    void clear() noexcept;
    void set_packet_bytes(std::uint32_t bytes) noexcept;
    /// Size of the oldest packet that is under way; 0 if there is none.
    std::uint32_t first_bytes() const noexcept { return first_ == unsent_ ? 0 : slot(first_).bytes; }
    std::uint32_t packet_bytes() const noexcept { return options_.packet_bytes; }

    const RoundTrip& round_trip() const noexcept { return round_trip_; }
    const Congestion& congestion() const noexcept { return congestion_; }
    std::size_t queue_bytes() const noexcept { return queue_bytes_; }
    std::uint32_t credit_guaranteed() const noexcept { return options_.credit_guaranteed; }
    static constexpr std::size_t slots_bytes_max(std::size_t window_packets) noexcept {
        return window_packets * sizeof(Slot);
    }
    unsigned timeouts_in_a_row() const noexcept { return tries_; }
    /// How often packets of a burst were lost and single packets arrived after that, while no packet of a burst ever
    /// arrived.
    unsigned bursts_lost_alone() const noexcept { return bursts_lost_alone_; }

private:
    Slot& slot(Sequence sequence) noexcept { return slots_[sequence & slots_mask_]; }
    const Slot& slot(Sequence sequence) const noexcept { return slots_[sequence & slots_mask_]; }
    bool has_room(std::size_t bytes) noexcept {
        found_no_memory_ = false;
        // Small enough to stay in the caches, but enough for two messages of any size: one under way, one being filled.
        const std::size_t needed = std::size_t{1} << BlockPool::size_class_of(bytes);
        return queue_bytes_ + needed <= (needed * 2 > options_.queue_bytes ? needed * 2 : options_.queue_bytes);
    }
    Block* take(std::size_t bytes) noexcept;
    void give_back(Block* block) noexcept;
    bool fits_open_packet(std::size_t message_bytes) const noexcept {
        return open_ != nullptr && open_->bytes + record_bytes(message_bytes) <= open_->stride;
    }
    bool append(const Pieces& message) noexcept;
    bool cut() noexcept;
    std::uint32_t count_alike(const Slot& last, Instant now) const noexcept;
    void cut_alike() noexcept;
    bool cut_starts(Block& message) noexcept;
    void put_starts_back() noexcept;
    bool grow_slots() noexcept;
    bool may_leave_next(Instant now) noexcept;
    /// Bytes between requests to acknowledge at once: in time for the window, and for messages that wait for room here.
    std::uint32_t bytes_per_ack_request() const noexcept {
        return std::min<std::uint32_t>(congestion_.window_bytes() / 2, 256 * 1024);
    }
    std::uint32_t credit_limit(Instant now) const noexcept;
    void describe(Sequence sequence, PacketHeader& header, OutPacket& packet, std::byte* head_memory) noexcept;
    bool is_fragmented_under_way() const noexcept;
    std::uint32_t describe_fragment(Sequence sequence, std::size_t room, PacketHeader& header, OutPacket& packet,
                                std::byte* head_memory) noexcept;
    std::uint32_t on_arrived(Slot& slot, const PacketHeader& header, Instant now) noexcept;
    void tolerate_overtaking() noexcept;
    bool on_news(const PacketHeader& header, Bytes words, Sequence next_transmission, Instant now) noexcept;
    void find_lost(std::uint32_t overtaking, Instant now) noexcept;
    void mark_lost(Slot& slot) noexcept;

    BlockPool& pool_;
    SenderOptions options_;
    PeerCounters& counters_;
    std::size_t packed_bytes_max_;

    Block* reserved_ = nullptr;
    Block* filling_ = nullptr; // in the queue, or cut so far: try_append_long() goes on to copy
    Block* open_ = nullptr;
    BlockQueue queue_;
    std::size_t queue_bytes_ = 0;
    bool found_no_memory_ = false;

    std::vector<Slot> slots_; // their number is a power of two, and grows up to the window
    Sequence slots_mask_ = 0; // their number less one: to compute it at each use costs more than the use
    Sequence first_;
    Sequence unsent_;
    Sequence next_;
    std::uint32_t repairs_ = 0;       // slots that are marked as lost
    std::uint32_t arrived_ahead_ = 0; // slots that have arrived after a gap
    std::uint64_t under_way_bytes_ = 0;
    /// A packet returned by next_packet() and not yet reported as sent.
    struct Prepared {
        Sequence sequence;
        // where the fragment ends in the packet's records; 0: the packet is complete with it
        std::uint16_t fragment_end;
        bool lends_start; // the packet's head takes the place of its piece's start, which is kept in its head memory
    };
    static_assert(packet_bytes_max <= UINT16_MAX);
    Prepared prepared_[series_max];
    std::size_t prepared_count_ = 0;
    const Heads* kept_ = nullptr; // where starts are kept that packets of the series lend; null: none do
    // complete packets; a packet whose last fragment is not in the series does not count
    std::size_t prepared_whole_ = 0;
    Sequence fragmented_;                 // the last packet of which fragments were sent
    std::uint32_t fragmented_bytes_ = 0;  // bytes of its records that were sent; 0: all
    bool prepared_retransmits_ = false;
    std::uint32_t alike_ = 0; // packets like the last one that may follow it: looked at once, not for each of them
    std::uint32_t prepared_bytes_ = 0;
    std::uint32_t prepared_weight_ = 0;
    std::uint32_t prepared_ack_requests_ = 0; // bytes that the requests in the series stand for
    std::uint32_t weight_sent_;
    std::uint32_t bytes_since_ack_request_ = 0; // since the peer was last asked to acknowledge at once
    std::uint32_t credit_; // the limit that the peer told

    RoundTrip round_trip_;
    Congestion congestion_;
    std::uint32_t overtaking_ = 0; // how many transmissions may overtake a packet before it counts as lost
    std::uint32_t arrivals_ = 0;   // since overtaking_ was last reduced
    Sequence latest_;              // latest transmission that the peer has reported as arrived
    Instant suspect_deadline_ = never; // then packets that were overtaken count as lost
    Instant timeout_deadline_ = never;
    unsigned tries_ = 0;
    unsigned silent_tries_ = 0; // timeouts in a row without any answer
    Instant last_sent_{};
    bool burst_arrived_ = false;   // a packet of a burst has arrived, at least once
    bool burst_lost_ = false;      // a packet of a burst was lost since a single packet last arrived
    unsigned bursts_lost_alone_ = 0;
};

} // namespace kumi::reliable
