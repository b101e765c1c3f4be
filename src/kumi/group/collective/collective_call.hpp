#pragma once

// One call of a collective at one member: messages to and from other members, and waiting for them. A call exists from
// its beginning to its end: BlockingCall and Started (started/) decide when it begins.
//
// Collectives are written as if all went well. After a failure nothing is sent or received any more; members that wait
// for a message are told, and messages that members still send are skipped. So a collective goes through all of its
// steps in any case, ends them with `co_await call.wait()`, and the outcome is asked for at the end.
//
// The steps are a coroutine (started/steps.hpp), which serves blocking calls and calls that were started.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/barrier_wait.hpp"
#include "kumi/group/collective/call_failure.hpp"
#include "kumi/group/collective/call_sender.hpp"
#include "kumi/group/collective/call_shape.hpp"
#include "kumi/group/collective/deadlock_search.hpp"
#include "kumi/group/mail/mailbox.hpp"
#include "kumi/group/started/steps.hpp"

#include <coroutine>
#include <cstdint>
#include <exception>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kumi::group {

inline constexpr std::string_view job_has_ended = "the job has ended";
inline constexpr std::string_view no_wait_in_handler = "a handler must not wait: start() the call instead";
inline constexpr std::string_view another_thread =
    "another thread is in a call on this set, and only one at a time can be";
inline constexpr std::string_view late_behind_others =
    "calls on this set that were started before have not ended within the time given";

/// The error of a call: what was called, by which members, and why it failed.
Error refusal(const Membership& seat, Collective collective, ErrorCode code, std::string_view why);
/// An error if the set has no member of that rank.
Result<void> check_rank(const Membership& seat, Collective collective, Node rank);

class CollectiveCall {
public:
    /// How the steps wait.
    enum class Form : std::uint8_t {
        blocking, // the thread that makes them waits itself
        started,  // they suspend, and what arrives resumes them
        late,     // as started; the call was late before it began, so its steps only tell other members
    };
    /// Begins the call.
    CollectiveCall(const engine::Turn& turn, Membership& seat, const CallShape& shape, Instant deadline, Form form);
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
    /// Arrives at the barrier of the set, which wait() waits for.
    void arrive();
    /// Waits until all that was begun is done, or for what is to be received only. Awaited by steps; the answer is
    /// false if the call has failed.
    class Waiting;
    Waiting wait() noexcept;
    Waiting wait_received() noexcept;

    /// Combines values that are here already.
    void combine_here(MutableBytes into, Bytes other, const Combine& combine, bool other_is_first);
    /// Copies what this member has itself, unless the call is late: then the program may have taken its memory back.
    void copy(MutableBytes to, Bytes from) const noexcept;
    void copy(std::vector<std::byte>& to, Bytes from) const;
    /// Runs code of the program; what it throws fails the call, and so does an error that it returns.
    bool run(base::FunctionRef<Result<void>()> code);
    /// This member cannot do its part.
    void refuse(const std::string& why);
    /// Fails the call at this member alone.
    void give_up(ErrorCode code, const std::string& why);
    /// The steps have thrown: there is no memory. All members are told.
    void on_thrown(const std::exception_ptr& thrown);
    /// How the call has ended, after the last wait.
    Result<void> outcome();

    const Membership& seat() const noexcept { return seat_; }
    /// Resumes the steps of a call that was started if what they wait for is done. False: they still wait.
    bool go_on(const engine::Turn& turn);
    /// The time given is over.
    void on_late(const engine::Turn& turn);
    /// A member that has not come, or that takes nothing; one of them.
    std::optional<Node> awaited() const;
    /// What the call waits for, for people.
    std::string describe() const;

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
    bool is_done(const engine::Turn& turn, bool for_sends);
    void add(const Receive& receive);
    void find_early(const engine::Turn& turn, std::size_t index);
    bool check(const engine::Turn& turn, Node source, const CollectiveHeader& head);
    /// `told` is for other members; empty: the same as `why`.
    void fail(const engine::Turn& turn, ErrorCode code, const std::string& why, const std::string& told = {},
              std::uint64_t mismatch = 0);
    /// What the headers of all messages of this call have in common.
    CollectiveHeader own() const noexcept;

    Membership& seat_;
    Mailbox& mailbox_;
    engine::Dispatcher& dispatcher_;
    Inbox& box_;
    CallShape shape_;
    Instant deadline_;
    Form form_;
    std::uint32_t serial_;
    std::size_t open_ = 0; // receives
    std::uint64_t heard_bytes_ = 0;
    bool has_failed_ = true; // as the last wait has found; before that, it is not known to be good
    bool waits_for_sends_ = false;
    std::coroutine_handle<> suspended_; // the steps of a call that was started, while they wait
    CallSender sender_;
    DeadlockSearch search_;
    BarrierWait barrier_;
    CallFailure failure_;
    std::list<std::vector<std::byte>> contents_; // of messages that are put together first
};

class CollectiveCall::Waiting {
public:
    Waiting(CollectiveCall& call, bool for_sends) noexcept : call_(call), for_sends_(for_sends) {}

    bool await_ready();
    void await_suspend(std::coroutine_handle<> steps) noexcept {
        call_.waits_for_sends_ = for_sends_;
        call_.suspended_ = steps;
    }
    bool await_resume() noexcept;

private:
    bool wait_here();

    CollectiveCall& call_;
    bool for_sends_;
};

inline CollectiveCall::Waiting CollectiveCall::wait() noexcept { return {*this, true}; }
inline CollectiveCall::Waiting CollectiveCall::wait_received() noexcept { return {*this, false}; }

} // namespace kumi::group
