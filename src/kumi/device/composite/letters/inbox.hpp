#pragma once

#include "kumi/device/composite/letters/envelope.hpp"
#include "kumi/pm/message.hpp"

#include <map>
#include <optional>

namespace kumi::device::composite {

/// Puts the messages of one source in order. Each number is taken once, whatever way it comes by; a message that has
/// overtaken others is kept until its turn. Pure.
class Inbox {
public:
    /// No message is so many ahead: devices hold fewer.
    static constexpr Sequence early_max = 1 << 20;

    /// Every earlier message has been handed out.
    Sequence expected() const noexcept { return expected_; }
    /// The expected message is handed out.
    void advance() noexcept { ++expected_; }

    /// A message of that number was handed out or is kept, or none can have it.
    bool has_come(Sequence sequence) const noexcept {
        const bool is_old = is_before(sequence, expected_) || sequence - expected_ > early_max;
        return is_old || early_.contains(sequence);
    }
    /// Keeps a message that is not the expected one and has not come before.
    void keep(Sequence sequence, pm::KeptMessage message) { early_.emplace(sequence, std::move(message)); }
    bool has_early() const noexcept { return !early_.empty(); }
    /// The expected message, if it is kept here; advances.
    std::optional<pm::KeptMessage> take_early() {
        while (!early_.empty() && is_before(early_.begin()->first, expected_)) early_.erase(early_.begin());
        const auto next = early_.find(expected_);
        if (next == early_.end()) return std::nullopt;
        std::optional<pm::KeptMessage> message(std::move(next->second));
        early_.erase(next);
        advance();
        return message;
    }

private:
    struct Earlier {
        bool operator()(Sequence a, Sequence b) const noexcept { return is_before(a, b); }
    };

    Sequence expected_ = 0;
    std::map<Sequence, pm::KeptMessage, Earlier> early_;
};

} // namespace kumi::device::composite
