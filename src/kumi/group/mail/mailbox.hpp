#pragma once

// The messages of collectives: the service of the engine by which CollectiveCalls send, and which gives each message
// that arrives to its call. Inboxes has what arrived, Windows what may be sent, Mismatches what failed.
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
// messages that a node has sent so to another node, and that were not received yet, fit a window (windows.hpp). Beyond
// that, and for large messages, the sender asks first and sends when the receiver is ready. So a node keeps at most a
// window for each other node, however far these are ahead, and a member that is far ahead on one set does not block
// other sets. Messages for calls that this node never makes (after failures) stay, as part of this window.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/mail/inboxes.hpp"
#include "kumi/group/mail/mismatches.hpp"
#include "kumi/group/mail/windows.hpp"
#include "kumi/group/set.hpp"
#include "kumi/group/wire/collective.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
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
    std::uint64_t barriers; // the set's number there (engine/barrier/)
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

    explicit Mailbox(engine::Dispatcher& dispatcher);
    ~Mailbox();

    engine::Dispatcher& dispatcher() noexcept { return dispatcher_; }
    /// Data goes in pieces of this size at most.
    std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }
    /// The job has ended: the engine is not there any more.
    // Acquire: partner of the release in on_end().
    bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }

    // ---- its parts

    Inboxes& inboxes(const engine::Turn&) noexcept { return inboxes_; }
    Windows& windows(const engine::Turn&) noexcept { return windows_; }
    Mismatches& mismatches(const engine::Turn&) noexcept { return mismatches_; }
    /// Calls that no thread waits for.
    StartedCalls& started() noexcept { return *started_; }
    void want_progress(const engine::Turn& turn, bool wanted) noexcept { port_.want_progress(turn, wanted); }

    // ---- messages

    /// A message of another member's has come.
    void on_post(const engine::Turn& turn, Node source, const CollectiveHeader& head, Bytes data);
    /// False: there is no room now.
    bool try_post(const engine::Turn& turn, Node to, CollectiveHeader head, Bytes data) noexcept;
    /// Sends at once, or when there is room.
    void post(const engine::Turn& turn, Node to, CollectiveHeader head, Bytes data = {});
    /// A message of that node is received, and needs no room any more.
    void take(const engine::Turn& turn, Node source, const CollectiveHeader& head);
    /// Nobody will want a message of that node.
    void drop(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head);
    /// What that node still sends for a call is not wanted; see Inboxes.
    void add_skip(const engine::Turn& turn, Inbox& box, Node source, std::optional<std::uint32_t> serial);

    // ---- calls

    /// A call of this node has failed, and the program knows it.
    void note_failed(const engine::Turn&) noexcept { has_failed_ = true; }
    std::uint32_t next_serial(const engine::Turn&) noexcept { return ++serial_; }
    /// The number of a state in which a call of this node is blocked (deadlock.hpp).
    std::uint32_t next_state(const engine::Turn&) noexcept { return ++states_; }

private:
    // engine::Service
    engine::Handled on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const engine::Turn& turn) noexcept override;
    Instant next_due(const engine::Turn& turn) const noexcept override;
    void check_silent_peers(const engine::Turn& turn) noexcept override;
    void on_lost(const engine::Turn& turn, Node node) noexcept override;
    bool is_done(const engine::Turn& turn) const noexcept override;
    void on_end(const engine::Turn& turn) noexcept override;

    void report_unreceived(const engine::Turn& turn);
    void warn_of_barrier(const engine::Turn& turn, Node source, const CollectiveHeader& head);
    /// The call that is under way in the inbox has got something. The inbox may be gone afterwards.
    void after_message(const engine::Turn& turn, Inbox& box);
    void take_in(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data);
    bool add_more(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data);

    engine::Dispatcher& dispatcher_;
    engine::Port port_;
    std::size_t chunk_bytes_;
    Windows windows_;
    Inboxes inboxes_;
    Mismatches mismatches_;
    std::uint32_t serial_ = 0;
    std::uint32_t states_ = 0; // that calls of this node were blocked in; see deadlock.hpp
    std::unique_ptr<StartedCalls> started_;
    bool has_warned_ = false; // of nodes in a barrier of the job and in another call
    bool has_failed_ = false; // a call of this node
    std::atomic<bool> has_ended_{false};
};

} // namespace kumi::group
