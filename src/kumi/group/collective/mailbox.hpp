#pragma once

// Messages between the members of a set that do something together: what a CollectiveCall sends, and where it arrives.
// Used with the engine's turn.
//
// Matching. A set has a number, by its members. Members make the same calls on a set in the same order, and messages
// between two nodes stay in order: so the next message of another member's with that number is the one that is waited
// for. Nothing is counted, and nothing is known of a set between two calls.
//
// Failures. A member whose call fails tells those to whom it still owes messages, and drops what others still owe it:
// their messages of one call have a serial in common. So the next call on the set is in step again, if all make the
// same calls after a failure too.
//
// Mismatches. Members that make different calls wait for members that owe them nothing. So a call that fails for this
// cause tells all members, and the calls of those that wait for it fail likewise. A mismatch has a number, by which
// each node lets one call fail, not also the next one.
//
// Bounds. A message of up to eager_bytes_max is sent at once, and kept until somebody receives it. What a node has sent
// so to another, and that one has not received, costs window_bytes at most. Beyond that, and with large messages, a
// node asks first and sends when the other one receives. So a node keeps window_bytes for each other node at most,
// however far they are ahead of it, and a member that is far ahead on one set is not in the way of others. What was
// sent for calls that this node never makes (after failures) stays, as part of this window.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/core.hpp"
#include "kumi/group/collective/collectives.hpp"
#include "kumi/group/set.hpp"
#include "kumi/group/wire/collective.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kumi::group {

class Mailbox;
class CollectiveCall;
struct Inbox;

/// A member's place in a set; for as long as it lives, there is a box for its messages.
struct Membership {
    Mailbox& mailbox;
    Set set;
    std::vector<Node> members; // by rank
    Node rank;
    Inbox& box;

    Membership(Mailbox& in, const Set& of, std::uint64_t key);
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;
    ~Membership();
    Node size() const noexcept { return static_cast<Node>(members.size()); }
};

/// A message that is awaited.
struct Receive {
    Node from;
    std::uint16_t step;
    std::byte* target;
    std::uint64_t bytes;
    std::vector<std::byte>* content = nullptr; // where it goes first, if not to the target: then it may have any size
    const Combine* combine = nullptr;          // with
    const std::byte* mine = nullptr;           // which may be where the target is
    bool is_first = false;                     // comes before it
    bool may_fit = false;                      // goes to the target at once if it has its size
    std::uint64_t arrived = 0;
    std::uint32_t serial = 0;
    bool is_bound = false; // it has begun to come
    bool is_done = false;
};

/// A message that has not gone yet.
struct Sending {
    enum class State : std::uint8_t { fresh, eager, asked, cleared };
    Node to;
    std::uint16_t step;
    State state;
    Bytes data;
    std::uint64_t gone;
};

/// What comes for a set, and who waits for it.
struct Inbox {
    struct Early {
        Node source;
        CollectiveHeader head;
        std::vector<std::byte> data;
    };
    struct Skip { // what one member still sends for a call that failed here
        Node source;
        std::optional<std::uint32_t> serial; // none: the next that comes
    };
    struct Heard {
        Node source;
        std::uint32_t serial;
        bool is_over; // it has told that no more will come
    };
    std::uint64_t key = 0;
    unsigned seats = 0;
    CollectiveCall* call = nullptr; // the call that is under way
    std::deque<Early> early;        // that nobody has received yet
    std::vector<Skip> skips;
    // Of the call that is under way; here so that their memory is used again.
    std::vector<Receive> receives;
    std::vector<Sending> sendings;
    std::vector<Heard> heard;
};

class Mailbox final : public engine::Service {
public:
    static constexpr std::size_t eager_bytes_max = std::size_t{64} << 10;
    static constexpr std::uint32_t window_bytes = 256 << 10;
    static constexpr std::uint32_t message_cost = 64; // beside its bytes
    // messages of one node; of more, some go
    static constexpr std::uint32_t kept_max = window_bytes / message_cost + 1024;
    static constexpr std::size_t mismatches_max = 64;
    static constexpr std::size_t skips_max = 1 << 16; // of more, the oldest are forgotten

    explicit Mailbox(engine::Core& core);
    /// A message of another member's has come. With the turn.
    void on_post(Node source, const CollectiveHeader& head, Bytes data);
    engine::Core& core() noexcept { return core_; }
    /// Data goes in pieces of this size at most.
    std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }
    /// Of messages and sets, that are kept for later.
    std::size_t kept() const noexcept;
    std::size_t boxes() const noexcept { return boxes_.size(); }

private:
    friend class CollectiveCall;
    friend struct Membership;
    struct Peer {
        std::uint32_t sent = 0;  // cost of what was sent to it at once
        std::uint32_t taken = 0; // of that, what it has received
        std::uint32_t taken_here = 0;
        std::uint32_t told = 0;
        std::uint32_t kept = 0; // messages
    };

    // engine::Service
    engine::Handled on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes body) override;

    static std::uint32_t cost_of(std::uint64_t bytes) noexcept {
        return message_cost + static_cast<std::uint32_t>(bytes);
    }
    bool has_window(Node to, std::uint64_t bytes) const noexcept {
        return peers_[to].sent - peers_[to].taken + cost_of(bytes) <= window_bytes;
    }
    /// False: not now.
    bool try_post(Node to, CollectiveHeader head, Bytes data) noexcept;
    /// Now or later.
    void post(Node to, CollectiveHeader head, Bytes data = {});
    void note_taken(Node by, std::uint32_t taken) noexcept;
    /// One of its messages needs no room any more.
    void take(Node source, const CollectiveHeader& head);
    void drop(Inbox& box, Node source, const CollectiveHeader& head);

    Inbox* find(std::uint64_t key) noexcept;
    Inbox& find_or_add(std::uint64_t key);
    void leave(Inbox& box) noexcept; // it may be needed no more
    bool add_more(Inbox& box, Node source, const CollectiveHeader& head, Bytes data);
    void keep(Inbox& box, Node source, const CollectiveHeader& head, Bytes data);
    void forget_one(Node source, const Inbox& current);
    bool knows(std::uint64_t mismatch) const noexcept;
    void add_mismatch(std::uint64_t mismatch);
    Inbox::Early take_early(Inbox& box, std::deque<Inbox::Early>::iterator early);
    void forget_if(Inbox& box, Node source, base::FunctionRef<bool(const CollectiveHeader&)> is_unwanted);
    void forget_up_to(Inbox& box, Node source, std::uint32_t serial);
    bool is_skipped(Inbox& box, Node source, const CollectiveHeader& head);
    void add_skip(Inbox& box, Node source, std::optional<std::uint32_t> serial);

    engine::Core& core_;
    engine::Port port_;
    std::size_t chunk_bytes_;
    std::vector<Peer> peers_; // by node
    std::unordered_map<std::uint64_t, std::unique_ptr<Inbox>> boxes_;
    Inbox* last_ = nullptr;              // that was found
    std::deque<std::uint64_t> skipping_; // keys of boxes that skips were added to, oldest first
    std::uint32_t serial_ = 0;
    std::deque<std::uint64_t> mismatches_; // the latest ones that made calls of this node fail
    std::uint32_t states_ = 0;             // that calls of this node were blocked in; see deadlock.hpp
};

} // namespace kumi::group
