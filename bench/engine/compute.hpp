#pragma once

#include <cstdint>
#include <ctime>

namespace kumi::bench {

/// Arithmetic that a compiler cannot shorten, without any call.
[[gnu::noinline]] inline void compute(std::uint64_t rounds) {
    std::uint64_t value = rounds;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(value));
    }
}

/// Processor time that this thread, or all threads of this process, have used.
inline double cpu_seconds(clockid_t of = CLOCK_PROCESS_CPUTIME_ID) {
    timespec used{};
    ::clock_gettime(of, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// How many rounds of compute() take a second on a core that nothing else uses.
inline double compute_rounds_per_second() {
    constexpr std::uint64_t rounds = 5'000'000;
    const double before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    compute(rounds);
    return static_cast<double>(rounds) / (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before);
}

} // namespace kumi::bench
