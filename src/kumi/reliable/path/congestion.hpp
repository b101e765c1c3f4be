#pragma once

// Decides how much may be under way to one peer, and how fast it is sent. On a LAN there is no congestion most of the
// time, and then this class does nothing: the window grows until only the receiver's credit limits, and nothing is
// paced. Single losses are repaired and do not count, because wires, radio and switches lose packets without being
// full. Congestion is one of these: a round trip (of enough packets) in which more than a tenth was lost, a loss in a
// round trip in which packets waited long, a round trip that takes many times the shortest one, or silence. Then the
// window shrinks, and packets are spread over the round trip until the window has grown back.

#include "kumi/base/clock.hpp"
#include "kumi/reliable/packet.hpp"
#include "kumi/reliable/path/round_trip.hpp"

#include <algorithm>
#include <cstdint>

namespace kumi::reliable {

class Congestion {
public:
    static constexpr std::uint32_t window_bytes_min = 16 * 1024;
    static constexpr std::uint32_t window_bytes_start = 256 * 1024;
    static constexpr std::uint32_t window_bytes_max = 8 * 1024 * 1024;

    /// Transmissions start after `first`.
    explicit Congestion(Sequence first = 0) : round_end_(first) {}

    std::uint32_t window_bytes() const noexcept { return window_bytes_; }

    /// The peer has acknowledged `bytes`. `first_of_next_round` is the next transmission: the round trip ends when it
    /// has arrived. True: the window was reduced.
    bool on_arrived(std::uint32_t bytes, Sequence latest, Sequence first_of_next_round,
                    const RoundTrip& round_trip) noexcept;
    void on_sample(Duration round_trip) noexcept { round_least_ = std::min(round_least_, round_trip); }
    void on_lost(std::uint32_t bytes) noexcept {
        has_lost_ = true;
        lost_bytes_ += bytes;
        lost_packet_bytes_ = std::max(lost_packet_bytes_, bytes);
    }
    /// Several requests for an answer timed out in a row.
    void on_silence() noexcept;

    /// When the next packets may be sent; in the past if they may be sent now.
    Instant paced_until() const noexcept { return paced_until_; }
    void on_sent(std::uint32_t bytes, Instant now, const RoundTrip& round_trip) noexcept;

private:
    bool end_round(const RoundTrip& round_trip) noexcept;

    std::uint32_t window_bytes_ = window_bytes_start;
    bool starting_ = true;   // no congestion so far, so the window doubles each round trip
    bool congested_ = false; // paced
    Sequence round_end_;
    std::uint64_t round_bytes_ = 0;   // acknowledged in this round
    std::uint64_t arrived_bytes_ = 0; // acknowledged in rounds that were too short to be judged
    std::uint64_t lost_bytes_ = 0;
    std::uint32_t lost_packet_bytes_ = 0; // the largest lost packet
    bool has_lost_ = false;               // in this round
    Duration round_least_ = Duration::max();
    Instant paced_until_{};
};

} // namespace kumi::reliable
