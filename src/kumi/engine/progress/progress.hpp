#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"

#include <cstdint>
#include <memory>

namespace kumi::engine {

class ProgressLink;

/// What a future needs of the engine. All calls are for any thread.
class Progress {
public:
    Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// What futures hold of the engine, which they may outlive.
    const std::shared_ptr<ProgressLink>& link() const noexcept { return link_; }
    /// The engine ends: threads that wait for futures are told so. Returns when no future uses the engine any more.
    /// Requires that the other functions can still be called. Not with the turn.
    void end() noexcept;

    /// Makes progress until `done()`; it is looked at while no handler runs. False when the deadline came first. `what`
    /// says what is waited for, for people.
    virtual bool wait_until(base::FunctionRef<bool()> done, Instant deadline, const char* what = "waiting") = 0;
    /// Whoever is in wait_until() looks at its done() again.
    virtual void wake() noexcept = 0;
    /// This thread is inside a handler, where nothing may wait.
    virtual bool in_handler() const noexcept = 0;
    /// This thread runs code of the program until reclaim(), and other threads may use the engine meanwhile if this
    /// thread has the turn. False: reclaim() is not to be called.
    virtual bool lend() noexcept { return false; }
    virtual void reclaim() noexcept {}
    /// The answer to what was asked under this number is not wanted any more. True if it had not come yet.
    virtual bool forget(std::uint64_t asked) = 0;

protected:
    ~Progress();

private:
    std::shared_ptr<ProgressLink> link_;
};

} // namespace kumi::engine
