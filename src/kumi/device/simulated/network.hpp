#pragma once

// A whole network in one process, driven by a seed: every later layer is tested on it without processes. Time is
// virtual and passes by polling. Delays are random, so messages of different pairs overtake each other; messages of
// one pair never do. Nodes can be lost, and so can the link between two of them; the network can be parted, and what is
// sent across a partition arrives after it has healed. With one driving thread a run is a function of its seed.

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
    Duration tick{200};                 // how far one poll moves the clock
    double refusal_chance = 0.05;       // of a reservation, for no reason: callers must live with it
    std::size_t in_flight_max = 32;     // messages per pair; more are refused
    std::size_t message_bytes_max = std::size_t{1} << 20;
    Duration loss_detection{100'000};   // until the others know that a node is lost
};

/// The network; open one channel per node and let go of them before it. Calls from any thread.
class Network final {
public:
    explicit Network(const NetworkOptions& options);
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;
    ~Network();

    std::unique_ptr<pm::Channel> open(Node node);

    /// The node is gone: what is under way to and from it vanishes, and after a while lost() says so.
    void lose(Node node);

    /// `self` calls `other` lost, which is not: what is under way between them vanishes. That one learns of it, after a
    /// while, when it has sent something.
    void lose_link(Node self, Node other);

    /// Nothing gets from `some` nodes to the others, or back, until heal().
    void part(const std::vector<Node>& some);
    void heal();

    Instant time() const;
    /// Lets time pass without a poll.
    void advance(Duration duration);
    /// Messages sent and not yet handed out.
    std::size_t in_flight() const;

private:
    friend class SimulatedChannel;

    struct Packet {
        std::vector<std::byte> bytes;
        Instant due;
    };
    /// One direction between two nodes.
    struct Pair {
        std::deque<Packet> packets; // in order, due times never decrease
        bool refused = false;       // the last reservation was; its sender may sleep on it
        Instant lost_known = never; // from then on the sender calls the receiver lost
    };
    struct End {
        std::condition_variable changed;
        bool woken = false;         // wake() was called
        bool lost = false;
        Instant lost_known = never; // from then on the others say so
        bool other_side = false;    // of the partition
        std::size_t losses_told = 0; // losses that this end has been woken for
    };

    Pair& pair(Node from, Node to) { return pairs_[std::size_t{from} * options_.nodes + to]; }
    const Pair& pair(Node from, Node to) const { return pairs_[std::size_t{from} * options_.nodes + to]; }
    bool cut(Node from, Node to) const { return ends_[from].other_side != ends_[to].other_side; }
    /// From when on `self` says that `other` is lost.
    Instant lost_known(Node self, Node other) const {
        return std::min(ends_[other].lost_known, pair(self, other).lost_known);
    }
    bool is_lost(Node self, Node other) const { return lost_known(self, other) <= time_; }
    std::size_t losses_known(Node self) const;
    void deliver_later(Node from, Node to, std::vector<std::byte> bytes);
    /// The message for `to` that is due first, as its source; options_.nodes when there is none.
    Node first_source(Node to);
    /// When something happens for `node` next: a message, room, a loss; never when nothing is under way.
    Instant next_event(Node node);
    void tell_everybody();

    mutable std::mutex mutex_; // guards everything
    NetworkOptions options_;
    std::mt19937_64 random_;
    Instant time_{};
    std::vector<Pair> pairs_; // by (from, to)
    std::deque<End> ends_;    // by node
    std::size_t channels_ = 0;
};

} // namespace kumi::device::simulated
