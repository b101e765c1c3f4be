#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/call_shape.hpp"
#include "kumi/group/collective/collective_call.hpp"

#include <optional>

namespace kumi::group {

/// A call of a thread that makes the steps itself and waits in them. The call begins with this object, unless it is
/// refused, or calls that were started on the set are still under way: then it has to be started, too.
class BlockingCall {
public:
    BlockingCall(Membership& seat, const CallShape& shape, Instant deadline);

    /// The call, of which the steps are to be made. Null: it has not begun.
    CollectiveCall* call() noexcept { return call_ ? &*call_ : nullptr; }
    /// Calls on the set that were started are under way.
    bool is_behind() const noexcept { return is_behind_; }
    /// How the call has ended. Requires that it is not behind others.
    Result<void> outcome() { return call_ ? call_->outcome() : refused_; }

private:
    Result<void> enter(Membership& seat, const CallShape& shape, Instant deadline);

    std::optional<CollectiveCall> call_;
    bool is_behind_ = false;
    Result<void> refused_; // an error: the call was not made
};

} // namespace kumi::group
