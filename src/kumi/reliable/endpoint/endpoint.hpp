#pragma once

// A reliable-datagram protocol as a pure state machine: packets and the time go in, packets and deadlines come out. The
// endpoint has no socket, clock or thread, so a test can replay any schedule. One endpoint is one node's side of the
// connections to all its peers (and to itself).
//
// The driver's loop:
//   on_packet() for each datagram, then next_message() until it returns false;
//   on_time() at next_deadline();
//   then next_series() until it returns false: send the packets, and report it with on_sent().

#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/reliable/blocks.hpp"
#include "kumi/reliable/counters.hpp"
#include "kumi/reliable/credits.hpp"
#include "kumi/reliable/endpoint/node_ring.hpp"
#include "kumi/reliable/endpoint/options.hpp"
#include "kumi/reliable/endpoint/peer.hpp"
#include "kumi/reliable/endpoint/reports.hpp"
#include "kumi/reliable/packet.hpp"
#include "kumi/reliable/path/path_size.hpp"
#include "kumi/reliable/receiver.hpp"
#include "kumi/reliable/sender.hpp"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace kumi::reliable {

/// Packets to one peer that may be sent in one system call. All have one size; the last may be smaller. Valid until the
/// endpoint is called again.
struct Series {
    Node to = 0;
    bool is_retransmission = false;
    std::size_t count = 0;
    std::array<OutPacket, Sender::series_max> packets;
    alignas(64) Sender::Heads heads;
};

class Endpoint final {
public:
    explicit Endpoint(const EndpointOptions& options);
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    /// What this node tells its peers about itself.
    Introduction introduction() const noexcept;
    /// Makes `peer` known. Must be called for all peers (self included) before anything else, and again when a peer has
    /// started a new incarnation (while no room is reserved for a message to it).
    void introduce(Node peer, const Introduction& introduction);

    // ---- messages out

    /// Reserves room for a message, to be filled in place. Null is back-pressure, for ever if the peer is gone. Only
    /// one reservation per peer at a time.
    std::byte* try_reserve(Node to, std::size_t bytes) noexcept;
    void commit(Node to, std::size_t bytes, Instant now) noexcept;
    void cancel(Node to) noexcept;
    /// Copies the message. Calls `leave` each time that a part of a long message may be sent and more is to be copied:
    /// the driver should send it, while it lies in the caches.
    bool try_send(Node to, const Pieces& message, Instant now,
                  base::FunctionRef<void()> leave = Sender::do_nothing) noexcept;
    /// Sends a small message if nothing else is under way: returns a whole packet that the caller must send at once,
    /// and that counts as sent. Empty: use try_send().
    Bytes try_send_now(Node to, const Pieces& message, Instant now) noexcept;
    /// The packet of try_send_now() could not be sent.
    void on_not_sent(Node to) noexcept;
    /// Closes the open packets, so that messages which waited to share a packet are sent.
    void flush() noexcept;

    // ---- packets in

    /// Takes the packet at the front of a datagram. Returns the size of the packet (of the whole datagram if it is not
    /// valid). The bytes must stay unchanged until next_message() has returned false.
    std::size_t on_packet(Bytes datagram, Instant now) noexcept;
    /// The next complete message; messages of one source come in order. A message in a block must be returned with
    /// release().
    bool next_message(Arrival& arrival, Instant now) noexcept {
        const bool is_nothing_to_read = !reading_.active && stalled_.empty() && !pool_.has_outside();
        return is_nothing_to_read ? false : read_next(arrival, now);
    }
    /// Returns the block of a message. May be called from any thread.
    void release(Block* block) noexcept { pool_.give_back_from_outside(block); }
    /// True until next_message() has returned false.
    bool is_reading() const noexcept { return reading_.active; }
    /// True while a message waits for a release().
    bool is_stalled() const noexcept { return !stalled_.empty(); }

    // ---- packets out

