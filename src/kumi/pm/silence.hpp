#pragma once

// When to tell the user that a node does not answer.

#include "kumi/base/clock.hpp"

#include <cstdint>

namespace kumi::pm {

/// Decides when the user is told that a node does not answer, and that it answers again. One object for each node.
class Silence {
public:
    static constexpr Duration told_after = std::chrono::seconds(2);

    enum class News : std::uint8_t { none, began, ended };

    /// Answers what to tell the user now. `owed` is how long the node has owed an answer.
    News look(Duration owed, Instant now) noexcept {
        if ((owed >= told_after) == is_told_) return News::none;
        is_told_ = !is_told_;
        if (!is_told_) return News::ended;
        since_ = now - owed;
        return News::began;
    }

    /// How long the silence that look() has reported has lasted.
    double seconds(Instant now) const noexcept { return std::chrono::duration<double>(now - since_).count(); }

private:
    bool is_told_ = false;
    Instant since_{};
};

} // namespace kumi::pm
