#include "kumi/reliable/path/congestion.hpp"

#include <algorithm>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

/// Bytes that may be sent together although packets are paced.
constexpr std::uint32_t burst_bytes = 32 * 1024;
/// With fewer packets, one or two losses would be a tenth by chance.
constexpr std::uint32_t packets_to_judge = 64;
/// A round trip longer than the shortest by this factor and this time means that there is a queue somewhere.
constexpr int queue_factor = 8;
constexpr Duration queue_time = 20ms;
/// Above this, packets wait somewhere without use: a larger window would make them wait longer, and push the data under
/// way out of the caches.
constexpr int waiting_factor = 2;
constexpr Duration waiting_time = 50us;
/// Above this, a queue may be full: it is taken for the place where packets of the same round trip were lost.
constexpr int full_factor = 4;
constexpr Duration full_time = 500us;
/// Longest pause between two paced series.
constexpr Duration pause_max = 20ms;

} // namespace

bool Congestion::on_arrived(std::uint32_t bytes, Sequence latest, Sequence first_of_next_round,
                            const RoundTrip& round_trip) noexcept {
    round_bytes_ += bytes;
    if (is_before(latest, round_end_)) return false;
    if (round_bytes_ + lost_bytes_ < window_bytes_min) return false; // too little to judge: the round goes on
    round_end_ = first_of_next_round;
    return end_round(round_trip);
}

bool Congestion::end_round(const RoundTrip& round_trip) noexcept {
    arrived_bytes_ += round_bytes_;
    const std::uint64_t all = arrived_bytes_ + lost_bytes_;
    const bool judged = all >= std::uint64_t{lost_packet_bytes_} * packets_to_judge;
    const bool lossy = judged && lost_bytes_ * 10 > all;
    const auto has_queue = [&](int factor, Duration time) {
        return round_least_ != Duration::max() && round_least_ > round_trip.least() * factor + time;
    };
    const bool queued = has_queue(queue_factor, queue_time);
    const bool waiting = has_queue(waiting_factor, waiting_time);
    const bool full = has_lost_ && has_queue(full_factor, full_time);
    const std::uint32_t before = window_bytes_;
    if (lossy || full) window_bytes_ = std::max(window_bytes_min, window_bytes_ / 10 * 7);
    else if (queued) window_bytes_ = std::max(window_bytes_min, window_bytes_ / 8 * 7);
    else if (waiting && window_bytes_ >= window_bytes_start)
        window_bytes_ = std::max(window_bytes_start, window_bytes_ / 8 * 7);
    // Only a window that was used grows. A small one grows although packets wait: others may have filled the queue.
    else if (round_bytes_ * 2 >= window_bytes_)
        window_bytes_ = std::min(waiting ? window_bytes_start : window_bytes_max,
                                 starting_ ? window_bytes_ * 2 : window_bytes_ + window_bytes_ / 8);
    if (lossy || full || queued) congested_ = true, starting_ = false;
    else if (window_bytes_ >= window_bytes_start) congested_ = false;
    if (judged) arrived_bytes_ = lost_bytes_ = 0, lost_packet_bytes_ = 0;
    round_bytes_ = 0;
    has_lost_ = false;
    round_least_ = Duration::max();
    return window_bytes_ < before;
}

void Congestion::on_silence() noexcept {
    window_bytes_ = std::max(window_bytes_min, window_bytes_ / 2);
    congested_ = true;
    starting_ = true; // so the window grows quickly when the peer is back
}

void Congestion::on_sent(std::uint32_t bytes, Instant now, const RoundTrip& round_trip) noexcept {
    if (!congested_) return;
    // One window per round trip, a little faster so that pacing is not the limit.
    const Duration gap = round_trip.recent() * bytes / window_bytes_ * 4 / 5;
    const Duration credit = round_trip.recent() * burst_bytes / window_bytes_;
    // The window is the limit. One long round trip must not stop the sender for many round trips.
    paced_until_ = std::min(std::max(paced_until_, now - credit) + gap, now + pause_max);
}

} // namespace kumi::reliable