    /// The next packets to send; false if nothing may be sent now.
    bool next_series(Series& series, Instant now) noexcept;
    /// The first `count` packets of the series were sent. `in_burst`: the system or the network card cut them from one
    /// buffer. With a count of 0 they are offered again later.
    void on_sent(const Series& series, std::size_t count, bool in_burst, Instant now) noexcept;
    /// True if next_series() may return packets.
    bool has_ready() const noexcept { return !ready_.empty() || !touched_.empty(); }
    /// Announces that no new messages will be sent. From then on this node does not tell others who is gone.
    void begin_close() noexcept;
    /// The next farewell packet, which tells a peer not to wait for this node. There is one for every peer that this
    /// node had contact with. `more`: only for peers that have all that was sent to them, because this node goes on for
    /// the others; and another round of farewells will follow, in case these are lost. A peer that sends something
    /// after its farewell has not got it, and gets another.
    bool next_farewell(Series& series, bool more) noexcept;

    // ---- time and fate

    Instant next_deadline() const noexcept { return touched_.empty() ? deadline_ : Instant::min(); }
    void on_time(Instant now) noexcept;
    /// When an acknowledgement is due. The other deadlines may be missed by a little; missing this one makes the peer
    /// retransmit.
    Instant next_ack_deadline() const noexcept;

    /// An ICMP message in the name of the peer's host, or another node, said that nobody listens at the peer's address.
    /// ICMP may be forged, so this is only a reason to ask the peer. A peer of which this is said again, and which does
    /// not answer, is gone.
    void on_refused(Node peer, Instant now) noexcept;
    /// A silent peer: the driver must find out whether its host is alive, and call on_host_alive() if so.
    std::optional<Node> next_host_check() noexcept;
    void on_host_alive(Node peer) noexcept;
    Gone gone(Node peer) const noexcept { return peers_[peer]->gone; }
    /// Forgets the peer: messages to it are dropped, packets from it are ignored.
    void give_up(Node peer) noexcept;
    /// How long `peer` has owed an answer; 0 if it owes none.
    Duration unanswered(Node peer, Instant now) const noexcept {
        const Peer& known = *peers_[peer];
        return known.sender.waits_for_peer() ? now - known.asked_at : Duration{0};
    }
    /// True if `peer` is silent as in Gone::silent. Where there are alternatives, the silence may end.
    bool is_silent(Node peer) const noexcept { return peers_[peer]->silent; }
    /// For Gone::no_memory_here: the size of the message for which there was no memory, and whether it was to be sent.
    std::size_t wanted_bytes(Node peer) const noexcept { return peers_[peer]->memory_wait.bytes; }
    bool wanted_for_sending(Node peer) const noexcept { return peers_[peer]->memory_wait.is_sending; }
    /// How often a peer has become gone. A caller that waits for a peer can watch it for changes.
    std::uint64_t gone_count() const noexcept { return gone_count_; }

    std::uint32_t packet_bytes(Node peer) const noexcept { return peers_[peer]->sender.packet_bytes(); }
    const PathSize& path(Node peer) const noexcept { return peers_[peer]->path; }
    /// From now on the path to `peer` carries no more than `bytes`.
    void set_packet_bytes(Node peer, std::uint32_t bytes, Instant now) noexcept;
    /// A peer to which the path was found to carry less than the hosts can send.
    std::optional<Node> next_narrow_path() noexcept;

    // ---- state

    /// True when nothing is under way to any peer that is not gone.
    bool all_arrived() const noexcept;
    const PeerCounters& counters(Node peer) const noexcept { return peers_[peer]->counters; }
    const DropCounters& drops() const noexcept { return drops_; }
    const Sender& sender(Node peer) const noexcept { return peers_[peer]->sender; }
    const Receiver& receiver(Node peer) const noexcept { return peers_[peer]->receiver; }
    const CreditPool& credits() const noexcept { return credits_; }
    const EndpointOptions& options() const noexcept { return options_; }

