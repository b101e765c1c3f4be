#pragma once

// One call of a collective at one member, as messages to and from the others. It is written as if all went well: after
// a failure nothing is sent or received any more, but those who wait for a message are told, and those who still send
// one are not waited for. So a collective goes through all of its steps in any case.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/deadlock.hpp"
#include "kumi/group/collective/mailbox.hpp"

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kumi::group {

struct CallShape {
    Collective collective;
    Node root = 0;
    std::uint64_t bytes = 0;     // that all members must come with
    std::size_t bytes_each = 1;  // messages are cut between values of this size
    bool takes_any_size = false; // each member comes with what it has
};

class CollectiveCall {
public:
    CollectiveCall(Membership& seat, const CallShape& shape, Instant deadline);
    CollectiveCall(const CollectiveCall&) = delete;
    CollectiveCall& operator=(const CollectiveCall&) = delete;
    ~CollectiveCall();

    /// Begins; `data` must stay until wait(). True: it has gone already.
    bool send(Node rank, std::size_t step, Bytes data);
    /// Begins. There after wait(), if that says so.
    void receive(Node rank, std::size_t step, MutableBytes target);
    /// The same, combined with `mine` as it comes, which may be where the target is. What comes is first, or second.
    void receive_into(Node rank, std::size_t step, MutableBytes target, Bytes mine, const Combine& combine,
                      bool is_first);
    void receive_any(Node rank, std::size_t step, std::vector<std::byte>& content);
    /// To the target if it has its size, otherwise to the other place.
    void receive_fitting(Node rank, std::size_t step, MutableBytes target, std::vector<std::byte>& content);
    /// Until all that was begun is done; false: it has failed.
    bool wait() { return wait(true); }
    /// The same for what is to be received only.
    bool wait_received() { return wait(false); }

    /// Combines two that are here already.
    void combine_here(MutableBytes into, Bytes other, const Combine& combine, bool other_is_first);
    /// This member cannot do it.
    void refuse(std::string why);
    /// Waits for the rest.
    Result<void> end();

    /// What the sender of the last message came with.
    std::uint64_t heard_bytes() const noexcept { return heard_bytes_; }
    void set_bytes(std::uint64_t bytes) noexcept;

private:
    friend class Mailbox;

    bool wait(bool for_sends);
    bool is_done(bool for_sends);
    void add(const Receive& receive);
    void find_early(std::size_t index);
    Receive* find_receive(Node source) noexcept;
    void bind(Receive& receive, Node source, const CollectiveHeader& head, Bytes data);
    bool check(Node source, const CollectiveHeader& head);
    bool make_room(Receive& receive, Node source, const CollectiveHeader& head);
    void feed(Receive& receive, Bytes data);
    bool apply(const Combine& combine, std::byte* into, const std::byte* mine, Bytes data, bool is_first);
    bool advance(Sending& sending);
    void advance_all();
    void on_cleared(Node source, bool is_wanted);
    void on_trouble(Node source, const CollectiveHeader& head, Bytes text);
    bool find_gone();
    bool find_mismatch();
    void check_silent_peers();
    const Sending* find_sending(Node to) const noexcept;
    bool is_waiting_for(Node node) const noexcept;
    bool is_blocked() const noexcept;
    bool has_same_name(const CollectiveHeader& head) const noexcept;
    bool has_same_size(const CollectiveHeader& head) const noexcept;
    void on_waiting(Node source, const CollectiveHeader& head);
    void on_stuck(Node source, const CollectiveHeader& head);
    void on_chased(const CollectiveHeader& head);
    void pass_on(const Deadlock::Chase& chase, const Deadlock::Member& to);
    void fail(std::string why, std::string told, std::uint64_t mismatch = 0);
    void fail(const std::string& why) { fail(why, why); }
    void tell(Node to);
    void tell(Node to, MessageKind kind);
    void tell_all();
    void skip(Node from);
    CollectiveHeader head_of(MessageKind kind, std::uint16_t step, std::uint64_t bytes) const noexcept;
    std::string name(Node node) const { return core_.name_of(node); }

    Membership& seat_;
    Mailbox& mailbox_;
    engine::Core& core_;
    Inbox& box_;
    CallShape shape_;
    Instant deadline_;
    std::uint32_t serial_ = 0;
    std::size_t open_ = 0; // receives
    std::size_t piece_bytes_;
    std::uint64_t heard_bytes_ = 0;
    bool has_begun_ = false;
    bool has_failed_ = false; // as all that follows, with the turn: handlers make calls fail
    std::string why_;
    std::string told_;                   // to others
    std::uint64_t mismatch_ = 0;         // that made it fail, if one has; see mailbox.hpp
    std::optional<std::uint64_t> looks_; // of the engine, that this has seen
    Deadlock deadlock_;
    std::vector<std::pair<Node, CollectiveHeader>>
        others_; // members that are blocked in different calls, and what they said
    std::vector<Node> told_to_;
    std::vector<Node> skipped_;
    std::list<std::vector<std::byte>> contents_; // of messages that are put together first
};

} // namespace kumi::group
