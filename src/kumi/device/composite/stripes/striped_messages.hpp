#pragma once

#include "kumi/device/composite/letters/envelope.hpp"

#include <deque>

namespace kumi::device::composite {

/// The messages in pieces to one peer that may not have arrived, and how far other messages are ahead of the first.
/// Pure.
class StripedMessages {
public:
    bool empty() const noexcept { return messages_.empty(); }
    void clear() noexcept { messages_.clear(); }
    /// `sent_before`: bytes of all messages that were sent to the peer before.
    void push(Sequence sequence, std::uint64_t sent_before) { messages_.push_back({sequence, sent_before}); }

    /// Bytes of the first one and of all messages since, where `sent` is what was sent to the peer so far.
    std::uint64_t bytes_since_first(std::uint64_t sent) const noexcept {
        return messages_.empty() ? 0 : sent - messages_.front().sent_before;
    }
    /// Every message before `expected` has arrived. True: one of these was among them.
    bool on_arrived(Sequence expected) noexcept {
        if (messages_.empty() || !is_before(messages_.front().sequence, expected)) return false;
        while (!messages_.empty() && is_before(messages_.front().sequence, expected)) messages_.pop_front();
        return true;
    }

private:
    struct Striped {
        Sequence sequence;
        std::uint64_t sent_before;
    };

    std::deque<Striped> messages_;
};

} // namespace kumi::device::composite
