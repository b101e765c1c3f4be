#pragma once

// One random schedule over reliable endpoints: which messages nodes send, which faults the network and the hosts have,
// and what must be true nevertheless. A schedule is a function of its seed.

#include "simulation/reliable_network.hpp"

#include <optional>
#include <string>

namespace kumi::simulation {

class ReliableSchedule {
public:
    explicit ReliableSchedule(std::uint64_t seed);

    /// Runs the schedule. Returns what went wrong, or nothing.
    std::optional<std::string> run();
    /// The schedule in words.
    std::string describe() const;

private:
    enum class Style : std::uint8_t { burst, paced, ping_pong };
    struct Stream { // messages from one node to another
        Node from;
        Node to;
        Style style;
        bool leads; // of ping-pong: sends first
        std::uint32_t count;
        std::size_t bytes_max;
        std::uint32_t sent = 0;
        std::uint32_t received = 0;
        Duration next_send{0};
    };
    /// What a node has sent to another.
    struct SentTotals {
        std::uint32_t packets = 0;  // data packets, without retransmissions
        std::uint32_t weight = 0;   // of these packets
        std::uint32_t transmissions = 0; // the number of the last one
        std::uint32_t expected = 0; // what it acknowledged last, counted from the first sequence
        std::uint32_t credit = 0;   // the highest limit that it granted
    };
    struct Kept {
        Duration until;
        Node at;
        const Stream* stream;
        std::uint32_t index;
        Arrival arrival;
    };
    struct Trouble {
        Duration time;
        std::function<void()> begin;
    };

    static NetworkOptions choose_options(Random& random);
    void choose_streams();
    void choose_troubles();
    void on_message(Node at, const Arrival& arrival);
    void on_packet(const PacketHeader& header);
    void on_turn(Node node);
    void send_some(Stream& stream);
    bool send(Stream& stream, std::size_t bytes);
    bool may_send(const Stream& stream) const;
    void release_some(Node node);
    void check_memory(Node node);
    bool all_received() const;
    void check_end();
    std::size_t size_of(const Stream& stream, std::uint32_t index) const;
    void fill(const Stream& stream, std::uint32_t index, std::byte* to, std::size_t bytes) const;
    bool is_intact(const Stream& stream, std::uint32_t index, Bytes message) const;
    Stream& stream(Node from, Node to) { return streams_[from * options_.nodes + to]; }
    void fail(std::string what) {
        if (!failure_) failure_ = std::move(what);
    }

    std::uint64_t seed_;
    Random random_;
    NetworkOptions options_;
    ReliableNetwork network_;
    std::vector<Stream> streams_;
    std::vector<SentTotals> sent_totals_; // in the order of streams_
    std::vector<Kept> kept_;
    std::vector<Trouble> troubles_;
    std::vector<std::byte> scratch_;
    double keeps_ = 0; // how often a reader keeps a message
    Duration keeps_for_{0};
    bool guarantees_fit_ = false;
    std::optional<std::string> failure_;
};

} // namespace kumi::simulation
