#pragma once

// Detects members of a set that wait for each other in a circle, forever, because they made different calls: edge
// chasing after Chandy, Misra and Haas (1983). Pure: the caller sends the messages.
//
// - A member that has waited for long is blocked: it cannot go on before a message arrives. Each time that it becomes
//   blocked is a new state, with a number.
// - A blocked member asks the members that it waits for (`ask`, with its state). A member that is blocked too answers
//   (`stuck`, with both states). The answer arrives after all messages that were sent before it. If the asking member
// is
//   still in the state in which it asked, then its wait is real: the other member has sent nothing that would end it.
// - A member whose wait is real, for a member in a different call, begins a chase. A chase travels along real waits,
// from
//   member to member, and ends where the receiver is not in the state that its `stuck` told. If the chase returns to
// the
//   member that began it, and that member is still in the state in which it began, then no member of the circle can
// ever
//   go on.
//
// Members that are only ahead or behind do not make a circle: somewhere along the waits a member is not blocked, or its
// message is on its way.

#include "kumi/pm/node.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kumi::group {

using pm::Node;

class Deadlock {
public:
    using State = std::uint32_t; // 0: not blocked

    struct Member {
        Node node;
        State state; // of that member
        friend bool operator==(const Member&, const Member&) = default;
    };
    struct Chase {
        Member beginner;
        Node first; // the member that the beginner waits for
        friend bool operator==(const Chase&, const Chase&) = default;
    };

    State state() const noexcept { return state_; }
    const std::vector<Member>& waits() const noexcept { return waits_; }
    const std::vector<Chase>& chases() const noexcept { return chases_; }

    /// The member is blocked until move().
    void block(State state) noexcept {
        state_ = state;
        waits_.clear();
        chases_.clear();
    }
    void move() noexcept { state_ = 0; }

    /// `asked_in` is the state that the answer is for. False: the answer says nothing new.
    bool add_wait(State asked_in, const Member& wait) {
        if (state_ == 0 || asked_in != state_ || wait.state == 0) return false;
        const auto known = std::ranges::find(waits_, wait.node, &Member::node);
        if (known != waits_.end() && known->state == wait.state) return false;
        if (known != waits_.end()) known->state = wait.state;
        else waits_.push_back(wait);
        return true;
    }

    /// `sent_to` is the state that the chase was sent to. False: the chase ends here.
    bool add_chase(State sent_to, const Chase& chase, std::size_t chases_max) {
        if (state_ == 0 || sent_to != state_ || chases_.size() >= chases_max) return false;
        if (std::ranges::find(chases_, chase) != chases_.end()) return false;
        chases_.push_back(chase);
        return true;
    }

private:
    State state_ = 0;
    std::vector<Member> waits_; // that are real, in this state
    std::vector<Chase> chases_; // that have come, in this state
};

} // namespace kumi::group
