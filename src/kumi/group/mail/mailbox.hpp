#pragma once

// The messages of collectives: the service of the engine by which CollectiveCalls send, and the inboxes in which
// messages arrive, one for each set in use.
//
// Matching. A set has a key, computed from its members. Members make the same calls on a set in the same order, and
// messages between two nodes stay in order. So the next message of a member with that key is the one that the call
// waits for. Nothing is counted, and nothing is kept of a set between two calls.
//
// Failures. A member whose call fails tells the members that it still owes messages, and drops the messages that others
// still owe it: a member's messages of one call have the same serial. So the next call on the set is in step again, if
// all members make the same calls after the failure too.
//
// Mismatches. Members that make different calls wait for members that owe them nothing. So a call that fails for this
// reason tells all members, and the calls of members that wait for it fail too. A mismatch has a number, so that it
// fails one call of each node and not also the next one.
//
// Bounds. A message of up to eager_bytes_max is sent at once, and the receiver keeps it until its call receives it. The
// messages that a node has sent so to another node, and that were not received yet, cost window_bytes at most. Beyond
// that, and for large messages, the sender asks first and sends when the receiver is ready. So a node keeps at most
// window_bytes for each other node, however far these are ahead, and a member that is far ahead on one set does not
// block other sets. Messages for calls that this node never makes (after failures) stay, as part of this window.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/mail/inbox.hpp"
#include "kumi/group/set.hpp"
#include "kumi/group/wire/collective.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kumi::group {

class Mailbox;
class StartedCalls;

/// A member's place in a set. While it exists there is an inbox for the set. It may outlive the job; then it is of no
/// use.
struct Membership : std::enable_shared_from_this<Membership> {
    Mailbox& mailbox;
    std::shared_ptr<Mailbox> keeps; // the mailbox, if somebody shares it
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

class Mailbox final : public engine::Service, public std::enable_shared_from_this<Mailbox> {
public:
    static constexpr std::size_t eager_bytes_max = std::size_t{64} << 10;
    static constexpr std::uint32_t window_bytes = 256 << 10;
    static constexpr std::uint32_t message_cost = 64; // beside its bytes
    // messages of one node; of more, the oldest of some set are dropped
    static constexpr std::uint32_t kept_max = window_bytes / message_cost + 1024;
    static constexpr std::size_t mismatches_max = 64;
    static constexpr std::size_t skips_max = 1 << 16; // of more, the oldest are forgotten

    explicit Mailbox(engine::Dispatcher& dispatcher);
    ~Mailbox();

    engine::Dispatcher& dispatcher() noexcept { return dispatcher_; }
    /// Data goes in pieces of this size at most.
    std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }
    /// Messages that were not received yet.
    std::size_t kept() const noexcept;
    std::size_t boxes() const noexcept { return boxes_.size(); }
    /// The job has ended: the engine is not there any more.
    // Acquire: partner of the release in on_end().
    bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }
    /// Calls that no thread waits for.
    StartedCalls& started() noexcept { return *started_; }
    void want_progress(const engine::Turn& turn, bool wanted) noexcept { port_.want_progress(turn, wanted); }
    /// A message of another member's has come.
    void on_post(const engine::Turn& turn, Node source, const CollectiveHeader& head, Bytes data);

    // ---- inboxes

    Inbox& find_or_add(const engine::Turn& turn, std::uint64_t key);
    /// The inbox may be needed no more; then it goes.
    void leave(const engine::Turn& turn, Inbox& box) noexcept;
    Inbox::Early take_early(const engine::Turn& turn, Inbox& box, std::deque<Inbox::Early>::iterator early);

    // ---- sending

    /// Whether a message of so many bytes may go to that node at once.
    bool has_window(const engine::Turn&, Node to, std::uint64_t bytes) const noexcept {
        return peers_[to].sent - peers_[to].taken + cost_of(bytes) <= window_bytes;
    }
    /// The first piece of such a message has gone.
    void note_sent(const engine::Turn&, Node to, std::uint64_t bytes) noexcept { peers_[to].sent += cost_of(bytes); }
    /// False: there is no room now.
    bool try_post(const engine::Turn& turn, Node to, CollectiveHeader head, Bytes data) noexcept;
    /// Sends at once, or when there is room.
    void post(const engine::Turn& turn, Node to, CollectiveHeader head, Bytes data = {});
    /// A message of that node is received, and needs no room any more.
    void take(const engine::Turn& turn, Node source, const CollectiveHeader& head);
    /// Nobody will want a message of that node.
    void drop(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head);

    // ---- calls

    std::uint32_t next_serial(const engine::Turn&) noexcept { return ++serial_; }
    /// The number of a state in which a call of this node is blocked (deadlock.hpp).
    std::uint32_t next_state(const engine::Turn&) noexcept { return ++states_; }
    /// That mismatch has made a call of this node fail.
    bool knows(const engine::Turn& turn, std::uint64_t mismatch) const noexcept;
    void add_mismatch(const engine::Turn& turn, std::uint64_t mismatch);
    /// What that node still sends for a call with this serial is not wanted; without a serial: for the call of its next
    /// message.
    void add_skip(const engine::Turn& turn, Inbox& box, Node source, std::optional<std::uint32_t> serial);

private:
    struct Peer {
        std::uint32_t sent = 0;       // cost of what was sent to it at once
        std::uint32_t taken = 0;      // of that, what it has received
        std::uint32_t taken_here = 0; // cost of what this node has received from it
        std::uint32_t told = 0;       // of that, what it was told
        std::uint32_t kept = 0;       // messages of it
    };

    // engine::Service
    engine::Handled on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const engine::Turn& turn) noexcept override;
    Instant next_due(const engine::Turn& turn) const noexcept override;
    void check_silent_peers(const engine::Turn& turn) noexcept override;
    void on_lost(const engine::Turn& turn, Node node) noexcept override;
    bool is_done(const engine::Turn& turn) const noexcept override;
    void on_end(const engine::Turn& turn) noexcept override;

    /// The call that is under way in the inbox has got something. The inbox may be gone afterwards.
    void after_message(const engine::Turn& turn, Inbox& box);
    void take_in(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data);
    static std::uint32_t cost_of(std::uint64_t bytes) noexcept {
        return message_cost + static_cast<std::uint32_t>(bytes);
    }
    Inbox* find(std::uint64_t key) noexcept;
    void note_taken(Node by, std::uint32_t taken) noexcept;
    bool add_more(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data);
    void keep(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data);
    void forget_one(const engine::Turn& turn, Node source, const Inbox& current);
    void forget_if(const engine::Turn& turn, Inbox& box, Node source,
                   base::FunctionRef<bool(const CollectiveHeader&)> is_unwanted);
    void forget_up_to(const engine::Turn& turn, Inbox& box, Node source, std::uint32_t serial);
    static bool is_skipped(Inbox& box, Node source, const CollectiveHeader& head);

    engine::Dispatcher& dispatcher_;
    engine::Port port_;
    std::size_t chunk_bytes_;
    std::vector<Peer> peers_; // by node
    std::unordered_map<std::uint64_t, std::unique_ptr<Inbox>> boxes_;
    Inbox* last_ = nullptr;              // that was found
    std::deque<std::uint64_t> skipping_; // keys of boxes that skips were added to, oldest first
    std::uint32_t serial_ = 0;
    std::deque<std::uint64_t> mismatches_; // the latest ones that made calls of this node fail
    std::uint32_t states_ = 0;             // that calls of this node were blocked in; see deadlock.hpp
    std::unique_ptr<StartedCalls> started_;
    std::atomic<bool> has_ended_{false};
};

} // namespace kumi::group
