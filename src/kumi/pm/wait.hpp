#pragma once

// Waiting on a channel: spin first, then sleep. Spinning has the shortest latency while there is a spare core; sleeping
// lets other processes run. A host with more nodes than cores has no spare core: there a node sleeps at once. Include
// it to wait on a Channel by hand.

#include "kumi/base/clock.hpp"
#include "kumi/pm/channel.hpp"

#include <cstdint>

namespace kumi::pm {

/// How long a waiting node spins before it sleeps.
struct Patience {
    Duration spin_max{0};
};

Patience patience_for(unsigned nodes_on_host, unsigned cores) noexcept;

/// Tells the processor that this is a waiting loop.
inline void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield" ::: "memory");
#endif
}

/// Handles messages until `done()` is true. False when the deadline passed first. Uses almost no processor time while
/// no messages come. `done` may read whatever a handler changes, or a thread that calls wake().
template <class Done>
bool poll_until(Channel& channel, Handler handler, Done&& done, Patience patience, Instant deadline = never) {
    constexpr unsigned polls_per_clock = 64; // reading the clock costs more than an empty poll
    unsigned empty_polls = 0;
    Instant idle_since{};
    while (!done()) {
        if (channel.poll(handler, all_messages) != 0) {
            empty_polls = 0;
            continue;
        }
        if (patience.spin_max > Duration{0}) {
            relax();
            if (++empty_polls % polls_per_clock != 0) continue;
        }
        const Instant time = now();
        if (time >= deadline) return done();
        if (empty_polls == polls_per_clock) idle_since = time;
        if (patience.spin_max > Duration{0} && time - idle_since < patience.spin_max) continue;
        if (channel.arm()) channel.sleep(deadline);
        empty_polls = 0;
    }
    return true;
}

} // namespace kumi::pm
