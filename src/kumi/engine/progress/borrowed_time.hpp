#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/engine/progress/turn_lock.hpp"

#include <optional>
#include <string_view>

namespace kumi::engine {

/// For a thread that waits and gets the turn now and then: how long the turn has only been borrowed. After a long time
/// the handler that the other thread runs is likely to wait for a mutex of this thread, which then waits for ever.
class BorrowedTime {
public:
    /// What to tell the program then.
    static constexpr std::string_view advice = "another thread runs a handler that does not end; if the handler waits "
                                               "for a mutex that this thread holds, release it between calls";

    /// To be called with each turn. True: all turns of the last `longest` were borrowed.
    bool is_over(const Turn& turn, Duration longest) noexcept {
        if (!turn.is_borrowed()) return since_.reset(), false;
        const Instant time = now();
        if (!since_) since_ = time;
        return time - *since_ >= longest;
    }

private:
    std::optional<Instant> since_;
};

} // namespace kumi::engine
