#pragma once

// Both forms of a collective, from one description of it:
//
//     struct Something {
//         using Answer = ...;                       // may be void
//         CallShape shape() const;
//         Steps steps(CollectiveCall& call);        // may refer to the members of this object
//         Answer take();                            // after the steps, if all went well and Answer is not void
//     };

#include "kumi/engine/future.hpp"
#include "kumi/group/started/blocking_call.hpp"
#include "kumi/group/started/started_calls.hpp"

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace kumi::group {

template <class What>
Result<typename What::Answer> answer_of(What& what, const Result<void>& outcome) {
    if (!outcome) return outcome.error();
    if constexpr (std::is_void_v<typename What::Answer>) return {};
    else return what.take();
}

template <class What>
class StartedCall final : public Started {
public:
    using Promise = engine::Promise<typename What::Answer>;

    StartedCall(std::shared_ptr<Membership> seat, What what, Promise promise, Instant deadline, bool is_waited_for)
        : Started(std::move(seat), what.shape(), deadline, is_waited_for), what_(std::move(what)),
          promise_(std::move(promise)) {}

    void complete(const Result<void>& outcome) override {
        if (!promise_.is_ready()) promise_.complete(answer_of(what_, outcome));
    }
    bool is_complete() const noexcept override { return promise_.is_ready(); }

private:
    Steps steps(CollectiveCall& call) override { return what_.steps(call); }

    What what_;
    Promise promise_;
};

/// Begins the call, behind those on the set that were started before. Requires that the seat is shared.
template <class What>
Future<typename What::Answer> start(Membership& seat, What what, Instant deadline, bool is_waited_for = false) {
    engine::Progress* const progress =
        seat.mailbox.has_ended() ? nullptr : &seat.mailbox.dispatcher().progress();
    engine::Promise<typename What::Answer> promise(progress);
    auto future = promise.future();
    const auto started = std::make_shared<StartedCall<What>>(seat.shared_from_this(), std::move(what),
                                                             std::move(promise), deadline, is_waited_for);
    if (auto added = seat.mailbox.started().add(started); !added) started->complete(added);
    return future;
}

/// Makes the call and waits for its end.
template <class What>
Result<typename What::Answer> call_and_wait(Membership& seat, What what, Instant deadline) {
    {
        BlockingCall blocking(seat, what.shape(), deadline);
        if (CollectiveCall* const call = blocking.call()) {
            try {
                const Steps steps = what.steps(*call);
                if (steps.thrown()) call->on_thrown(steps.thrown());
            } catch (...) {
                call->on_thrown(std::current_exception());
            }
        }
        if (!blocking.is_behind()) return answer_of(what, blocking.outcome());
    }
    return start(seat, std::move(what), deadline, true).get();
}

} // namespace kumi::group
