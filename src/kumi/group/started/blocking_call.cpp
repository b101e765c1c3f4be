#include "kumi/group/started/blocking_call.hpp"

namespace kumi::group {

BlockingCall::BlockingCall(Membership& seat, const CallShape& shape, Instant deadline)
    : refused_(enter(seat, shape, deadline)) {}

/// Begins the call, or is behind others. An error: the call is not made.
Result<void> BlockingCall::enter(Membership& seat, const CallShape& shape, Instant deadline) {
    const auto refused = [&](ErrorCode code, std::string_view why) {
        return refusal(seat, shape.collective, code, why);
    };
    if (seat.mailbox.has_ended()) return refused(ErrorCode::ended, job_has_ended);
    if (auto good = check_rank(seat, shape.collective, shape.root); !good) return good;
    engine::Dispatcher& dispatcher = seat.mailbox.dispatcher();
    if (dispatcher.progress().in_handler()) return refused(ErrorCode::misuse, no_wait_in_handler);
    const auto turn = dispatcher.take_turn();
    is_behind_ = !seat.box.started.empty();
    if (is_behind_) return {};
    if (seat.box.call != nullptr) return refused(ErrorCode::misuse, another_thread);
    call_.emplace(turn, seat, shape, deadline, CollectiveCall::Form::blocking);
    return {};
}

} // namespace kumi::group
