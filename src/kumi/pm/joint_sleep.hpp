#pragma once

// Sleeping on a channel from outside, in place of Channel::sleep(): on several channels at once, or on one that other
// threads use meanwhile. Whoever sleeps arms the channel, waits for what it names, and tells it when the sleep is over.
//
// The callers have a lock of their own, under which they make all calls of the channel; only block() is outside. So
// between begin_sleep() and end_sleep() other threads may send and poll, one at a time; one thread at a time sleeps.
// The sleep ends when there is something to do that the others have not done, and on wake(), which is from any thread
// as always. What was refused, by whichever thread, is forgotten when arm() says false and when a sleep ends: then it
// is to be tried again.
//
//     lock;
//     if (channel.arm()) {
//         watched = sleep.begin_sleep();
//         unlock; block(watched, deadline); lock;
//         sleep.end_sleep();
//     }

#include "kumi/base/clock.hpp"
#include "kumi/pm/node.hpp"

#include <atomic>
#include <cstdint>

namespace kumi::pm {

/// What ends a sleep, besides a Waker.
struct Watched {
    int descriptor = -1; // readable; -1: none
    bool or_writable = false;
    int bell = -1; // readable too, when the channel itself wants the sleep to end; -1: none
    Instant deadline = never;
    std::atomic<std::uint32_t>* word = nullptr; // not null: there are no descriptors, sleep while it holds `value`
    std::uint32_t value = 0;
};

/// A channel that can be slept on from outside.
class JointSleep {
public:
    /// Right after arm() said true.
    virtual Watched begin_sleep() noexcept = 0;
    /// Awake again, for whatever reason. Before anybody arms again.
    virtual void end_sleep() noexcept = 0;

protected:
    ~JointSleep() = default;
};

/// Sleeps until what is watched happens, or until the deadline; may return early. For who sleeps on one channel.
void block(const Watched& watched, Instant deadline) noexcept;

/// Ends the joint sleep of other nodes, for channels that have no descriptor to do it by. Given at open.
class Waker {
public:
    /// Numbers are the channel's own. From any thread.
    virtual void wake(Node node) noexcept = 0;

protected:
    ~Waker() = default;
};

} // namespace kumi::pm
