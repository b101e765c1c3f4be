#pragma once

// How one node sleeps on several channels at once: it arms them all, watches what each of them names, and tells them
// when the sleep is over. In place of Channel::sleep().

#include "kumi/base/clock.hpp"
#include "kumi/pm/node.hpp"

namespace kumi::pm {

/// What ends a sleep, besides a Waker.
struct Watched {
    int descriptor = -1; // readable; -1: none
    bool or_writable = false;
    Instant deadline = never;
};

/// A channel that can be slept on together with others.
class JointSleep {
public:
    /// After arm() said true.
    virtual Watched begin_sleep() noexcept = 0;
    /// Awake again, for whatever reason.
    virtual void end_sleep() noexcept = 0;

protected:
    ~JointSleep() = default;
};

/// Ends the joint sleep of other nodes, for channels that have no descriptor to do it by. Given at open.
class Waker {
public:
    /// Numbers are the channel's own. From any thread.
    virtual void wake(Node node) noexcept = 0;

protected:
    ~Waker() = default;
};

} // namespace kumi::pm
