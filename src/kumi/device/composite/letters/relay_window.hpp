#pragma once

// How many bytes one node may have under way to another over relays. Each relay keeps a queue for each of its
// neighbours, which the messages of all pairs that it serves share. If every pair filled a fixed window, a queue would
// hold megabytes where many pairs meet: messages would wait for seconds, and all of them would be sent again when a
// cable fails. So the window follows the time from giving a message to the first relay until its destination
// acknowledges it: the window is halved while messages wait in queues, and doubled while they do not.

#include "kumi/base/clock.hpp"
#include "kumi/device/composite/letters/envelope.hpp"

#include <algorithm>
#include <optional>

namespace kumi::device::composite {

class RelayWindow {
public:
    static constexpr std::size_t bytes_min = std::size_t{16} << 10;
    static constexpr std::size_t bytes_start = std::size_t{64} << 10;
    static constexpr std::size_t bytes_max = std::size_t{256} << 10;

    std::size_t bytes() const noexcept { return bytes_; }

    /// The first relay was given a message for the first time. One message at a time is timed. A message that is given
    /// again is not: an acknowledgement does not tell which copy it is for.
    void on_given(Sequence sequence, Instant now) noexcept {
        if (!timed_) timed_ = Timed{sequence, now};
    }
    /// All messages before `expected` have arrived.
    void on_arrived(Sequence expected, Instant now) noexcept {
        if (!timed_ || !is_before(timed_->sequence, expected)) return;
        const Duration took = now - timed_->given;
        timed_.reset();
        shortest_ = std::min(shortest_, took);
        if (took > 4 * shortest_ + waits_long) bytes_ = std::max(bytes_ / 2, bytes_min);
        else if (took < 2 * shortest_ + waits_briefly) bytes_ = std::min(bytes_ * 2, bytes_max);
    }
    /// All messages are to be given to relays again, from the first one on.
    void on_given_again() noexcept { timed_.reset(); }
    /// Nothing was acknowledged in time, though the path works as far as this node knows.
    void on_timeout() noexcept {
        timed_.reset();
        bytes_ = std::max(bytes_ / 2, bytes_min);
    }
    /// Messages go by another path, of which nothing is known.
    void on_new_path() noexcept {
        timed_.reset();
        shortest_ = Duration::max() / 8;
        bytes_ = std::min(bytes_, bytes_start);
    }

private:
    struct Timed {
        Sequence sequence;
        Instant given;
    };
    static constexpr Duration waits_long = std::chrono::milliseconds(50);
    static constexpr Duration waits_briefly = std::chrono::milliseconds(10);

    std::size_t bytes_ = bytes_start;
    Duration shortest_ = Duration::max() / 8; // on this path
    std::optional<Timed> timed_;
};

} // namespace kumi::device::composite
