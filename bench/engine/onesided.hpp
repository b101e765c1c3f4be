#pragma once

// Remote memory, measured alike for Kumi, MPI and OpenSHMEM.

#include "contestant/measure.hpp"
#include "contestant/work.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace kumi::bench {

inline constexpr int puts_per_flush = 8; // in a stream of large puts

/// Measures and reports rows of `kumi bench engine` at `place`. Runs at a process that uses the memory of another
/// process, which meanwhile waits in a barrier. `Memory` is the memory of the other process: put(from, bytes) and
/// get(to, bytes) at its start; flush() waits until all puts are done; fetch_add() adds one to a word that is zero at
/// first. Returns an exit code.
template <class Memory>
int measure_onesided(Memory& memory, const std::string& place) {
    const auto row = [&](const char* what) { return "engine." + std::string(what) + "." + place; };
    const auto seconds = [](auto&& once) { return seconds_per_call(once, engine_window); };
    std::vector<std::uint64_t> large(large_words);
    fill(large.data(), large_words, 1);
    const auto put_flush = [&](std::size_t bytes) {
        memory.put(large.data(), bytes);
        memory.flush();
    };
    report(row("put_flush.8").c_str(), 1e9 * seconds([&] { put_flush(sizeof(std::uint64_t)); }));
    report(row("put_flush.1048576").c_str(), 1e6 * seconds([&] { put_flush(large_bytes); }));
    const double stream = seconds([&] {
        for (int i = 0; i < puts_per_flush; ++i) memory.put(large.data(), large_bytes);
        memory.flush();
    });
    report(row("put.1048576").c_str(), puts_per_flush * large_bytes * 1e-6 / stream);
    std::vector<std::uint64_t> back(large_words);
    report(row("get.1048576").c_str(), large_bytes * 1e-6 / seconds([&] { memory.get(back.data(), large_bytes); }));
    std::uint64_t added = 0;
    bool counted = true;
    report(row("fetch_add").c_str(), 1e9 * seconds([&] { counted = memory.fetch_add() == added++ && counted; }));
    if (back == large && counted) return 0;
    std::fprintf(stderr, "%s is not what was to be there\n",
                 counted ? "the memory that was put and got" : "what was counted");
    return 1;
}

} // namespace kumi::bench
