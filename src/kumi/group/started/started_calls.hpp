#pragma once

// Calls of collectives that were started and that no thread waits for: what arrives drives them.
//
// The calls on one set are made one after the other, in the order in which they were started: the first one is under
// way, the others wait in the set's inbox. So messages are matched as those of blocking calls are, and a member may
// start a call before other members have ended the one before. Calls on different sets are under way together.
//
// A call that is late while it waits behind others has its future completed at once, and stays: when its turn comes
// its steps are made as those of a failed call, which tells the other members. Such steps do not touch the buffers of
// the program any more.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/call_shape.hpp"
#include "kumi/group/collective/collective_call.hpp"
#include "kumi/group/mail/mailbox.hpp"
#include "kumi/group/started/steps.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::group {

/// One call that was started. All functions require the turn.
class Started {
public:
    Started(std::shared_ptr<Membership> seat, const CallShape& shape, Instant deadline, bool is_waited_for)
        : seat_(std::move(seat)), shape_(shape), deadline_(deadline), is_waited_for_(is_waited_for) {}
    Started(const Started&) = delete;
    Started& operator=(const Started&) = delete;
    virtual ~Started() = default;

    Membership& seat() const noexcept { return *seat_; }
    const CallShape& shape() const noexcept { return shape_; }
    Instant deadline() const noexcept { return deadline_; }
    /// A thread of the program waits for it, as in a blocking call.
    bool is_waited_for() const noexcept { return is_waited_for_ && !is_complete(); }

    /// Completes the future, unless it is complete.
    virtual void complete(const Result<void>& outcome) = 0;
    virtual bool is_complete() const noexcept = 0;

    /// Makes the steps that can be made; the first time, begins. True: the call is over. Requires that it is the first
    /// one of its set.
    bool go_on(const engine::Turn& turn);
    /// How the call has ended.
    const Result<void>& outcome() const noexcept { return *outcome_; }
    /// When check_time() is to be called; never, if the call is known to be late. A call whose future was cancelled
    /// goes on, and has its deadline.
    Instant due() const noexcept { return is_late_ ? never : deadline_; }
    /// Fails the call if its time is over. True if it fails now.
    bool check_time(const engine::Turn& turn, Instant time);
    /// Gives the call up, without a word to others.
    void abandon() noexcept;

private:
    virtual Steps steps(CollectiveCall& call) = 0;

    std::shared_ptr<Membership> seat_;
    CallShape shape_;
    Instant deadline_;
    bool is_waited_for_;
    bool is_late_ = false; // before its turn came
    std::optional<CollectiveCall> call_;
    std::optional<Steps> running_; // the steps; they use the call
    std::optional<Result<void>> outcome_;
};

class StartedCalls {
public:
    /// The calls of one set; one more waits.
    static constexpr std::size_t waiting_max = 256;

    explicit StartedCalls(Mailbox& mailbox) noexcept : mailbox_(mailbox) {}

    /// Makes the call, or lets it wait for those before it. An error: the call is not made.
    Result<void> add(const std::shared_ptr<Started>& started);

    /// Something has come for a set, or for some of them.
    void go_on(const engine::Turn& turn, Inbox& box);
    void go_on_with(const engine::Turn& turn, Node node);
    /// Sends what waits for room, and looks at the time. True: something has ended.
    bool go_on_all(const engine::Turn& turn);
    /// Completes the futures of calls that are over. Their continuations may start calls. An inbox may be gone
    /// afterwards.
    void finish(const engine::Turn& turn) {
        if (!finished_.empty() && !is_finishing_) finish_now(turn);
    }
    /// The job ends.
    void end(const engine::Turn& turn);

    bool empty(const engine::Turn&) const noexcept { return boxes_.empty(); }
    /// When go_on_all() is to be called at the latest.
    Instant next_deadline(const engine::Turn&) const noexcept;

private:
    void finish_now(const engine::Turn& turn);
    Result<void> check(const Started& started) const;
    Result<void> check_turn(const engine::Turn& turn, const Started& started) const;
    Result<void> wait_for_room(const Started& started);
    void note_wants(const engine::Turn& turn, Inbox& box);

    Mailbox& mailbox_;
    std::vector<Inbox*> boxes_; // in which calls are under way
    std::size_t wanting_ = 0;   // of these, the number that want progress
    int in_barriers_ = 0;       // and the number that wait for a barrier
    std::vector<std::pair<std::shared_ptr<Started>, Result<void>>> finished_;
    bool is_finishing_ = false;
};

} // namespace kumi::group
