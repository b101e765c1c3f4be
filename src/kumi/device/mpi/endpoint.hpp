#pragma once

// One node's end of a channel over MPI. Packets of all nodes come into a few receives that are always posted; what they
// carry, and what bounds it, is in packet.hpp, and how it is put in order in arrivals.hpp. All state is in here, none
// in globals or threads: under a simulator all nodes are one process.
//
// Leaving. Who has sent somebody a packet, or got one, says goodbye to it, and waits for its goodbye; a goodbye is the
// last packet of its sender. A first packet from somebody is answered by a goodbye even now. Beside that runs a barrier
// of all nodes, which each enters when it has had all goodbyes that it knows to wait for. When the barrier is over and
// all goodbyes are there, nothing can be under way to this node: somebody who had sent it something would wait for an
// answer, outside of the barrier. So nothing is left in MPI, and posted receives can be cancelled.

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

/// The calls are those of pm::Channel, but for closing.
class Endpoint final : private pm::BufferOwner {
public:
    /// `own` is for nobody else; errors on it end the program.
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
    /// Yields its core a few times, then naps, longer each time up to 200 us, until messages come again: MPI has
    /// nothing that one could sleep on. Uses only what other threads may use meanwhile, unless it sleeps in MPI.
    void sleep(Instant deadline) noexcept;
    void wake() noexcept;
    bool lost(Node node) const noexcept { return peers_[node].has_left; }
    pm::Traffic sent(Node to) const noexcept { return peers_[to].sent; }
    std::vector<pm::Counter> counters() const;

    /// Leaves, and drops what still comes. False: the deadline came first; to be called again, or the endpoint must
    /// never be destroyed, for MPI uses its memory. After true, only destroyed.
    bool close(Instant deadline) noexcept;
    /// Something that was committed is not yet in MPI's hands.
    bool is_sending() const noexcept { return sends_under_way_ != 0; }
    /// Nodes that have not left.
    std::vector<Node> staying() const;

private:
    struct Peer {
        Arrivals arrivals;
        std::uint32_t next = 0;  // sequence of the next packet to it
        std::uint32_t taken = 0; // packets that it has taken, as it told
        std::uint32_t told = 0;  // packets of its that were taken, as it was told
        std::uint32_t large_under_way = 0; // to it, or reserved
        std::uint32_t pages_under_way = 0; // the same
        bool is_known = false;       // a packet went there or came from there
        bool has_left = false;
        bool is_deliverable = false; // among deliverable_
        bool is_owed_credit = false; // among owed_
        pm::Traffic sent;
    };
    /// A packet that has arrived.
    struct Ready {
        std::uint32_t index; // of its receive
        std::uint32_t bytes;
        Node source;
    };
    struct LargeMessage {
        Node node; // its source, or where it goes
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

    // Indices of requests, and of the buffers that they use.
    std::uint32_t receives_end_; // from 0: those of packets, then of pages
    Part large_receives_;
    Part large_sends_;
    Part page_sends_;
    Part sends_;
    std::uint32_t barrier_;
    Requests requests_;
    std::unique_ptr<std::byte[]> packets_; // of receives, then of sends
    std::unique_ptr<std::byte[]> pages_;   // the same
    std::vector<std::unique_ptr<std::byte[]>> large_buffers_; // made when first used
    std::vector<LargeMessage> large_messages_;                // what they have
    std::vector<Node> page_nodes_;                            // where pages go, in the order of page_sends_

    std::vector<Ready> ready_;
    std::size_t ready_handled_ = 0; // of these
    std::deque<Node> deliverable_;  // have held packets that are complete
    std::deque<LargeMessage> announced_; // have no buffer yet
    std::vector<Node> owed_;        // credit
    std::uint32_t sends_under_way_ = 0;
    bool is_polling_ = false;
    bool has_refused_ = false; // a reservation, since room was last told of
    // that a caller does not learn of by messages: room that it was refused, a node that left
    bool has_news_ = false;

    std::vector<Node> known_; // but for this node
    std::size_t goodbyes_said_ = 0; // of these, to the first
    std::size_t goodbyes_heard_ = 0;
    bool is_closing_ = false;
    bool is_in_barrier_ = false;
    bool is_barrier_over_ = false;

    std::uint64_t held_count_ = 0;
    std::uint64_t credits_count_ = 0;
    std::uint64_t unsound_count_ = 0;

    // For other threads.
    std::atomic<std::uint32_t> woken_{0};
    std::atomic<std::uint32_t> idle_sleeps_{0}; // since something completed
    std::atomic<bool> has_kept_back_{false};
    std::mutex kept_back_mutex_;
    std::vector<std::uint32_t> kept_back_; // buffers of messages that were kept
};

} // namespace kumi::device::mpi
