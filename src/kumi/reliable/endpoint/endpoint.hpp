#pragma once

// A reliable-datagram protocol as a pure state machine: packets and the time go in, packets and deadlines come out. It
// has no socket, no clock and no thread, so that a test can replay any schedule. One endpoint is one node's end of the
// ways to all its peers (and to itself).
//
// The driver's loop:
//   on_packet() for each datagram, then next_message() until there is none;
//   on_time() at next_deadline();
//   then next_series() until there is none: put the packets on the wire, and say so by on_sent().

#include "kumi/base/clock.hpp"
#include "kumi/reliable/blocks.hpp"
#include "kumi/reliable/counters.hpp"
#include "kumi/reliable/credits.hpp"
#include "kumi/reliable/endpoint/node_ring.hpp"
#include "kumi/reliable/packet.hpp"
#include "kumi/reliable/path/path_size.hpp"
#include "kumi/reliable/receiver.hpp"
#include "kumi/reliable/sender.hpp"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace kumi::reliable {

struct EndpointOptions {
    Node self = 0;
    Node nodes = 1;
    std::uint64_t token = 0;
    std::uint32_t incarnation = 0; // larger in each life of this node
    Checked checked = Checked::heads; // `nothing` where something better protects packets
    std::size_t message_bytes_max = std::size_t{16} << 20;
    std::size_t receive_bytes = std::size_t{1} << 20; // where packets wait for this node: the socket's buffer
    std::uint32_t window_packets_max = 2048;          // a power of two, 2048 at most
    Duration ack_delay_max = std::chrono::milliseconds(1); // for an answer that carries the acknowledgement
    Duration hold_max = std::chrono::microseconds(50);       // between messages that are sent back to back
    Duration silence_max = std::chrono::seconds(60); // of a peer that is asked; 0: for ever
    // There are other ways to the peers. One that is silent is not gone, it may only be silent here; and what has not
    // arrived at one that refuses is kept until it is given up, to be sent by another way.
    bool has_alternatives = false;
    Duration starving_max = std::chrono::seconds(10); // for want of memory for one message, then its peer is given up
    Sequence first_sequence = 0; // where all counts start that wrap; the same on all nodes
};

/// What a peer says about itself when the job starts.
struct Introduction {
    std::uint32_t incarnation = 0;
    std::uint32_t credit_own_part = 0;
    std::uint32_t packet_bytes = 1472; // the largest that the hosts can send; a multiple of 8
    std::uint32_t sure_bytes = packet_bytes_max; // packets of up to that pass; larger ones are tried first
};

enum class Gone : std::uint8_t {
    no,
    left,      // it said so
    refused,   // it was asked and did not answer, while its host said that nobody listens there
    silent,    // it was asked for silence_max, and its host did not answer either
    restarted, // it lives again, and knows nothing of this life
    given_up,  // by whoever uses this
    starved,   // there is no memory here for a message to it or from it
    starves,   // it said that there is none there for what it is sent
};
const char* name_of(Gone reason) noexcept;

/// Packets to one peer that may leave in one go: all of one size, but the last may be smaller. Valid until the endpoint
/// is called again.
struct Series {
    Node to = 0;
    bool again = false; // repairs
    std::size_t count = 0;
    std::array<OutPacket, Sender::series_max> packets;
    alignas(64) std::byte heads[Sender::series_max][head_bytes_max];
};

class Endpoint final {
public:
    explicit Endpoint(const EndpointOptions& options);
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    /// What to tell the peers about this one.
    Introduction introduction() const noexcept;
    /// Makes `peer` known; again, when it has started a new life (and no room is reserved for a message to it). All
    /// peers (self included) before anything else.
    void introduce(Node peer, const Introduction& introduction);

    // ---- messages out

    /// Room for a message to fill in place; null is back-pressure, for ever if the peer is gone. One per peer at a
    /// time.
    std::byte* try_reserve(Node to, std::size_t bytes) noexcept;
    void commit(Node to, std::size_t bytes, Instant now) noexcept;
    void cancel(Node to) noexcept;
    bool try_send(Node to, const Pieces& message, Instant now) noexcept;
    /// The same for a small message when nothing else is under way, in one go: a whole packet to put on the wire at
    /// once, which counts as sent. Nothing: try_send() is to be asked.
    Bytes try_send_now(Node to, const Pieces& message, Instant now) noexcept;
    /// The packet of try_send_now() did not leave.
    void on_not_sent(Node to) noexcept;
    /// What was held back for company leaves.
    void flush() noexcept;

    // ---- packets in

    /// Takes a datagram that starts with a packet; answers how many bytes the packet has (all, if it makes no sense).
    /// The bytes stay as they are until next_message() has answered false.
    std::size_t on_packet(Bytes datagram, Instant now) noexcept;
    /// The next message that is complete, in order of its source. A block is given back by release().
    bool next_message(Arrival& arrival, Instant now) noexcept {
        const bool is_nothing_to_read = !reading_.active && stalled_.empty() && !pool_.has_outside();
        return is_nothing_to_read ? false : read_next(arrival, now);
    }
    /// From any thread.
    void release(Block* block) noexcept { pool_.give_back_from_outside(block); }
    /// next_message() has not answered false yet.
    bool is_reading() const noexcept { return reading_.active; }
    /// A message waits for a release().
    bool is_stalled() const noexcept { return !stalled_.empty(); }

