#pragma once

#include "kumi/base/clock.hpp"

#include <algorithm>

namespace kumi::reliable {

/// Estimates how long an answer takes, and how long to wait for one (RFC 6298, with bounds for a LAN).
class RoundTrip {
public:
    void on_sample(Duration sample) noexcept {
        latest_ = sample = std::clamp(sample, Duration{1}, sample_max);
        if (smooth_ == Duration{0}) {
            smooth_ = least_ = sample;
            deviation_ = sample / 2;
            return;
        }
        deviation_ += ((sample > smooth_ ? sample - smooth_ : smooth_ - sample) - deviation_) / 4;
        smooth_ += (sample - smooth_) / 8;
        // Paths change, so an old minimum grows slowly.
        least_ = sample < least_ ? sample : least_ + least_ / 4096;
    }

    bool known() const noexcept { return smooth_ != Duration{0}; }
    Duration smooth() const noexcept { return known() ? smooth_ : std::chrono::milliseconds(1); }
    Duration least() const noexcept { return known() ? least_ : smooth(); }
    /// smooth(), or less as soon as an answer took less: a queue on the way has emptied.
    Duration recent() const noexcept { return known() ? std::min(smooth_, latest_) : smooth(); }

    /// How long to wait for an answer before packets are retransmitted, after `tries` retransmissions. At most 250 ms,
    /// so that a path that was interrupted is used again soon; where answers take long, at most four times as long as
    /// an answer takes, and never more than a second.
    Duration timeout(unsigned tries) const noexcept {
        using namespace std::chrono_literals;
        const Duration first = known() ? std::max<Duration>(smooth_ + 4 * deviation_, 5ms) : Duration{20ms};
        return std::min<Duration>(first * (1u << std::min(tries, 10u)), std::clamp<Duration>(4 * first, 250ms, 1s));
    }

private:
    /// A longer sample only means that a process was stopped.
    static constexpr Duration sample_max = std::chrono::seconds(1);

    Duration smooth_{0};
    Duration deviation_{0};
    Duration least_{0};
    Duration latest_{0};
};

} // namespace kumi::reliable