    /// Most memory that one peer may cost this node.
    static std::size_t bytes_per_peer_max(const EndpointOptions& options) noexcept;
    /// Memory that a peer costs before the first packet.
    static std::size_t bytes_per_idle_peer() noexcept { return sizeof(Peer); }
    std::size_t bytes_used() const noexcept { return pool_.bytes_used(); }
    /// For tests: from now on allocation fails as if the system had only `bytes` for messages and packets.
    void limit_memory(std::size_t bytes) noexcept { pool_.limit(bytes); }
    /// Changes when a message that was refused may find room.
    std::uint64_t rooms_made() const noexcept { return pool_.given_back() + gone_count_; }

private:
    bool is_gone(Node peer) const noexcept { return peers_[peer]->gone != Gone::no; }
    bool has_watch() const noexcept { return options_.watch_every > Duration{0} && options_.nodes > 1; }
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
    /// Notes that a message to or from the peer of `wanted_bytes` found no memory; if that is 0, that one of
    /// `got_bytes` did.
    void note_memory(Node peer, std::size_t wanted_bytes, std::size_t got_bytes, bool is_sending) noexcept {
        if ((wanted_bytes | peers_[peer]->memory_wait.bytes) != 0) [[unlikely]]
            on_memory(peer, wanted_bytes, got_bytes, is_sending);
    }
    void on_memory(Node peer, std::size_t wanted_bytes, std::size_t got_bytes, bool is_sending) noexcept;
    void settle_memory(Peer& peer, Instant now) noexcept;
    void check_memory(Node peer, Instant now) noexcept;
    void check_life(Node peer) noexcept;
    void check_refused(Node peer, Instant now) noexcept;
    void lose(Node peer, Gone reason) noexcept;
    void watch_next_nodes(Instant now) noexcept;
    void ask_if_listening(Node peer) noexcept;
    bool is_nearest_before(Node peer) const noexcept;
    void report(Node peer, bool at_once) noexcept;
    void send_reports() noexcept;
    void on_answer_of_refused(Node peer) noexcept;
    void on_report(Bytes words, Instant now) noexcept;
    void fill_report(Node peer, Series& series, Instant now) noexcept;
    void on_packet_of_gone_peer(Node peer) noexcept;
    void forget_unreadable(Node peer) noexcept;
    bool fill_series(Node peer, Series& series, Instant now) noexcept;
    void fill_bare(Node peer, Series& series, Instant now) noexcept;
    void on_bare_sent(Peer& peer, const Series& series) noexcept;
    void fill_probe(Node peer, Series& series, Instant now) noexcept;
    void on_path(Node peer) noexcept;
    /// A packet was sent to the peer, or came from it.
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
    std::uint32_t guaranteed_;
    CreditPool credits_;
    std::vector<std::unique_ptr<Peer>> peers_;
    DropCounters drops_;

    NodeRing ready_;            // peers that may have something to send; each once
    std::vector<Node> timed_;   // peers that may have a deadline; each once
    std::vector<Node> open_;    // peers with an open packet, which waits for more messages; each once
    std::vector<Node> stalled_; // peers with a message that waits for room; each once
    std::vector<Node> checks_;  // peers whose hosts must be checked; each once
    std::vector<Node> narrow_;  // peers for next_narrow_path(); each once
    std::vector<Node> touched_; // peers for settle(): packets may have changed what is to be sent, and when; each once
    Reports reports_;           // of peers that do not listen any more
    Instant next_watch_ = never; // when the next nodes are to be asked whether they listen
    Instant deadline_ = never;  // not later than the deadline of any peer, and than next_watch_

    // The packet that next_message() reads.
    struct Reading {
        Node peer = 0;
        Bytes records;
        Block* block = nullptr; // holds the records; null: they are in the driver's datagram
        bool active = false;
    } reading_;

    Instant last_time_{};
    Duration awake_{0}; // time that this node has run, without the times when it was stopped
    std::uint64_t gone_count_ = 0;
    bool is_closing_ = false;
};

} // namespace kumi::reliable
