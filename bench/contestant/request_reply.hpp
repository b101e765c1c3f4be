#pragma once

// Requests and replies between two nodes.

#include "contestant/measure.hpp"
#include "contestant/mix.hpp"
#include "contestant/processes.hpp"

#include "kumi/base/sync/memory_policy.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/wait.hpp"

#include <memory>
#include <vector>

namespace kumi::bench {

/// All ends of a channel.
using Ends = std::vector<std::unique_ptr<pm::Channel>>;

inline constexpr pm::Patience spinning{std::chrono::microseconds(50)};
inline constexpr pm::Patience sleeping{};

inline constexpr auto ignore = [](pm::Message&) {};

/// Sends a message; waits for room if there is none.
inline void send(pm::Channel& channel, pm::Node to, Bytes bytes, pm::Patience patience) {
    pm::poll_until(
        channel, ignore, [&] { return channel.try_send(to, bytes); }, patience);
}

/// Node 0 sends requests, node 1 replies. `Sizes::next()` is the size of the next message.
template <class Sizes>
int request_and_reply(const Ends& ends, pm::Patience patience, Sizes ask_sizes, Sizes answer_sizes, auto&& on_seconds) {
    std::vector<std::byte> bytes(mix_bytes_max);
    const auto wait = [&](pm::Channel& channel) {
        bool came = false;
        pm::poll_until(
            channel, [&](pm::Message&) { came = true; }, [&] { return came; }, patience);
    };
    const auto ask = [&] {
        base::register_for_heavy_fence(); // every process that reads shared memory does so
        on_seconds(seconds_per_call([&] {
            send(*ends[0], 1, Bytes(bytes).first(ask_sizes.next()), patience);
            wait(*ends[0]);
        }));
        return 0;
    };
    const auto answer = [&] {
        base::register_for_heavy_fence();
        while (true) {
            wait(*ends[1]);
            send(*ends[1], 0, Bytes(bytes).first(answer_sizes.next()), patience);
        }
        return 0;
    };
    return run_parts({{ask, 0}, {answer, 1}});
}

/// All messages have this size.
struct Always {
    std::size_t bytes;
    std::size_t next() const noexcept { return bytes; }
};

} // namespace kumi::bench
