#include "kumi/engine/sending/waiting_send.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <string>

namespace kumi::engine {

bool WaitingSend::is_lost() const noexcept { return dispatcher_.is_lost(to_); }

/// The message is to wait in the outbox, and not the thread: this thread runs a handler, or another thread runs one
/// that may wait for this thread. In the second case only while not very much waits.
bool WaitingSend::must_keep(const Turn& turn) const noexcept {
    return turn.is_inner() && !(turn.is_borrowed() && dispatcher_.outbox(turn).backlog().is_full(pressure_max - 1));
}

bool WaitingSend::is_stuck(const Turn& turn) noexcept {
    waiting_bytes_ = dispatcher_.outbox(turn).backlog().bytes();
    return borrowed_.is_over(turn, dispatcher_.loop().stuck_after());
}

std::string WaitingSend::describe() const {
    return fmt::format("sending to {}: there is no room for more, because it does not handle what it has got",
                       dispatcher_.name_of(to_));
}

Result<void> WaitingSend::result() const {
    if (was_sent_) return {};
    const std::string name = dispatcher_.name_of(to_);
    if (!was_stuck_ && !is_lost())
        return error(ErrorCode::ended, "sending to {}: the job of this node has ended", name);
    if (!was_stuck_) return error(ErrorCode::node_lost, "sending to {}: it has left, or is lost", name);
    return error(ErrorCode::misuse, "sending to {}: {} wait to be sent, and {}", name,
                 base::readable_bytes(waiting_bytes_), BorrowedTime::advice);
}

} // namespace kumi::engine
