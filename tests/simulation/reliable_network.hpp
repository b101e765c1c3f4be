#pragma once

// Reliable endpoints connected by a simulated network. Time is a number that advances from event to event, and all
// randomness comes from one seed: a run is a function of its seed.

#include "kumi/reliable/endpoint/endpoint.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

namespace kumi::simulation {

using reliable::Arrival;
using reliable::Block;
using reliable::Endpoint;
using reliable::EndpointOptions;
using reliable::Gone;
using reliable::Node;
using reliable::PacketHeader;
using reliable::Series;

/// SplitMix64: small, and good enough for choices.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() noexcept {
        std::uint64_t word = state_ += 0x9E37'79B9'7F4A'7C15u;
        word = (word ^ (word >> 30)) * 0xBF58'476D'1CE4'E5B9u;
        word = (word ^ (word >> 27)) * 0x94D0'49BB'1331'11EBu;
        return word ^ (word >> 31);
    }
    std::uint64_t below(std::uint64_t bound) noexcept { return bound == 0 ? 0 : next() % bound; }
    std::uint64_t between(std::uint64_t least, std::uint64_t most) noexcept { return least + below(most - least + 1); }
    bool chance(double probability) noexcept { return static_cast<double>(next() >> 11) * 0x1p-53 < probability; }
    Duration time(Duration least, Duration most) noexcept {
        return least +
               Duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>((most - least).count()) + 1)));
    }

private:
    std::uint64_t state_;
};

/// What the network does to a packet: probabilities.
struct Faults {
    double loss = 0;
    double duplicate = 0;
    double corrupt = 0;
    double truncate = 0;
    double late = 0; // takes up to ten times as long as other packets
    Duration delay_min = std::chrono::microseconds(10);
    Duration delay_max = std::chrono::microseconds(10);
};

struct NetworkOptions {
    Node nodes = 2;
    std::uint64_t seed = 1;
    EndpointOptions endpoint; // of all nodes; what differs by node is set for each
    std::uint32_t packet_bytes = 1472;
    std::uint32_t sure_bytes = reliable::packet_bytes_max; // what nodes assume to pass without a probe
    std::uint32_t path_bytes = reliable::packet_bytes_max; // larger packets are lost between nodes
    std::size_t socket_bytes = 0; // capacity of a node's socket, by weight; 0: receive_bytes
    Duration packet_cost{0};      // time that a node needs for a packet
    double link_bytes_per_us = 0; // bandwidth into each node; 0: no limit
    std::size_t link_queue_bytes = 0;
    double coalesce = 0; // probability that a series arrives as one datagram
    // How often a host says to one node at once that nobody listens, and then once a second; 0: no limit.
    unsigned refusal_burst = 0;
    Faults faults;
};

class ReliableNetwork {
public:
    explicit ReliableNetwork(const NetworkOptions& options);

    Endpoint& operator[](Node node) { return *nodes_[node].endpoint; }
    /// The clock of a node.
    Instant now(Node node) const { return Instant{} + std::chrono::hours(1) + time_ + nodes_[node].clock_offset; }
    Duration time() const { return time_; }

    // ---- what the nodes do

    std::function<void(Node at, const Arrival&)> on_message;
    /// Called each time that a node runs, for the application.
    std::function<void(Node)> on_turn;
    /// True: this packet is lost.
    std::function<bool(const PacketHeader&)> loses;
    /// Called with each packet that is sent.
    std::function<void(const PacketHeader&)> on_packet;
    void wake_at(Node node, Duration time) { nodes_[node].wake = std::min(nodes_[node].wake, time); }
    bool send(Node from, Node to, Bytes message);

    // ---- what is done to them

    Faults& faults() { return options_.faults; }
    /// Stops the node for a time.
    void freeze(Node node, Duration duration) { nodes_[node].frozen_until = time_ + duration; }
    /// For a time the node's socket accepts nothing, or only a part of a series.
    void refuse_sending(Node node, Duration duration) { nodes_[node].refuses_until = time_ + duration; }
    void jump_clock(Node node, Duration ahead) { nodes_[node].clock_offset += ahead; }
    void set_path_bytes(std::uint32_t bytes) { options_.path_bytes = bytes; }
    void cut(Node a, Node b, bool apart) { cut_[a * options_.nodes + b] = cut_[b * options_.nodes + a] = apart; }
    /// Ends a node without a farewell, and starts it again without state. The others are told if `introduce`.
    void restart(Node node, bool introduce);
    /// The process of the node ends without a farewell. From now on its host says that nobody listens.
    void kill(Node node);
    /// The node says farewell and ends. A farewell may get lost, as any packet.
    void leave(Node node);
    /// Delivers a datagram from outside.
    void inject(Node to, Bytes datagram, Duration after = Duration{0});

    // ---- time

    /// Handles the next event before `limit`. False: there is none, and the time is `limit` now.
    bool step(Duration limit);
    void run_for(Duration duration);
    /// Runs until `done` is true. False if it is not within `limit`.
    bool run_until(const std::function<bool()>& done, Duration limit);
    /// True if there are no more events.
    bool is_silent() const;

    std::uint64_t packets() const { return packets_; }
    std::uint64_t bare_packets() const { return bare_packets_; }
    /// Packets for which a socket or a link's queue had no room.
    std::uint64_t overflows() const { return overflows_; }
    /// The most that any socket has held, by weight.
    std::size_t socket_bytes_most() const { return socket_bytes_most_; }

private:
    struct Datagram {
        Duration time;
        std::uint64_t order;
        Node to;
        std::vector<std::byte> bytes;
        std::optional<Node> refused_by{}; // no datagram, but this word of the host of a node
        bool operator<(const Datagram& other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    struct Member {
        std::unique_ptr<Endpoint> endpoint;
        std::deque<std::vector<std::byte>> socket;
        std::size_t socket_bytes = 0;
        Duration clock_offset{0};
        Duration frozen_until{0};
        Duration refuses_until{0};
        Duration busy_until{0};
        Duration link_free{0};
        Duration wake = Duration::max();
        std::uint32_t incarnation = 1;
        bool has_ended = false;
        std::vector<Node> refused_by{};                      // not read yet
        Duration refusals_from = -std::chrono::hours(1); // a token for each second since then
    };

    void make_endpoint(Node node);
    Duration next_turn(Node node) const;
    void turn(Node node);
    void read_socket(Node node);
    void send_all(Node node);
    void put_on_wire(const Series& series, std::size_t count);
    void deliver(Node to, std::vector<std::byte> bytes);
    void arrive(Datagram datagram);
    void refuse(Node from, Bytes datagram);
    std::vector<std::byte> fresh_buffer();

    NetworkOptions options_;
    Random random_;
    std::vector<Member> nodes_;
    std::vector<bool> cut_;
    std::priority_queue<Datagram> wire_;
    std::vector<std::vector<std::byte>> buffers_;
    std::unique_ptr<Series> series_ = std::make_unique<Series>();
    Duration time_{0};
    std::uint64_t order_ = 0;
    std::uint64_t packets_ = 0;
    std::uint64_t bare_packets_ = 0;
    std::uint64_t overflows_ = 0;
    std::size_t socket_bytes_most_ = 0;
};

} // namespace kumi::simulation
