#pragma once

// A simulated network in one process, driven by a seed, on which the layers above are tested without processes. Time is
// virtual and advances by polling. Delays are random, so messages of different pairs of nodes overtake each other;
// messages of one pair stay in order. Nodes can leave or be lost, and so can the connection between two of them. The
// network can be partitioned; messages across a partition arrive after it has healed. With one thread a run is a
// function of its seed.

#include "kumi/base/clock.hpp"
#include "kumi/pm/channel.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace kumi::device::simulated {

using pm::Node;

struct NetworkOptions {
    Node nodes = 2;
    std::uint64_t seed = 1;
    Duration delay_min{500};
    Duration delay_max{50'000};
    Duration tick{200};                 // how far one poll advances the clock
    double refusal_chance = 0.05;       // of a reservation, without a reason: callers must cope with it
    std::size_t in_flight_max = 32;     // messages per direction; more are refused
    std::size_t message_bytes_max = std::size_t{1} << 20;
    Duration loss_detection{100'000};   // until the other nodes know that a node is lost
};

/// The network. Open one channel per node, and close them before the network is destroyed. Calls may come from any
/// thread.
class Network final {
public:
    explicit Network(const NetworkOptions& options);
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;
    ~Network();

    std::unique_ptr<pm::Channel> open(Node node);

    /// Loses `node`: messages under way to and from it are dropped, and after a while lost() is true for it.
    void lose(Node node);

    /// Makes `self` consider `other` lost, which is not: messages under way between them are dropped. After a while
    /// `other` considers `self` lost too, if it has sent something.
    void lose_link(Node self, Node other);

    /// Partitions the network: no message gets from the nodes in `some` to the others, or back, until heal().
    void part(const std::vector<Node>& some);
    void heal();

    Instant time() const;
    /// Advances the clock without a poll.
    void advance(Duration duration);
    /// Number of messages that were sent and not yet delivered.
    std::size_t in_flight() const;

private:
    friend class SimulatedChannel;

    struct Packet {
        std::vector<std::byte> bytes;
        Instant due;
    };
    /// One direction between two nodes.
    struct Direction {
        std::deque<Packet> packets; // in order of sending; due times never decrease
        bool refused = false;       // the last reservation was refused, and the sender may sleep until there is room
        Instant lost_known = never; // from then on the sender considers the receiver lost
    };
    struct End {
        std::condition_variable changed;
        bool woken = false;         // wake() was called
        bool lost = false;
        Instant lost_known = never; // from then on the others consider this node lost
        bool other_side = false;    // on the other side of the partition
        std::size_t losses_told = 0; // losses that this node was woken for
    };

    Direction& direction(Node from, Node to) { return directions_[std::size_t{from} * options_.nodes + to]; }
    const Direction& direction(Node from, Node to) const {
        return directions_[std::size_t{from} * options_.nodes + to];
    }
    bool cut(Node from, Node to) const { return ends_[from].other_side != ends_[to].other_side; }
    /// From when on `self` considers `other` lost.
    Instant lost_known(Node self, Node other) const {
        return std::min(ends_[other].lost_known, direction(self, other).lost_known);
    }
    bool is_lost(Node self, Node other) const { return lost_known(self, other) <= time_; }
    std::size_t losses_known(Node self) const;
    void deliver_later(Node from, Node to, std::vector<std::byte> bytes);
    /// The source of the message for `to` that is due first; options_.nodes if there is none.
    Node first_source(Node to);
    /// When something happens for `node` next: a message, room, a loss. `never` if nothing is under way.
    Instant next_event(Node node);
    void wake_all();
    void close(Node node);

    mutable std::mutex mutex_; // guards everything
    NetworkOptions options_;
    std::mt19937_64 random_;
    Instant time_{};
    std::vector<Direction> directions_; // by (from, to)
    std::deque<End> ends_;    // by node
    std::size_t channels_ = 0;
};

} // namespace kumi::device::simulated
