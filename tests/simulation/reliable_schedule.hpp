#pragma once

// One random schedule over reliable endpoints: who sends what to whom, how the wire and the hosts misbehave, and what
// must be true all the same. A schedule is a function of its seed.

#include "simulation/reliable_network.hpp"

#include <optional>
#include <string>

namespace kumi::simulation {

class ReliableSchedule {
public:
    explicit ReliableSchedule(std::uint64_t seed);

    /// Nothing, or what went wrong.
    std::optional<std::string> run();
    /// What this schedule is, for people.
    std::string describe() const;

private:
    enum class Style : std::uint8_t { burst, paced, ping_pong };
    struct Way { // from one node to another
        Node from;
        Node to;
        Style style;
        bool leads; // of ping-pong
        std::uint32_t count;
        std::size_t bytes_max;
        std::uint32_t sent = 0;
        std::uint32_t received = 0;
        Duration next_send{0};
    };
    /// What a node has put on the wire to another.
    struct Said {
        std::uint32_t packets = 0;  // data packets, without those that were sent again
        std::uint32_t weight = 0;   // of these
        std::uint32_t transmissions = 0; // the number of the last
        std::uint32_t expected = 0; // what it told last, from the first sequence on
        std::uint32_t credit = 0;   // and the most that it granted
    };
    struct Kept {
        Duration until;
        Node at;
        const Way* way;
        std::uint32_t index;
        Arrival arrival;
    };
    struct Trouble {
        Duration time;
        std::function<void()> begin;
    };

    static NetworkOptions choose_options(Random& random);
    void choose_ways();
    void choose_troubles();
    void on_message(Node at, const Arrival& arrival);
    void on_packet(const PacketHeader& header);
    void on_turn(Node node);
    void send_some(Way& way);
    bool send(Way& way, std::size_t bytes);
    bool may_send(const Way& way) const;
    void release_some(Node node);
    void check_memory(Node node);
    bool all_received() const;
    void check_end();
    std::size_t size_of(const Way& way, std::uint32_t index) const;
    void fill(const Way& way, std::uint32_t index, std::byte* to, std::size_t bytes) const;
    bool is_intact(const Way& way, std::uint32_t index, Bytes message) const;
    Way& way(Node from, Node to) { return ways_[from * options_.nodes + to]; }
    void fail(std::string what) {
        if (!failure_) failure_ = std::move(what);
    }

    std::uint64_t seed_;
    Random random_;
    NetworkOptions options_;
    ReliableNetwork network_;
    std::vector<Way> ways_;
    std::vector<Said> said_; // as ways_
    std::vector<Kept> kept_;
    std::vector<Trouble> troubles_;
    std::vector<std::byte> scratch_;
    double keeps_ = 0; // how often a reader keeps a message
    Duration keeps_for_{0};
    bool own_parts_fit_ = false;
    std::optional<std::string> failure_;
};

} // namespace kumi::simulation
