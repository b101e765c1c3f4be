#pragma once

// One message that a thread sends: at once, or later out of the outbox, or after the thread has waited for room.
//
// A thread that runs a handler must not wait, so the outbox keeps what it sends. A thread whose turn is borrowed sends
// while another thread runs a handler, which may wait for a mutex of this thread. The outbox keeps its messages, too,
// until very much waits. Then the thread waits, for some seconds at most: the message is an error if the handler has
// not ended by then.

#include "kumi/base/result.hpp"
#include "kumi/engine/progress/borrowed_time.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <string>

namespace kumi::engine {

class Dispatcher;
using pm::Node;

class WaitingSend {
public:
    WaitingSend(Dispatcher& dispatcher, Node to) noexcept : dispatcher_(dispatcher), to_(to) {}

    /// True when the thread need not wait any more: result() says why. `try_send()` answers whether it has sent the
    /// message, `keep()` whether the outbox has taken it.
    template <class TrySend, class Keep>
    bool is_over(const Turn& turn, TrySend&& try_send, Keep&& keep) {
        if (was_sent_ || (was_sent_ = try_send()) || is_lost()) return true;
        if (!must_keep(turn)) return was_stuck_ = is_stuck(turn);
        was_sent_ = keep();
        return true;
    }
    /// An error: the node is lost, or the handler of another thread has not ended for long.
    Result<void> result() const;
    /// What the thread waits for, for people.
    std::string describe() const;

private:
    bool is_lost() const noexcept;
    bool must_keep(const Turn& turn) const noexcept;
    bool is_stuck(const Turn& turn) noexcept;

    Dispatcher& dispatcher_;
    Node to_;
    bool was_sent_ = false;
    bool was_stuck_ = false;
    BorrowedTime borrowed_;
    std::size_t waiting_bytes_ = 0; // in the outbox, at the last look
};

} // namespace kumi::engine
