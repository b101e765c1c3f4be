#pragma once

// Work that is the same for all contestants of a benchmark.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

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

/// Changes each cache line of a message before it is sent, as a program does that has news. A receiver that reads the
/// sender's memory would otherwise find all of it in its own cache.
inline void renew(void* data, std::size_t bytes, int number) {
    auto* const first = static_cast<char*>(data);
    for (std::size_t i = 0; i < bytes; i += 64) first[i] = static_cast<char>(number);
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

// ---- kumi bench sizes

inline constexpr std::size_t all_sizes[] = {8,       32,      128,       512,       2'048,     8'192,
                                            32'768,  131'072, 524'288,   2'097'152, 8'388'608, 16'777'216};

/// Measures `what`, "latency" or "bandwidth", with messages of each size up to `bytes_max`. All contestants send as
/// many messages of a size, after a tenth as many to warm up. pingpong_seconds(bytes, count) and stream_seconds(bytes,
/// count) send them and answer the seconds of one. The first process reports.
template <class Pingpong, class Stream>
void measure_sizes(const std::string& what, const std::string& place, std::size_t bytes_max, bool is_first,
                   Pingpong&& pingpong_seconds, Stream&& stream_seconds) {
    const bool is_latency = what == "latency";
    for (const std::size_t bytes : all_sizes) {
        if (bytes > bytes_max) break;
        const std::size_t count = is_latency ? std::clamp<std::size_t>((std::size_t{32} << 20) / bytes, 8, 20'000)
                                             : std::clamp<std::size_t>((std::size_t{128} << 20) / bytes, 8, 200'000);
        double seconds = 0;
        for (const std::size_t messages : {std::max<std::size_t>(1, count / 10), count})
            seconds = is_latency ? pingpong_seconds(bytes, static_cast<int>(messages))
                                 : stream_seconds(bytes, static_cast<int>(messages));
        const double value = is_latency ? seconds * 1e6 : static_cast<double>(bytes) * 1e-6 / seconds;
        if (is_first) report(("sizes." + what + "." + place + "." + std::to_string(bytes)).c_str(), value);
    }
}

} // namespace kumi::bench
