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


// `kumi bench sizes`: all contestants send as many messages of a size, after a tenth as many to warm up.
inline constexpr std::size_t all_sizes[] = {8,       32,      128,       512,       2'048,     8'192,
                                            32'768,  131'072, 524'288,   2'097'152, 8'388'608, 16'777'216};
constexpr int count_of_size(std::size_t bytes, std::size_t bytes_in_all, std::size_t most) {
    const std::size_t count = bytes_in_all / bytes;
    return static_cast<int>(count < 8 ? 8 : count > most ? most : count);
}
constexpr int pingpongs_of_size(std::size_t bytes) { return count_of_size(bytes, std::size_t{32} << 20, 20'000); }
constexpr int stream_of_size(std::size_t bytes) { return count_of_size(bytes, std::size_t{128} << 20, 200'000); }

} // namespace kumi::bench