    // ---- packets out

    /// Packets for somebody; false: nothing may leave now.
    bool next_series(Series& series, Instant now) noexcept;
    /// The first `count` packets of the series left; `in_burst`: cut by the system or the card. With 0 they are
    /// offered again later.
    void on_sent(const Series& series, std::size_t count, bool in_burst, Instant now) noexcept;
    /// Something may leave.
    bool has_ready() const noexcept { return !ready_.empty() || !touched_.empty(); }
    /// Nothing new will be sent, so a peer whose host says that it is gone is believed to be sooner.
    void begin_close() noexcept { is_closing_ = true; }
    /// A last packet to every peer that this one has sent to or heard from: it need not wait for more. `more`: there is
    /// another round of them to come, in case these are lost.
    bool next_farewell(Series& series, bool more) noexcept;

    // ---- time and fate

    Instant next_deadline() const noexcept { return touched_.empty() ? deadline_ : Instant::min(); }
    void on_time(Instant now) noexcept;
    /// When an acknowledgement is due; the other deadlines may be met late, this one makes the peer repeat itself.
    Instant next_ack_deadline() const noexcept;

    /// The peer's host, or somebody in its name, says that nobody listens at its address. A reason to ask the peer, no
    /// more.
    void on_refused(Node peer, Instant now) noexcept;
    /// The peer is silent: find out whether its host is alive; the driver calls on_host_alive() if it is.
    std::optional<Node> next_host_check() noexcept;
    void on_host_alive(Node peer) noexcept;
    Gone gone(Node peer) const noexcept { return peers_[peer]->gone; }
    /// Has nothing to do with the peer any more: what was sent to it is forgotten, what comes from it is dropped.
    void give_up(Node peer) noexcept;
    /// How long it has been asked without an answer; 0 if nothing is asked of it.
    Duration unanswered(Node peer, Instant now) const noexcept {
        const Peer& known = *peers_[peer];
        return known.sender.waits_for_peer() ? now - known.asked_at : Duration{0};
    }
    /// As Gone::silent; where there are alternatives it may pass.
    bool is_silent(Node peer) const noexcept { return peers_[peer]->silent; }
    /// Of a peer that is gone because it starved: what there was no memory for, and whether that was to be sent.
    std::size_t wanted_bytes(Node peer) const noexcept { return peers_[peer]->starving.bytes; }
    bool starved_sending(Node peer) const noexcept { return peers_[peer]->starving.is_sending; }
    /// Counts peers that went; a waiter looks whether it has changed.
    std::uint64_t fates() const noexcept { return fates_; }

    std::uint32_t packet_bytes(Node peer) const noexcept { return peers_[peer]->sender.packet_bytes(); }
    const PathSize& path(Node peer) const noexcept { return peers_[peer]->path; }
    /// The path carries no more than that, from now on.
    void set_packet_bytes(Node peer, std::uint32_t bytes, Instant now) noexcept;
    /// A peer to which less than what the hosts can send passes, as was found out.
    std::optional<Node> next_narrow_path() noexcept;

    // ---- state

    /// Nothing is under way to anybody who could still take it.
    bool all_arrived() const noexcept;
    const PeerCounters& counters(Node peer) const noexcept { return peers_[peer]->counters; }
    const DropCounters& drops() const noexcept { return drops_; }
    const Sender& sender(Node peer) const noexcept { return peers_[peer]->sender; }
    const Receiver& receiver(Node peer) const noexcept { return peers_[peer]->receiver; }
    const CreditPool& credits() const noexcept { return credits_; }
    const EndpointOptions& options() const noexcept { return options_; }

    /// Memory that one peer may cost this node at most, all told.
    static std::size_t bytes_per_peer_max(const EndpointOptions& options) noexcept;
    /// Memory that a peer costs that was never talked to.
    static std::size_t bytes_per_idle_peer() noexcept { return sizeof(Peer); }
    std::size_t bytes_used() const noexcept { return pool_.bytes_used(); }
    /// From now on it is as if the system had no more than that for messages and packets: for tests.
    void limit_memory(std::size_t bytes) noexcept { pool_.limit(bytes); }
    /// Changes when a message that was refused may find room.
    std::uint64_t rooms_made() const noexcept { return pool_.given_back() + fates_; }

private:
    struct Peer {
        Peer(BlockPool& pool, const SenderOptions& sending, const ReceiverOptions& receiving, const PathSize& path_size)
            : sender(pool, sending, counters), receiver(pool, receiving, counters), path(path_size) {}

