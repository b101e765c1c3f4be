#pragma once

// The receiving half of the connection to one peer. Packets in order are read in place. Packets that arrive early are
// put aside until the gap is closed, and the gap is reported at once. A long message is put together in a block of its
// own, which is allocated before the first piece is acknowledged. A message for which there is no block (its reader
// keeps too many, or the system has no memory) waits, with everything after it, as if it had arrived early.

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
    // most memory in blocks of incomplete messages, and of messages that the reader keeps
    std::size_t held_bytes_max = 0;
    std::size_t aside_bytes_max = 0; // most memory in packets that arrived early
    Sequence first_sequence = 0;
    Duration ack_delay_max{};
};

/// A complete message: in a block of its own, or else in the packet that brought it.
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

    /// Notes that a valid packet of any kind has arrived.
    void on_packet(const PacketHeader& header, Instant now) noexcept;
    /// Takes a data packet. `next`: the packet is in order, and the caller must read its records now with
    /// next_message().
    Verdict on_data(const PacketHeader& header, Bytes records, Instant now) noexcept;

    /// Takes a fragment of a packet. Forgets an incomplete packet with another sequence. Returns the block with all
    /// records when all fragments have arrived; the caller returns it to the pool. Null: `verdict` is the reason;
    /// put_aside means that other fragments are missing.
    Block* on_fragment(Sequence sequence, Bytes part, Verdict& verdict, Instant now) noexcept;

    /// Reads the next message from the records of a packet in order. False when there are no more.
    bool next_message(Bytes& records, Arrival& arrival) noexcept;
    /// The packet that is next in order, if it arrived early; the caller returns it to the pool. Its records start at
    /// data(), and its weight is weight_of(bytes + sizeof(PacketHeader)).
    Block* take_aside() noexcept;
    /// True while the packet that is next in order is put aside because there is no room for its message.
    bool is_stalled() const noexcept { return stalled_; }
    /// Size of the message for which the system had no memory in the last on_data() or take_aside(); 0 if it had.
    std::size_t wanted_bytes() const noexcept { return wanted_bytes_; }

    /// The reader has returned the block of a message.
    void on_released(const Block& block) noexcept { held_bytes_ -= block.capacity(); }
    /// The reader still keeps blocks of this size from the peer's earlier incarnation.
    void on_kept(std::size_t bytes) noexcept { held_bytes_ += bytes; }

    // ---- acknowledgements out

    /// When an acknowledgement is due; `never` if none is owed.
    Instant ack_deadline() const noexcept { return ack_deadline_; }
    void acknowledge_by(Instant when) noexcept { ack_deadline_ = std::min(ack_deadline_, when); }
    /// Packets arrived early, or wait for room.
    bool has_aside() const noexcept { return aside_count_ != 0; }
    bool has_gap() const noexcept { return aside_count_ != 0 && is_before(arrived(), aside_last_); }
    /// Writes what has arrived into `header`. With `with_words`, or if there is no gap, no acknowledgement is owed any
    /// more.
    void acknowledge(PacketHeader& header, bool with_words, Instant now) noexcept;
    /// Writes the words of selective acknowledgement, and returns their number. Must be called before acknowledge().
    std::size_t write_words(std::byte* to, std::size_t words_max) noexcept;

    std::uint32_t unacknowledged_weight() const noexcept { return unacknowledged_weight_; }
    std::size_t aside_bytes() const noexcept { return aside_bytes_; }
    std::size_t held_bytes() const noexcept { return held_bytes_; }
    /// The peer is gone; messages that have arrived can still be read.
    void stop_acknowledging() noexcept { ack_deadline_ = never; }
    void clear() noexcept;

private:
    bool is_sound(Bytes records) const noexcept;
    bool make_room_for(Bytes records) noexcept;
    bool has_arrived(Sequence sequence) const noexcept;
    void drop_reassembly() noexcept;
    bool make_aside() noexcept;
    bool put_aside(Sequence sequence, Bytes records) noexcept;
    void drop_message() noexcept;
    bool read_piece(const RecordHeader& record, Bytes piece, Arrival& arrival) noexcept;
    void read_starts(const RecordHeader& record, Bytes content) noexcept;
    Block*& aside(Sequence sequence) noexcept { return aside_[sequence & (aside_.size() - 1)]; }
    Block* aside(Sequence sequence) const noexcept { return aside_[sequence & (aside_.size() - 1)]; }
    /// The first sequence that has not arrived. Differs from expected_ only while stalled.
    Sequence arrived() const noexcept;

    BlockPool& pool_;
    ReceiverOptions options_;
    PeerCounters& counters_;
    Sequence expected_; // the sequence that is next in order
    std::vector<Block*> aside_; // by sequence; empty until a packet arrives early
    std::uint32_t aside_count_ = 0;
    Sequence aside_last_ = 0; // the highest sequence
    std::size_t aside_bytes_ = 0;
    bool stalled_ = false;

    Block* reassembly_ = nullptr; // fragments of a packet; its `cut` counts the bytes that have arrived
    Sequence reassembly_sequence_ = 0;
    std::uint16_t reassembly_stride_ = 0;
    // bits of the fragments that have arrived
    std::array<std::uint64_t, (packet_bytes_max / fragment_bytes_min + 64) / 64> reassembly_has_{};
    Block* room_ = nullptr;    // block for the message whose first piece is about to be read
    // Incomplete. Pieces have arrived up to `cut`; of `started` pieces that follow the starts are there already.
    Block* message_ = nullptr;
    std::size_t wanted_bytes_ = 0;
    std::size_t held_bytes_ = 0;

    Sequence latest_;
    Instant latest_at_{};
    Sequence told_latest_; // as it was when there was last no gap
    Instant told_latest_at_{};
    Instant ack_deadline_ = never;
    std::uint32_t unacknowledged_weight_ = 0;
    unsigned asked_ = 0; // times in a row that the gap was reported
};

} // namespace kumi::reliable
