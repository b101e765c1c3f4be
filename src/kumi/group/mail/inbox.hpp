#pragma once

// What has come for one set, and the messages of the call that is under way there. Its owner is Inboxes; a
// CollectiveCall uses it while it is under way.

#include "kumi/base/bytes.hpp"
#include "kumi/group/mail/receive.hpp"
#include "kumi/group/started/frame_stack.hpp"
#include "kumi/group/wire/collective.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace kumi::group {

using pm::Node;

class CollectiveCall;
class Started;

/// A message that has not gone yet.
struct Sending {
    enum class State : std::uint8_t { fresh, eager, asked, cleared };
    Node to;
    std::uint16_t step;
    State state;
    Bytes data;
    std::uint64_t gone;
};

struct Inbox {
    struct Early {
        Node source;
        CollectiveHeader head;
        std::vector<std::byte> data;
    };
    struct Skip { // what one member still sends for a call that failed here
        Node source;
        std::optional<std::uint32_t> serial; // none: of the next message that comes
    };
    struct Heard {
        Node source;
        std::uint32_t serial;
        bool is_over; // the source has told that no more will come
    };
    std::uint64_t key = 0;
    unsigned seats = 0;             // Memberships that use it
    CollectiveCall* call = nullptr; // that is under way
    struct Ended {
        std::uint8_t collective;
        Node root;
    };
    std::optional<Ended> ended;     // the call on the set that ended last, barriers apart
    std::deque<Early> early;        // messages that were not received yet
    std::vector<Skip> skips;
    // Of the call that is under way; here so that their memory is used again.
    std::vector<Receive> receives;
    std::vector<Sending> sendings;
    std::vector<Heard> heard;
    // The call waits for the set's barrier of that number (collective/barrier_wait.hpp), and cannot go on without these
    // members, as was last looked up.
    std::optional<std::uint32_t> barrier;
    std::vector<Node> barrier_awaits;
    FrameStack frames;
    // Calls that were started, in order; the first one is under way (started/started_calls.hpp).
    std::vector<std::shared_ptr<Started>> started;
    bool wants_progress = false; // for calls that were started
    bool wants_barriers = false; // for a barrier that was started

    /// The next message that the call awaits from that node; null: it awaits none.
    Receive* find_receive(Node source) noexcept;
    /// The first message that is to go to that node: the others wait behind it. Null: there is none.
    const Sending* find_sending(Node to) const noexcept;
    /// Nothing happens between the call and that node before something comes from the node.
    bool is_waiting_for(Node node) const noexcept;
    /// The mismatch that `source` has told of concerns the call here. A barrier needs all members, but a member that
    /// has arrived may have gone on, and be in a later call.
    bool is_concerned(Node source, const CollectiveHeader& mismatch) const noexcept {
        if (barrier) return static_cast<std::int32_t>(mismatch.root - *barrier) <= 0;
        return is_waiting_for(source);
    }
    /// The first node for which `is` is true and without which the call cannot end; nothing: there is none.
    template <class Predicate>
    std::optional<Node> find_needed(Predicate is) const {
        for (const Receive& receive : receives)
            if (!receive.is_done && is(receive.from)) return receive.from;
        for (const Sending& sending : sendings)
            if (is(sending.to)) return sending.to;
        return {};
    }
    /// The call cannot end without that node.
    bool needs(Node node) const noexcept {
        return find_needed([&](Node other) { return other == node; }).has_value();
    }
    /// A message may go as soon as there is room.
    bool has_unsent() const noexcept;
    /// Nothing goes on in the call before a message begins to come, or one is allowed to go.
    bool is_blocked() const noexcept;
};

} // namespace kumi::group
