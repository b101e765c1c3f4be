#pragma once

// Paths to other nodes that can fail, an optional interface of devices. For a caller that has other paths to the same
// nodes and changes to one of them when a path fails. Such a device accepts try_send() to a node also while there is a
// reservation for that node.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>

namespace kumi::pm {

class Ways {
public:
    /// True when the interface of this node that all paths start from exists and has a carrier, as far as the system
    /// says.
    virtual bool are_up() noexcept = 0;
    /// How long `to` has owed an answer. 0 if it owes none.
    virtual Duration unanswered(Node to, Instant now) const noexcept = 0;
    /// True when `to` has owed an answer for so long that it would count as lost if this were the only path. It may
    /// come back.
    virtual bool is_silent(Node to) const noexcept = 0;
    /// True when `to` has announced that it leaves.
    virtual bool has_left(Node to) const noexcept = 0;
    /// How often a node was lost or has left. A caller that has seen this number knows of all of them.
    virtual std::uint64_t losses() const noexcept = 0;
    /// True when all messages that were committed to `to` have arrived.
    virtual bool all_arrived(Node to) const noexcept = 0;
    /// How many bytes were committed to `to` that may not have arrived, to the size of a block of memory.
    virtual std::uint64_t waiting_bytes(Node to) const noexcept = 0;
    /// Calls `what` with each message to `to` that was committed and may not have arrived, oldest first. Also after
    /// `to` was lost, unless it has left.
    virtual void each_unarrived(Node to, base::FunctionRef<void(Bytes)> what) const = 0;
    /// Announces that the caller sends no new messages.
    virtual void begin_close() noexcept {}

protected:
    ~Ways() = default;
};

} // namespace kumi::pm
