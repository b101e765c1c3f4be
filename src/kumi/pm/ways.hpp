#pragma once

// What a device knows of its ways to other nodes, for whoever has another way and takes it when one fails. Such a
// device takes messages by try_send() also to a node for which room is reserved.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/pm/node.hpp"

namespace kumi::pm {

class Ways {
public:
    /// What all of them start with is there, and has a carrier, as far as the system says.
    virtual bool are_up() noexcept = 0;
    /// How long `to` has owed an answer; 0 if it owes none.
    virtual Duration unanswered(Node to, Instant now) const noexcept = 0;
    /// It has owed an answer for so long that it would be lost, were this the only way; it may come back.
    virtual bool is_silent(Node to) const noexcept = 0;
    /// It has said that it goes.
    virtual bool has_left(Node to) const noexcept = 0;
    virtual bool all_arrived(Node to) const noexcept = 0;
    /// Calls with each message that was committed and may not have arrived, the oldest first. Also after `to` was lost,
    /// unless it has left.
    virtual void each_unarrived(Node to, base::FunctionRef<void(Bytes)> what) const = 0;
    /// Nothing new will be sent.
    virtual void begin_close() noexcept {}

protected:
    ~Ways() = default;
};

} // namespace kumi::pm
