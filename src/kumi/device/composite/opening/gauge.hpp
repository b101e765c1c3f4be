#pragma once

// How much a network carries, from a few bursts. What drivers say of their speed is not believed, and what a program
// will send is not known; so bursts grow until one takes long enough to be timed, or has the largest size. On a busy
// machine a burst may take long for reasons that are not the network's: the fastest of three counts. Pure: the caller
// sends the bursts and says what each took, until its answer came.

#include "kumi/base/clock.hpp"

#include <cstddef>
#include <vector>

namespace kumi::device::composite {

class Gauge {
public:
    static constexpr std::size_t bytes_min = std::size_t{16} << 10;
    static constexpr std::size_t bytes_max = std::size_t{1} << 20;
    static constexpr Duration long_enough = std::chrono::milliseconds(3);
    static constexpr Duration enough_of_it = std::chrono::milliseconds(30); // in all, of bursts that are long enough
    static constexpr unsigned tries_max = 3;

    bool is_done() const noexcept { return is_done_; }
    /// Of the next burst.
    std::size_t bytes() const noexcept { return bytes_; }
    void on_burst(Duration took) noexcept;

    /// By the fastest of the longest bursts.
    double bytes_per_second() const noexcept;

private:
    std::size_t bytes_ = bytes_min;
    unsigned tries_ = 0; // with so many bytes
    Duration fastest_ = Duration::max();
    Duration spent_{0};
    bool is_done_ = false;
};

/// Puts networks in order, given what each carries, the best first. Where two are about the same, less than a quarter
/// apart, the one that comes first stays first: so a job finds the same order tomorrow.
std::vector<std::size_t> best_first(const std::vector<double>& rates);

} // namespace kumi::device::composite
