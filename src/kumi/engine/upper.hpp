#pragma once

#include "kumi/pm/node.hpp"

namespace kumi::engine {

/// A layer above the engine that has things of its own under way. It is called with the turn, and never waits.
class Upper {
public:
    /// Sends what waits for room; true if some of it went. Called while Core::call_upper(true) holds.
    virtual bool go_on() noexcept = 0;
    /// Now and then, while those who wait sleep: it speaks to nodes that it waits for, by Core::poke(), and gives up what will not come.
    virtual void look_after() noexcept = 0;
    /// `node` has left, or is lost. May be told again.
    virtual void on_lost(pm::Node node) noexcept = 0;
    /// Nobody waits for what this node passes on; before that it does not leave at once.
    virtual bool is_done() const noexcept = 0;
    /// Before the engine ends: those who wait are told that there will be no answer.
    virtual void on_end() noexcept = 0;

protected:
    ~Upper() = default;
};

} // namespace kumi::engine
