#pragma once

// What a call that has waited for long says to the members that it waits for, so that members that wait for each other
// in different calls find out. The rules are in deadlock.hpp.

#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/collective/call_shape.hpp"
#include "kumi/group/collective/deadlock.hpp"
#include "kumi/group/mail/mailbox.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::group {

class DeadlockSearch {
public:
    explicit DeadlockSearch(Membership& seat) noexcept : seat_(seat) {}

    /// A message has begun to come, or is allowed to go: the call is not blocked.
    void move(const engine::Turn&) noexcept { deadlock_.move(); }
    /// True once in each interval of keep-alives, but not in the first: the call has waited for long.
    bool is_due(const engine::Turn& turn) noexcept;
    /// Takes the word of a mismatch, if a member has sent one before the call began to wait for that member.
    std::optional<Inbox::Early> take_mismatch(const engine::Turn& turn);
    /// Asks the members that the call waits for. The network learns by that whether they are still there. `own` is a
    /// header of the call.
    void ask(const engine::Turn& turn, const CollectiveHeader& own);
    /// A member in a different call, and what it said.
    using Other = std::pair<Node, CollectiveHeader>;
    /// `ask`, `stuck` or `chase`, of a member that has waited for long. They say nothing to a call that is not blocked.
    /// Answers another member's call if the two can never go on.
    std::optional<Other> on_message(const engine::Turn& turn, Node source, const CollectiveHeader& head,
                                    const CallShape& shape, const CollectiveHeader& own);

private:
    void on_stuck(const engine::Turn& turn, Node source, const CollectiveHeader& head, const CallShape& shape,
                  const CollectiveHeader& own);
    std::optional<Other> on_chase(const engine::Turn& turn, const CollectiveHeader& head, const CollectiveHeader& own);
    void pass_on(const engine::Turn& turn, const Deadlock::Chase& chase, const Deadlock::Member& to,
                 const CollectiveHeader& own);

    Membership& seat_;
    Deadlock deadlock_;
    std::optional<std::uint64_t> looks_; // of the engine, that this has seen
    std::vector<Other> others_; // members that are blocked in different calls
};

} // namespace kumi::group
