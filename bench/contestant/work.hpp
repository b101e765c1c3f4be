#pragma once

// Work that is the same for all contestants of a benchmark.

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace kumi::bench {

/// Prints a result to standard output, where the harness reads it.
inline void report(const char* id, double value) {
    std::printf("result %s %.6g\n", id, value);
    std::fflush(stdout);
}

/// What the producer of a large message does.
inline void fill(std::uint64_t* words, std::size_t count, std::uint64_t start) {
    for (std::size_t i = 0; i < count; ++i) words[i] = start + i;
}

/// What the consumer of a large message does.
inline std::uint64_t sum(const std::uint64_t* words, std::size_t count) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < count; ++i) total += words[i];
    return total;
}

inline constexpr std::size_t large_bytes = std::size_t{1} << 20;
inline constexpr std::size_t large_words = large_bytes / sizeof(std::uint64_t);
inline constexpr std::size_t latency_sizes[] = {8, 64, 1024, 8192, 65536};

// How often something is done. Chosen so that one contestant takes a fraction of a second.
inline constexpr int pingpongs_small = 50'000;
inline constexpr int pingpongs_large = 400;
inline constexpr int stream_small = 1'000'000;
inline constexpr int stream_large = 1'000;
inline constexpr int ring_rounds = 500;
inline constexpr int barriers_first = 5; // the first run, which finds out how long a barrier takes

} // namespace kumi::bench
