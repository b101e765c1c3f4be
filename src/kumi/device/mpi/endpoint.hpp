#pragma once

// One node's end of a channel over MPI. Packets of all nodes arrive in a few receives that are always posted.
// packet.hpp has their format and the flow control, arrivals.hpp puts them in order. All state is in this class, none
// in globals or threads: under a simulator all nodes are one process.
//
// Leaving. A node says goodbye to every node that it has sent a packet to or received one from, and waits for the
// goodbyes of these nodes. A goodbye is the last packet of its sender. A first packet from another node is answered by
// a goodbye even while leaving. There is also a barrier of all nodes, which each node enters when it has received all
// goodbyes that it waits for. When the barrier is over and all goodbyes have arrived, nothing can be under way to this
// node: a node that had sent it something would wait for an answer outside of the barrier. So nothing is left in MPI,
// and posted receives can be cancelled.

#include "kumi/base/clock.hpp"
#include "kumi/device/mpi/arrivals.hpp"
#include "kumi/device/mpi/options.hpp"
#include "kumi/device/mpi/requests.hpp"
#include "kumi/pm/channel.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <vector>

namespace kumi::device::mpi {

using pm::Node;

/// The calls are those of pm::Channel, except close().
class Endpoint final : private pm::BufferOwner {
public:
    /// `own` must not be used by anything else. MPI errors on it end the program.
    Endpoint(MPI_Comm own, const Options& options);
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    Node self() const noexcept { return self_; }
    Node nodes() const noexcept { return static_cast<Node>(peers_.size()); }
    const pm::Traits& traits() const noexcept { return traits_; }

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept;
    void commit(const pm::SendSlot& slot) noexcept;
    void cancel(const pm::SendSlot& slot) noexcept;
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept;
    bool arm() noexcept;
    /// Yields the core a few times, then naps, longer each time up to 200 us, until messages arrive again: MPI has
    /// nothing to sleep on. Uses only state that other threads may use at the same time, unless it sleeps in MPI.
    void sleep(Instant deadline) noexcept;
    void wake() noexcept;
    bool lost(Node node) const noexcept { return peers_[node].has_left; }
    pm::Traffic sent(Node to) const noexcept { return peers_[to].sent; }
    std::vector<pm::Counter> counters() const;

    /// Leaves, and drops messages that still arrive. False: the deadline came first. Then call it again, or never
    /// destroy the endpoint, because MPI uses its memory. After true the endpoint can only be destroyed.
    bool close(Instant deadline) noexcept;
    /// True while a message that was committed is still being sent.
    bool is_sending() const noexcept { return sends_under_way_ != 0; }
    /// The nodes that have not left.
    std::vector<Node> staying() const;

private:
    struct Peer {
        Arrivals arrivals;
        std::uint32_t next = 0;  // sequence of the next packet to the peer
        std::uint32_t taken = 0; // packets that the peer has taken, as it reported
        std::uint32_t told = 0;  // packets of the peer that were taken here, as reported to it
        std::uint32_t large_under_way = 0; // large messages to the peer that are under way or reserved
        std::uint32_t pages_under_way = 0; // likewise for pages
        bool is_known = false;       // a packet was sent to the peer, or came from it
        bool has_left = false;
        bool is_deliverable = false; // in deliverable_
        bool is_owed_credit = false; // in owed_
        pm::Traffic sent;
    };
    /// A packet that has arrived.
    struct Ready {
        std::uint32_t index; // of the receive
        std::uint32_t bytes;
        Node source;
    };
    struct LargeMessage {
        Node node; // its source or destination
        std::uint32_t sequence;
    };

    std::size_t collect(bool waits = false) noexcept;
    void on_completed(std::uint32_t index, const MPI_Status& status) noexcept;
    void post_receive(std::uint32_t index) noexcept;
    bool on_packet(const Ready& ready, pm::Handler handler) noexcept;
    void hold(Node source, const PacketHeader& header, const std::byte* message) noexcept;
    void accept_held(Node source) noexcept;
    void begin_large_receives() noexcept;
    void give_back_large_receive(std::uint32_t index) noexcept;
    void take_back_kept() noexcept;
    bool hand_out_held(pm::Handler handler) noexcept;
    void on_taken(Node source) noexcept;
    void on_room() noexcept { has_news_ |= has_refused_; }
    pm::SendSlot refuse() noexcept;
    void give_credits() noexcept;
    void send_packet(Node to, std::uint32_t index, Kind kind, std::size_t bytes) noexcept;
    void know(Node node) noexcept;
    void say_goodbyes() noexcept;
    bool is_over() noexcept;
    void end_receives() noexcept;
    bool is_page(std::uint32_t index) const noexcept;
    std::byte* packet(std::uint32_t index) noexcept;
    void give_back_send(std::uint32_t index) noexcept;
    std::byte* large_buffer(std::uint32_t index) noexcept;
    void release(std::uint64_t token) noexcept override;

    MPI_Comm comm_;
    Options options_;
    Node self_ = 0;
    pm::Traits traits_;
    std::vector<Peer> peers_;

    // Indices of requests and of their buffers.
    std::uint32_t receives_end_; // receives have the indices from 0: packets, then pages
    IndexPool large_receives_;
    IndexPool large_sends_;
    IndexPool page_sends_;
    IndexPool sends_;
    std::uint32_t barrier_;
    Requests requests_;
    std::unique_ptr<std::byte[]> packets_; // of receives, then of sends
    std::unique_ptr<std::byte[]> pages_;   // likewise
    std::vector<std::unique_ptr<std::byte[]>> large_buffers_; // allocated at the first use
    std::vector<LargeMessage> large_messages_;                // the messages in large_buffers_
    std::vector<Node> page_nodes_;                            // destinations of pages, in the order of page_sends_

    std::vector<Ready> ready_;
    std::size_t ready_handled_ = 0; // of ready_
    std::deque<Node> deliverable_;  // nodes with held packets that are complete
    std::deque<LargeMessage> announced_; // large messages without a buffer
    std::vector<Node> owed_;        // nodes that are owed credit
    std::uint32_t sends_under_way_ = 0;
    bool is_polling_ = false;
    bool has_refused_ = false; // a reservation was refused since room was last reported
    // Something that a caller does not learn by messages: room after a refusal, or a node that left.
    bool has_news_ = false;

    std::vector<Node> known_; // nodes in contact with this one, which is not among them
    std::size_t goodbyes_said_ = 0; // to this many of known_
    std::size_t goodbyes_heard_ = 0;
    bool is_closing_ = false;
    bool is_in_barrier_ = false;
    bool is_barrier_over_ = false;

    std::uint64_t held_count_ = 0;
    std::uint64_t credits_count_ = 0;
    std::uint64_t unsound_count_ = 0;

    // Used by other threads as well.
    std::atomic<std::uint32_t> woken_{0};
    std::atomic<std::uint32_t> idle_sleeps_{0}; // since a request last completed
    std::atomic<bool> has_kept_back_{false};
    std::mutex kept_back_mutex_;
    std::vector<std::uint32_t> kept_back_; // buffers of kept messages that were released
};

} // namespace kumi::device::mpi
