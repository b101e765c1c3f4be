#pragma once

// Sleeping on a channel from outside, instead of by Channel::sleep(): on several channels at once, or on one that other
// threads use meanwhile. The sleeping thread arms the channel, waits for what the channel names, and tells the channel
// when the sleep is over.
//
// The threads of a process call the channel under a lock of their own; only block() is outside of the lock. So between
// begin_sleep() and end_sleep() other threads may send and poll, one at a time. One thread at a time sleeps. The sleep
// ends when there is something to do that the other threads have not done, and on wake(), which any thread may call.
// The channel forgets which sends it has refused when arm() answers false and when a sleep ends; after that they must
// be tried again.
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

/// What ends a sleep, apart from a Waker.
struct Watched {
    int descriptor = -1; // readable; -1: none
    bool or_writable = false;
    int bell = -1; // readable when the channel itself ends the sleep; -1: none
    Instant deadline = never;
    std::atomic<std::uint32_t>* word = nullptr; // not null: there are no descriptors; sleep while the word is `value`
    std::uint32_t value = 0;
};

/// A channel that can be slept on from outside.
class JointSleep {
public:
    /// Begins a sleep. Requires that arm() has just answered true.
    virtual Watched begin_sleep() noexcept = 0;
    /// Ends the sleep, whatever the reason. Must be called before the channel is armed again.
    virtual void end_sleep() noexcept = 0;

protected:
    ~JointSleep() = default;
};

/// Sleeps until `watched` ends the sleep or the deadline passes. May return early. For a thread that sleeps on one
/// channel.
void block(const Watched& watched, Instant deadline) noexcept;

/// Ends the joint sleep of other nodes. Used by channels that have no descriptor for that; they get it when opened.
class Waker {
public:
    /// Wakes `node`, a node number of the channel. From any thread.
    virtual void wake(Node node) noexcept = 0;

protected:
    ~Waker() = default;
};

} // namespace kumi::pm
