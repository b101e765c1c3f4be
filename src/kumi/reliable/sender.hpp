#pragma once

// The sending half of the way to one peer. Messages wait in blocks; small ones share a block that is a packet already.
// Blocks are cut into packets as the window, the peer's credit and congestion allow; each packet has a slot until the
// peer has it. The block that a message was written to is sent from, and sent from again.
//
//      first_          unsent_            next_
//   ---- | ---------------- | --------------- |--- queue_ ---> open_
//   done   under way, or    cut, not yet       blocks without    the packet that small
//          arrived, or lost handed out         sequence          messages are added to

#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/reliable/blocks.hpp"
#include "kumi/reliable/counters.hpp"
#include "kumi/reliable/packet.hpp"
#include "kumi/reliable/path/congestion.hpp"
#include "kumi/reliable/path/round_trip.hpp"

#include <vector>

namespace kumi::reliable {

/// One packet as it leaves: two pieces of memory, valid until the sender is called again.
struct OutPacket {
    std::byte* head;
    std::size_t head_bytes;
    Bytes body; // multiple of 8; empty when the head is all
    bool is_piece; // of a long message

    std::size_t bytes() const noexcept { return head_bytes + body.size(); }
};

struct SenderOptions {
    std::uint32_t packet_bytes = 1472;
    std::uint32_t window_packets_max = 2048;
    std::size_t queue_bytes = 0;       // blocks of messages that are not done; or two messages, if that is more
    std::uint32_t credit_own_part = 0; // what the peer grants at any time
    Sequence first_sequence = 0;
    Duration hold_max{};
};

class Sender {
    struct Slot {
        Block* block;
        std::uint32_t offset;
        std::uint32_t bytes; // of the packet
        Instant sent_at;
        Sequence transmission;
        bool ends_block;
        bool arrived;
        bool lost; // to be sent again
        bool again;
        bool in_burst;
    };

public:
    Sender(BlockPool& pool, const SenderOptions& options, PeerCounters& counters);
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;
    ~Sender();

    // ---- messages in

    /// Room for a message; null is back-pressure. At most one at a time.
    std::byte* try_reserve(std::size_t bytes) noexcept;
    void commit(std::size_t bytes) noexcept;
    void cancel() noexcept;
    /// Copies a message that fits a packet.
    bool try_append(const Pieces& message) noexcept;
    /// Copies a longer one, in between the headers of its packets: so a burst of them is one piece of memory, which the
    /// system takes nearly twice as fast as one gathered from many.
    bool try_append_long(const Pieces& message) noexcept;
    /// The largest message for try_append().
    std::size_t append_bytes_max() const noexcept {
        return packed_bytes_max_ - sizeof(PacketHeader) - sizeof(RecordHeader);
    }

    /// Whether what was committed should leave now, or may wait for company.
    /// Behind what is about to leave it waits: more may follow, and nothing is lost by it.
    bool is_urgent(Instant now) const noexcept {
        return !has_closed() && (first_ == next_ || now - last_sent_ > options_.hold_max);
    }
    bool has_open() const noexcept { return open_ != nullptr; }
    /// Something waits that is not held back.
    bool has_closed() const noexcept { return unsent_ != next_ || !queue_.empty(); }
    /// Ends the waiting for company.
    void close_open_packet() noexcept;

    /// A message was refused because the system had no memory, and not for want of room here.
    bool found_no_memory() const noexcept { return found_no_memory_; }

    // ---- packets out

    /// The next packet of at most `room` bytes that may leave; false: none. Of `header` it sets what is about data.
    /// Repairs come first, and never in the same series as new packets. Before on_sent() nothing has left, and the
    /// series may be got again after forget_prepared(). `head_memory` has head_bytes_max. A packet that is larger
    /// than packets may be now leaves in parts, in one series or several; the next such packet follows when the peer
    /// has it.
    bool next_packet(std::size_t room, Instant now, PacketHeader& header, OutPacket& packet,
                     std::byte* head_memory) noexcept;
    /// The first `count` of the series left, with transmissions from `transmission` on.
    void on_sent(std::size_t count, Sequence transmission, bool in_burst, Instant now) noexcept;
    bool has_prepared() const noexcept { return prepared_count_ != 0; }
    void forget_prepared() noexcept { prepared_count_ = prepared_whole_ = 0, prepared_bytes_ = prepared_weight_ = 0; }
    bool has_repairs() const noexcept { return repairs_ != 0; }
    /// Behind the series that was got something waits.
    bool has_more_after_prepared() const noexcept {
        if (prepared_again_) return repairs_ > prepared_whole_ || has_closed();
        return next_ - unsent_ > prepared_whole_ || !queue_.empty();
    }
    /// Behind the series that was got nothing may leave before the peer answers: because of the window, or because
    /// there is little room left for more messages.
    bool is_stuck_after_prepared(Instant now) noexcept {
        if (prepared_again_) return false;
        if (has_more_after_prepared()) return !may_leave_next(now);
        return queue_bytes_ * 2 >= options_.queue_bytes && since_please_ + prepared_bytes_ >= options_.queue_bytes / 8;
    }
    /// Whether next_packet() would give one.
    bool may_send(Instant now) noexcept { return repairs_ != 0 || may_leave_next(now); }
    /// A block for small messages is no larger, even where packets may be: it is held until the peer has it.
    static constexpr std::size_t packed_bytes_most = 8192;
    /// The longest series.
    static constexpr std::size_t series_max = 64;

