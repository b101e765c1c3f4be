#pragma once

// The barrier that a call of barrier() has arrived at. It is the engine's: so barrier() of the job and of a group of
// all nodes are the same barrier. Arrivals there are no messages of this service; so the call looks up which members
// the barrier waits for, when it is asked.

#include "kumi/engine/barrier/barrier_token.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/collective/deadlock_search.hpp"
#include "kumi/group/mail/mailbox.hpp"

#include <optional>

namespace kumi::group {

class BarrierWait {
public:
    BarrierWait(Membership& seat, DeadlockSearch& search) noexcept : seat_(seat), search_(search) {}

    /// Arrives at the set's next barrier, or at the one that a call before has failed to wait for.
    Result<void> arrive(const engine::Turn& turn);
    /// This member has arrived, and the barrier is not complete.
    bool is_open(const engine::Turn& turn);
    /// The number of the set's barrier that this member waits for, or else arrives at next.
    std::uint32_t number(const engine::Turn& turn) const;
    /// The node without which the barrier will never be complete.
    std::optional<Node> lost(const engine::Turn& turn) const;
    /// Looks up which members the barrier waits for (Inbox::barrier_awaits).
    void look(const engine::Turn& turn);
    /// Does not wait any more. This member has arrived all the same: the next barrier() goes on waiting.
    void leave(const engine::Turn& turn);

private:
    void end(const engine::Turn& turn);

    Membership& seat_;
    DeadlockSearch& search_; // is told when the call is not blocked as it was before
    std::optional<BarrierToken> token_;
};

} // namespace kumi::group
