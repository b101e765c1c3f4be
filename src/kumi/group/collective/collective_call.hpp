#pragma once

// One call of a collective at one member: messages to and from other members, and waiting for them.
//
// Collectives are written as if all went well. After a failure nothing is sent or received any more; members that wait
// for a message are told, and messages that members still send are skipped. So a collective goes through all of its
// steps in any case, and asks for the outcome at the end.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/call_failure.hpp"
#include "kumi/group/collective/call_shape.hpp"
#include "kumi/group/collective/deadlock_search.hpp"
#include "kumi/group/collective/mailbox.hpp"

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kumi::group {

class CollectiveCall {
public:
    CollectiveCall(Membership& seat, const CallShape& shape, Instant deadline);
    CollectiveCall(const CollectiveCall&) = delete;
    CollectiveCall& operator=(const CollectiveCall&) = delete;
    ~CollectiveCall();

    /// Begins to send `data`, which must stay until wait(). True: all of it has gone already.
    bool send(Node rank, std::size_t step, Bytes data);
    /// Begins to receive. The message is in `target` after wait(), if that returns true.
    void receive(Node rank, std::size_t step, MutableBytes target);
    /// The same, combined with `mine` as it comes, which may be where the target is. `is_first`: the values that come
    /// are the first operands.
    void receive_into(Node rank, std::size_t step, MutableBytes target, Bytes mine, const Combine& combine,
                      bool is_first);
    /// A message of any size.
    void receive_any(Node rank, std::size_t step, std::vector<std::byte>& content);
    /// Into the target if the message has its size, otherwise into `content`.
    void receive_fitting(Node rank, std::size_t step, MutableBytes target, std::vector<std::byte>& content);
    /// Waits until all that was begun is done; false: the call has failed.
    bool wait() { return wait(true); }
    /// The same for what is to be received only.
    bool wait_received() { return wait(false); }

    /// Combines values that are here already.
    void combine_here(MutableBytes into, Bytes other, const Combine& combine, bool other_is_first);
    /// This member cannot do its part.
    void refuse(const std::string& why);
    /// Waits for the rest.
    Result<void> end();

    /// The bytes that the sender of the last message came with.
    std::uint64_t heard_bytes() const noexcept { return heard_bytes_; }
    void set_bytes(std::uint64_t bytes) noexcept;

    // ---- what comes; called by Mailbox

    /// The message that `receive` awaits has begun to come. The receive may be gone afterwards.
    void bind(const engine::Turn& turn, Receive& receive, Node source, const CollectiveHeader& head, Bytes data);
    /// More of it has come.
    void feed(const engine::Turn& turn, Receive& receive, Bytes data);
    /// A message of the call with that serial may go, or is not wanted.
    void on_cleared(const engine::Turn& turn, Node source, std::uint32_t serial, bool is_wanted);
    /// Another member's call has failed.
    void on_trouble(const engine::Turn& turn, Node source, const CollectiveHeader& head, Bytes text);
    /// Another member has waited for long (deadlock_search.hpp).
    void on_waiting(const engine::Turn& turn, Node source, const CollectiveHeader& head);

private:
    bool wait(bool for_sends);
    bool is_done(const engine::Turn& turn, bool for_sends);
    void add(const Receive& receive);
    void find_early(const engine::Turn& turn, std::size_t index);
    bool check(const engine::Turn& turn, Node source, const CollectiveHeader& head);
    bool make_room(const engine::Turn& turn, Receive& receive, Node source, const CollectiveHeader& head);
    bool apply(const engine::Turn& turn, const Combine& combine, std::byte* into, const std::byte* mine, Bytes data,
               bool is_first);
    bool advance(const engine::Turn& turn, Sending& sending);
    void advance_all(const engine::Turn& turn);
    bool find_gone(const engine::Turn& turn);
    bool find_mismatch(const engine::Turn& turn);
    void check_silent_peers(const engine::Turn& turn);
    /// `told` is for other members; empty: the same as `why`.
    void fail(const engine::Turn& turn, ErrorCode code, const std::string& why, const std::string& told = {},
              std::uint64_t mismatch = 0);
    CollectiveHeader head_of(MessageKind kind, std::uint16_t step, std::uint64_t bytes) const noexcept;

    Membership& seat_;
    Mailbox& mailbox_;
    engine::Dispatcher& dispatcher_;
    Inbox& box_;
    CallShape shape_;
    Instant deadline_;
    std::uint32_t serial_ = 0;
    std::size_t open_ = 0; // receives
    std::size_t piece_bytes_;
    std::uint64_t heard_bytes_ = 0;
    bool has_begun_ = false;
    std::optional<std::uint64_t> looks_; // of the engine, that this has seen
    DeadlockSearch search_;
    CallFailure failure_;
    std::list<std::vector<std::byte>> contents_; // of messages that are put together first
};

} // namespace kumi::group
