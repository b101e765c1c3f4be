#pragma once

// How long and how often something is measured; the same for all contestants of a benchmark.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kumi::bench {

using Seconds = std::chrono::duration<double>;
using MeasuringClock = std::chrono::steady_clock;

inline constexpr std::chrono::milliseconds warm_up{100};
inline constexpr std::chrono::milliseconds window{500};
inline constexpr std::chrono::milliseconds engine_window{150};  // for each row, where one run measures many
inline constexpr std::chrono::milliseconds incast_window{1000}; // every process runs several times on few cores
inline constexpr std::chrono::milliseconds loss_window{2000};   // a timeout of TCP takes 200 ms and more

inline constexpr std::size_t small_message_bytes = 32;
inline constexpr std::size_t pingpong_bytes = 64;
inline constexpr std::size_t bulk_message_bytes = 128 << 10; // as iperf3 writes

/// Seconds that one call of `once` takes, on average over `duration`, after a fifth of `duration` to warm up.
template <class Once>
double seconds_per_call(Once&& once, std::chrono::milliseconds duration = window) {
    const auto run = [&](auto how_long) {
        constexpr int calls_per_clock = 16;
        const auto start = MeasuringClock::now();
        std::uint64_t calls = 0;
        Seconds taken{};
        do {
            for (int i = 0; i < calls_per_clock; ++i) once();
            calls += calls_per_clock;
            taken = MeasuringClock::now() - start;
        } while (taken < how_long);
        return taken.count() / static_cast<double>(calls);
    };
    run(duration / 5);
    return run(duration);
}

/// How fast a count grows, and by how much a meter goes on while it grows by one.
struct Growth {
    double per_second;
    double metered_each;
};

/// How fast `count` grows, from the first arrival on. `take_until(instant)` waits for arrivals until then and counts
/// them in `count`. `meter()` is read when that begins to be measured, and at the end.
template <class TakeUntil, class Meter>
Growth growth(const std::uint64_t& count, TakeUntil&& take_until, std::chrono::milliseconds duration, Meter&& meter) {
    while (count == 0) take_until(MeasuringClock::now() + std::chrono::milliseconds(10));
    take_until(MeasuringClock::now() + warm_up);
    const std::uint64_t before = count;
    const double metered = meter();
    const auto start = MeasuringClock::now();
    take_until(start + duration);
    const double seconds = Seconds(MeasuringClock::now() - start).count();
    const auto grown = static_cast<double>(count - before);
    return {grown / seconds, (meter() - metered) / grown};
}

template <class TakeUntil>
double per_second(const std::uint64_t& count, TakeUntil&& take_until, std::chrono::milliseconds duration = window) {
    return growth(count, take_until, duration, [] { return 0.0; }).per_second;
}

/// How many calls fill `duration` if each takes `seconds_each`.
inline std::int64_t count_in(double duration, double seconds_each) {
    return static_cast<std::int64_t>(std::clamp(duration / seconds_each, 1.0, 1e6));
}

/// Seconds of one operation that several processes do together. `run(count)` does `count` operations and returns the
/// seconds of each. The first runs are short and find out how many operations fill the time. `agreed(count)` returns
/// the count of the first process at all processes.
template <class Run, class Agreed>
double settled_seconds(std::int64_t first_count, Run&& run, Agreed&& agreed) {
    double seconds = run(first_count);
    for (const double duration : {0.05, 0.3}) seconds = run(agreed(count_in(duration, seconds)));
    return seconds;
}

/// Seconds of one call of `once`, on average over `count` calls.
template <class Once>
double seconds_each(std::int64_t count, Once&& once) {
    const auto start = MeasuringClock::now();
    for (std::int64_t i = 0; i < count; ++i) once();
    return Seconds(MeasuringClock::now() - start).count() / static_cast<double>(count);
}

inline double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

} // namespace kumi::bench
