#pragma once

// Flags of this node: words that tell a thread that something has happened. Notices are what another node asks to be
// done to a flag or a counter once its data has arrived.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/engine/progress/progress_loop.hpp"
#include "kumi/pm/node.hpp"

#include <atomic>

namespace kumi::engine {

class Dispatcher;
class MemoryMap;
using pm::Node;

inline void store_flag(Flag& flag, Flag value) noexcept {
    // Release: partner of the acquire in load_flag(): a thread that sees the flag sees the data.
    std::atomic_ref<Flag>(flag).store(value, std::memory_order_release);
}

class Flags {
public:
    Flags(Dispatcher& dispatcher, MemoryMap& map) noexcept : dispatcher_(dispatcher), map_(map) {}

    /// Carries out a notice in the memory of `node`, which this process reaches. False: there is no such flag.
    bool apply(Node node, const Notice& notice) noexcept {
        return notice.kind == Notice::Kind::none || apply_some(node, notice);
    }
    /// An error if `node` has no such flag or counter, as far as this node knows.
    Result<void> check(const char* what, Node node, const Notice& notice) const;
    /// What to say when apply() has answered false.
    Error explain(const char* what, Node node, const Notice& notice) const;

    /// Sets the counter's flag to 0 until this many notices have come, those that came before included.
    void expect(Counter& counter, std::int64_t arrivals);
    enum class Test { at_least, equal };
    /// Waits until a flag of this node has that value, or one at least as large. An error: of what would have set the
    /// flag, or what sync() would return to this thread.
    Result<void> wait(const Flag& flag, Flag value, Instant deadline, Test test = Test::at_least);

    /// A flag of `node` was changed by a store: wakes a thread that sleeps there.
    void nudge(Node node) noexcept;
    /// The same after a fence.
    void nudge_after_fence(Node node) noexcept;
    /// While a thread of this node sleeps, other nodes of the host nudge it when they change a flag.
    void begin_watch(const Turn& turn) noexcept;
    void end_watch(const Turn& turn) noexcept;

private:
    bool apply_some(Node node, const Notice& notice) noexcept;

    Dispatcher& dispatcher_;
    MemoryMap& map_;
    unsigned watchers_ = 0; // threads that sleep or are about to
};

} // namespace kumi::engine