    /// Takes a block for one packet of that size and counts it as sent, if it may leave now and nothing else is under
    /// way or waits; null: not so. The caller fills it.
    std::byte* send_alone(std::uint32_t packet_bytes, Sequence transmission, Instant now) noexcept;
    Sequence last_sequence() const noexcept { return next_ - 1; }
    /// What send_alone() counted did not leave.
    void send_again() noexcept { mark_lost(slot(next_ - 1)); }
    Instant timeout_deadline() const noexcept { return timeout_deadline_; }

    // ---- acknowledgements in

    /// False: it speaks of packets that were never sent.
    bool on_ack(const PacketHeader& header, Bytes words, Sequence next_transmission, Instant now) noexcept {
        const bool is_news = header.expected != first_ || header.latest != latest_ || is_before(credit_, header.credit);
        return is_news || !words.empty() ? on_news(header, words, next_transmission, now) : true;
    }

    // ---- time

    /// What on_time() waits for.
    Instant deadline(Instant now) const noexcept;
    /// True: the peer is to be asked for an answer, though there is no packet to send again.
    bool on_time(Instant now) noexcept;

    // ---- state

    bool idle() const noexcept { return first_ == next_ && queue_.empty() && open_ == nullptr; }
    /// Something was sent that has not been acknowledged, or waits for credit.
    bool waits_for_peer() const noexcept { return first_ != unsent_ || has_closed(); }
    /// Calls with each message that the peer may not have, the oldest first.
    void each_unarrived(base::FunctionRef<void(Bytes)> what) const;
    /// Forgets everything: the peer is gone.
    void clear() noexcept;
    void set_packet_bytes(std::uint32_t bytes) noexcept;
    /// Of the oldest packet that is under way; 0 if there is none.
    std::uint32_t first_bytes() const noexcept { return first_ == unsent_ ? 0 : slot(first_).bytes; }
    std::uint32_t packet_bytes() const noexcept { return options_.packet_bytes; }

    const RoundTrip& round_trip() const noexcept { return round_trip_; }
    const Congestion& congestion() const noexcept { return congestion_; }
    std::size_t queue_bytes() const noexcept { return queue_bytes_; }
    std::uint32_t credit_own_part() const noexcept { return options_.credit_own_part; }
    static constexpr std::size_t slots_bytes_max(std::size_t window_packets) noexcept {
        return window_packets * sizeof(Slot);
    }
    unsigned timeouts_in_a_row() const noexcept { return tries_; }
    /// How often packets of bursts were lost and, after that, single ones arrived, while never one of a burst did.
    unsigned bursts_lost_alone() const noexcept { return bursts_lost_alone_; }

private:
    Slot& slot(Sequence sequence) noexcept { return slots_[sequence & (slots_.size() - 1)]; }
    const Slot& slot(Sequence sequence) const noexcept { return slots_[sequence & (slots_.size() - 1)]; }
    bool has_room(std::size_t bytes) noexcept {
        found_no_memory_ = false;
        // Little enough to stay in the caches, but two of any size: one on its way, one being filled.
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
    bool grow_slots() noexcept;
    bool may_leave_next(Instant now) noexcept;
    /// How often the peer is asked to acknowledge at once: in time for the window, and for what waits for room here.
    std::uint32_t bytes_per_please() const noexcept {
        return std::min<std::uint32_t>(congestion_.window_bytes() / 2, 256 * 1024);
    }
    std::uint32_t credit_line(Instant now) const noexcept;
    void describe(Sequence sequence, PacketHeader& header, OutPacket& packet, std::byte* head_memory) noexcept;
    bool is_parted_under_way() const noexcept;
    std::uint32_t describe_part(Sequence sequence, std::size_t room, PacketHeader& header, OutPacket& packet,
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
    Block* open_ = nullptr;
    BlockQueue queue_;
    std::size_t queue_bytes_ = 0;
    bool found_no_memory_ = false;

    std::vector<Slot> slots_; // a power of two of them; grows to the window
    Sequence first_;
    Sequence unsent_;
    Sequence next_;
    std::uint32_t repairs_ = 0;       // slots that are lost
    std::uint32_t arrived_ahead_ = 0; // slots that have arrived behind a gap
    std::uint64_t under_way_bytes_ = 0;
    /// Got by next_packet(), not yet reported as sent.
    struct Prepared {
        Sequence sequence;
        std::uint32_t part_end; // of its records; 0: with this one all of the packet has left
    };
    Prepared prepared_[series_max];
    std::size_t prepared_count_ = 0;
    std::size_t prepared_whole_ = 0;  // complete packets: one whose last part is not in the series does not count
    Sequence parted_;                 // the last packet of which parts have left
    std::uint32_t parted_bytes_ = 0;  // how much of its records; 0: all
    bool prepared_again_ = false;
    std::uint32_t prepared_bytes_ = 0;
    std::uint32_t prepared_weight_ = 0;
    std::uint32_t weight_sent_;
    std::uint32_t since_please_ = 0; // bytes sent since the peer was last asked to acknowledge at once
    std::uint32_t credit_; // the line that the peer told

    RoundTrip round_trip_;
    Congestion congestion_;
    std::uint32_t overtaking_ = 0; // transmissions by which one may overtake another before that counts as lost
    std::uint32_t arrivals_ = 0;   // since it was last made smaller
    Sequence latest_;              // transmission that the peer has told to have arrived
    Instant suspect_deadline_ = never; // then what was overtaken is lost
    Instant timeout_deadline_ = never;
    unsigned tries_ = 0;
    unsigned silent_tries_ = 0; // that nothing answered
    Instant last_sent_{};
    bool burst_arrived_ = false;   // at least once
    bool burst_lost_ = false;      // since a single packet last arrived
    unsigned bursts_lost_alone_ = 0;
};

} // namespace kumi::reliable
