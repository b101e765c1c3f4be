#pragma once

// Waiting on a channel: spin first, then sleep. Spinning has the shortest latency while there is a spare core; sleeping
// lets other processes run. A host with more nodes than cores has no spare core: there a node yields its core a few
// times, because the node that it waits for may need just that core, and then sleeps. Include it to wait on a Channel
// by hand.

#include "kumi/base/assert.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/pm/channel.hpp"

#include <bit>
#include <cstdint>

namespace kumi::pm {

/// What a waiting node does before it sleeps.
struct Patience {
    Duration spin_max{0};        // it spins for so long
    unsigned yields_max = 0;     // where it does not spin: it yields its core so many times
    unsigned nodes_per_core = 1; // of this host, rounded up
    bool ignores_time = false; // for simulations: where it does not spin, only looks count, and not how long they took
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

/// Lets another thread run that wants this core.
void yield_core() noexcept;

/// What a waiting thread does after each look that found nothing: it looks again, yields its core, or sleeps.
class Idling {
public:
    enum class Step { look, yield, sleep };

    /// Reading the clock costs more than an empty poll of memory, so it is read once in `polls_per_clock` looks: a
    /// power of two.
    explicit Idling(Patience patience, unsigned polls_per_clock = 64) noexcept
        : patience_(patience), polls_per_clock_(polls_per_clock) {
        KUMI_ASSERT(std::has_single_bit(polls_per_clock));
    }

    /// After a look that found nothing.
    Step next() noexcept { return patience_.spin_max > Duration{0} ? spin() : yield(); }
    /// Something was found: the wait begins anew.
    void reset() noexcept { empty_ = 0; }
    /// The thread has slept. Where nothing came for long, and its next look finds nothing either, it sleeps on: it woke
    /// up only to look for lost nodes.
    void end_sleep() noexcept {
        constexpr Duration long_sleep = std::chrono::milliseconds(10);
        empty_ = 0;
        if (patience_.ignores_time || now() - time_ < long_sleep) return;
        since_ = {}; // the next look finds that the wait is old
        empty_ = patience_.spin_max > Duration{0} ? 2 * polls_per_clock_ - 1 : patience_.yields_max;
    }
    /// When next() last read the clock: now if it said sleep, and some looks ago if it said yield.
    Instant time() const noexcept { return time_; }

private:
    Step spin() noexcept {
        relax();
        if ((++empty_ & (polls_per_clock_ - 1)) != 0) return Step::look;
        time_ = now();
        if (empty_ == polls_per_clock_) since_ = time_;
        // A yield costs little where nobody else wants the core, and hosts may share it without knowing.
        return time_ - since_ < patience_.spin_max ? Step::yield : Step::sleep;
    }

    Step yield() noexcept {
        // Yields that take long let somebody compute, who would keep the core when a message comes: the kernel gives
        // the core at once only to a thread that sleeps.
        constexpr Duration yields_time = std::chrono::microseconds(500);
        constexpr unsigned yields_per_clock = 4;
        const bool is_last = ++empty_ > patience_.yields_max;
        if (!is_last && empty_ % yields_per_clock != 0) return Step::yield;
        time_ = now();
        if (empty_ == yields_per_clock) since_ = time_;
        const bool is_long = time_ - since_ >= yields_time && !patience_.ignores_time;
        return is_last || is_long ? Step::sleep : Step::yield;
    }

    Patience patience_;
    unsigned polls_per_clock_;
    unsigned empty_ = 0; // looks that found nothing, since reset()
    Instant since_{};    // the first of them that read the clock
    Instant time_{};
};

/// Handles messages until `done()` is true. False when the deadline passed first. Uses almost no processor time while
/// no messages come. `done` may read whatever a handler changes, or a thread that calls wake().
template <class Done>
bool poll_until(Channel& channel, Handler handler, Done&& done, Patience patience, Instant deadline = never) {
    // A poll of a socket costs as much as a yield; senders that yield there are served less evenly.
    if (!channel.traits().polls_memory) patience.yields_max = 0;
    Idling idling(patience);
    while (!done()) {
        if (channel.poll(handler, all_messages) != 0) {
            idling.reset();
            continue;
        }
        const Idling::Step step = idling.next();
        if (step == Idling::Step::look) continue;
        if (idling.time() >= deadline) return done();
        if (step == Idling::Step::yield) {
            yield_core();
            continue;
        }
        idling.reset();
        if (!channel.arm()) continue; // there is something to handle first
        channel.sleep(deadline);
        idling.end_sleep();
    }
    return true;
}

} // namespace kumi::pm
