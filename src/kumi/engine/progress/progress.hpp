#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"

#include <cstdint>

namespace kumi::engine {

/// What a future needs of the engine, whose Dispatcher is one. All calls are for any thread.
class Progress {
public:
    /// Makes progress until `done()`; it is looked at while no handler runs. False when the deadline came first.
    virtual bool wait_until(base::FunctionRef<bool()> done, Instant deadline) = 0;
    /// Whoever is in wait_until() looks at its done() again.
    virtual void wake() noexcept = 0;
    /// This thread is inside a handler, where nothing may wait.
    virtual bool in_handler() const noexcept = 0;
    /// The answer to what was asked under this number is not wanted any more. True if it had not come yet.
    virtual bool forget(std::uint64_t asked) = 0;

protected:
    ~Progress() = default;
};

} // namespace kumi::engine
