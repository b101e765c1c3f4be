#pragma once

// The receiving half of the way from one peer. Packets in order are read where they lie. What comes before its turn is
// put aside until the gap is closed, and the gap is told at once. Long messages are put together in a block of their
// own, which is there before its first piece is acknowledged. A message for whose block there is no room (its reader
// keeps too many, or the system has no memory) waits, with all behind it, as if it had come too early.

#include "kumi/base/clock.hpp"
#include "kumi/reliable/blocks.hpp"
#include "kumi/reliable/counters.hpp"
#include "kumi/reliable/packet.hpp"

#include <array>
#include <vector>

namespace kumi::reliable {

struct ReceiverOptions {
    Node peer = 0;
    std::uint32_t window_packets_max = 2048;
    std::size_t message_bytes_max = 0;
    std::size_t held_bytes_max = 0;  // blocks of messages that are being put together or were kept
    std::size_t aside_bytes_max = 0; // packets that came before their turn
    Sequence first_sequence = 0;
    Duration ack_delay_max{};
};

/// A whole message: in a block of its own, or else in the packet that brought it.
struct Arrival {
    Node source = 0;
    Bytes bytes;
    Block* block = nullptr;
};

class Receiver {
public:
    Receiver(BlockPool& pool, const ReceiverOptions& options, PeerCounters& counters);
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;
    ~Receiver();

    // ---- packets in

    enum class Verdict : std::uint8_t { next, put_aside, duplicate, beyond_window, malformed };

    /// Takes note of any sound packet of the peer.
    void on_packet(const PacketHeader& header, Instant now) noexcept;
    /// Takes a data packet. `next`: it is the one in turn, and its records are to be read now with next_message().
    Verdict on_data(const PacketHeader& header, Bytes records, Instant now) noexcept;

    /// Takes a part of a packet. An incomplete packet of another sequence is forgotten. Answers the block with all
    /// records when all parts are there, which the caller gives back. Null: `verdict` says why not; put_aside: others
    /// are to come.
    Block* join(Sequence sequence, Bytes part, Verdict& verdict, Instant now) noexcept;

    /// Reads on in the records of a packet in turn; false when they are used up.
    bool next_message(Bytes& records, Arrival& arrival) noexcept;
    /// The packet whose turn it is now, if it came before; the caller gives it back to the pool. Its records start at
    /// data(), its weight is weight_of(bytes + sizeof(PacketHeader)).
    Block* take_aside() noexcept;
    /// A packet is put aside though it is its turn: there was no room for its message.
    bool is_stalled() const noexcept { return stalled_; }
    /// What the system had no memory for when on_data() or take_aside() last looked; 0 if it had.
    std::size_t wanted_bytes() const noexcept { return wanted_bytes_; }

    /// A message's block was given back.
    void on_released(const Block& block) noexcept { held_bytes_ -= block.capacity(); }
    /// The reader still has blocks from the peer's earlier life.
    void on_kept(std::size_t bytes) noexcept { held_bytes_ += bytes; }

    // ---- acknowledgements out

    /// When an acknowledgement is due; `never` when none is owed.
    Instant ack_deadline() const noexcept { return ack_deadline_; }
    void acknowledge_by(Instant when) noexcept { ack_deadline_ = std::min(ack_deadline_, when); }
    /// Packets came before their turn, or wait for room.
    bool has_aside() const noexcept { return aside_count_ != 0; }
    bool has_gap() const noexcept { return aside_count_ != 0 && is_before(arrived(), aside_last_); }
    /// Writes what has arrived into `header`; `with_words`, or without a gap, nothing is owed any more.
    void acknowledge(PacketHeader& header, bool with_words, Instant now) noexcept;
    /// Writes selective acknowledgement; answers how many words. Before acknowledge().
    std::size_t write_words(std::byte* to, std::size_t words_max) noexcept;

    std::uint32_t unacknowledged_weight() const noexcept { return unacknowledged_weight_; }
    std::size_t aside_bytes() const noexcept { return aside_bytes_; }
    std::size_t held_bytes() const noexcept { return held_bytes_; }
    /// The peer is gone; what has come of it is still there to be read.
    void stop_acknowledging() noexcept { ack_deadline_ = never; }
    void clear() noexcept;

private:
    bool is_sound(Bytes records) const noexcept;
    bool make_room_for(Bytes records) noexcept;
    bool has_arrived(Sequence sequence) const noexcept;
    void drop_joined() noexcept;
    bool make_aside() noexcept;
    bool put_aside(Sequence sequence, Bytes records) noexcept;
    void drop_message() noexcept;
    bool read_piece(const RecordHeader& record, Bytes piece, Arrival& arrival) noexcept;
    Block*& aside(Sequence sequence) noexcept { return aside_[sequence & (aside_.size() - 1)]; }
    Block* aside(Sequence sequence) const noexcept { return aside_[sequence & (aside_.size() - 1)]; }
    /// The first sequence that has not arrived; ahead of expected_ only while stalled.
    Sequence arrived() const noexcept;

    BlockPool& pool_;
    ReceiverOptions options_;
    PeerCounters& counters_;
    Sequence expected_; // whose turn it is
    std::vector<Block*> aside_; // by sequence; empty until something comes early
    std::uint32_t aside_count_ = 0;
    Sequence aside_last_ = 0; // the furthest ahead
    std::size_t aside_bytes_ = 0;
    bool stalled_ = false;

    Block* joined_ = nullptr; // parts of a packet; its `cut` says how many bytes are there
    Sequence joined_sequence_ = 0;
    std::uint16_t joined_stride_ = 0;
    std::array<std::uint64_t, (packet_bytes_max / part_bytes_min + 64) / 64> joined_parts_{}; // bits, by their place
    Block* room_ = nullptr;    // for the message whose first piece is about to be read
    Block* message_ = nullptr; // being put together; its `cut` says how far
    std::size_t wanted_bytes_ = 0;
    std::size_t held_bytes_ = 0;

    Sequence latest_;
    Instant latest_at_{};
    Sequence told_latest_; // when there was no gap last
    Instant told_latest_at_{};
    Instant ack_deadline_ = never;
    std::uint32_t unacknowledged_weight_ = 0;
    unsigned asked_ = 0; // times in a row that a gap was told
};

} // namespace kumi::reliable