        PeerCounters counters;
        Sender sender;
        Receiver receiver;
        PathSize path;
        Sequence probe = 0;        // the last one of the peer's that has arrived
        bool owes_probed = false;  // an answer to it
        std::uint32_t incarnation = 0;
        Sequence transmission = 0; // of the next packet to it
        Gone gone = Gone::no;
        bool ready = false;   // in ready_
        bool timed = false;   // in timed_
        bool open = false;    // in open_: messages wait for company
        bool ask = false;     // for an answer, by a bare packet
        bool stalled = false; // in stalled_
        bool touched = false; // in touched_
        bool talked = false;  // a packet was sent to it, or came from it
        unsigned farewells = 0;
        bool owes_farewell = false; // to it, that was called gone and still speaks
        // How long it has been silent, by this node's own waking hours.
        Duration heard_at{0};
        Duration checked_at{0};
        Instant asked_at{}; // since when it owes an answer, if it does
        bool silent = false;
        /// Its host says that nobody listens there, and it has not answered since.
        struct Refused {
            bool is_on = false;
            Instant since{};
            Instant seen{};  // the last time
            Instant asked{}; // the peer itself
        } refused;

        /// There was no memory for a message to it or from it. It passes when nobody tries any more, or one as large
        /// finds some.
        struct Starving {
            Instant since{};
            Instant seen{};
            std::size_t bytes = 0;
            bool is_sending = false;
            bool is_new = false; // seen, but settle() has not looked yet
        } starving;

        /// From now on it owes an answer.
        void asked(Duration awake, Instant now) noexcept { heard_at = awake, asked_at = now; }
    };

    bool is_gone(Node peer) const noexcept { return peers_[peer]->gone != Gone::no; }
    void after_commit(Node to, Instant now) noexcept;
    void make_ready(Node peer) noexcept;
    void watch(Node peer, Instant deadline) noexcept;
    void touch(Node peer) noexcept;
    void settle(Instant now) noexcept;
    void begin_reading(Node peer, Bytes records, Block* block, std::uint32_t weight, Instant now) noexcept;
    void end_reading() noexcept;
    bool read_on(Node peer, Instant now) noexcept;
    bool read_next(Arrival& arrival, Instant now) noexcept;
    bool read_stalled(Instant now) noexcept;
    void acknowledge_if_due(Node peer, Instant now) noexcept;
    void collect() noexcept;
    void on_peer_time(Node peer, Instant now) noexcept;
    /// `wanted_bytes`: of a message to or from the peer, for which there was no memory; 0: `got_bytes` were to be had.
    void note_memory(Node peer, std::size_t wanted_bytes, std::size_t got_bytes, bool is_sending) noexcept {
        if ((wanted_bytes | peers_[peer]->starving.bytes) != 0) [[unlikely]]
            on_memory(peer, wanted_bytes, got_bytes, is_sending);
    }
    void on_memory(Node peer, std::size_t wanted_bytes, std::size_t got_bytes, bool is_sending) noexcept;
    void settle_memory(Peer& peer, Instant now) noexcept;
    void check_memory(Node peer, Instant now) noexcept;
    void check_life(Node peer) noexcept;
    void check_refused(Node peer, Instant now) noexcept;
    void lose(Node peer, Gone reason) noexcept;
    void on_late_word(Node peer) noexcept;
    void forget_unreadable(Node peer) noexcept;
    bool fill_series(Node peer, Series& series, Instant now) noexcept;
    void fill_bare(Node peer, Series& series, Instant now) noexcept;
    void on_bare_sent(Peer& peer, const Series& series) noexcept;
    void fill_probe(Node peer, Series& series, Instant now) noexcept;
    void on_path(Node peer) noexcept;
    /// A packet is sent to the peer, or came from it.
    void note_talk(Node peer, Instant now) noexcept {
        if (!peers_[peer]->talked) [[unlikely]] begin_talk(peer, now);
    }
    void begin_talk(Node peer, Instant now) noexcept;
    void fill_farewell(Node peer, Series& series, Instant now) noexcept;
    void address(Node peer, PacketHeader& header, std::uint32_t credit, bool tells_gaps, Instant now) noexcept;
    void finish(const Peer& peer, PacketHeader& header, OutPacket& packet, std::size_t index) noexcept;
    Instant deadline_of(Node peer, Instant now) const noexcept;

    EndpointOptions options_;
    BlockPool pool_;
    std::uint32_t own_part_;
    CreditPool credits_;
    std::vector<std::unique_ptr<Peer>> peers_;
    DropCounters drops_;

    NodeRing ready_;            // may have something to send; each once
    std::vector<Node> timed_;   // may have a deadline; each once
    std::vector<Node> open_;    // have messages that wait for company; each once
    std::vector<Node> stalled_; // have a message for which there was no room; each once
    std::vector<Node> checks_;  // hosts to look for; each once
    std::vector<Node> narrow_;  // paths to tell of; each once
    std::vector<Node> touched_; // had packets that may have changed what is to be sent, and when; each once
    Instant deadline_ = never;  // no later than any peer's

    // What next_message() reads.
    struct Reading {
        Node peer = 0;
        Bytes records;
        Block* block = nullptr; // that holds the records; null: the driver's datagram
        bool active = false;
    } reading_;

    Instant last_time_{};
    Duration awake_{0}; // how long this node has been running, without the times when it was stopped
    std::uint64_t fates_ = 0;
    bool is_closing_ = false;
};

} // namespace kumi::reliable
