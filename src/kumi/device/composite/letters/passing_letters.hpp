#pragma once

#include "kumi/device/composite/letters/own_letters.hpp"

#include <map>
#include <utility>

namespace kumi::device::composite {

/// Letters of other nodes that this node, as a relay, is to give to one neighbour, in the order in which they came. A
/// relay refuses nothing, because each source limits what it has under way; but copies that a source sends again while
/// the relay still has the first ones go beyond that limit, and has_room() says so. Pure.
class PassingLetters {
public:
    /// From one source to one destination, unless it is a single letter.
    static constexpr std::size_t bytes_max = 2 * RelayWindow::bytes_max;

    bool empty() const noexcept { return letters_.empty(); }
    const Letter& front() const noexcept { return letters_.front(); }

    /// Whether `bytes` more from the source to the destination of `head` may wait here.
    bool has_room(const Envelope& head, std::size_t bytes) const noexcept {
        const auto held = bytes_.find(ends_of(head));
        return held == bytes_.end() || held->second + bytes <= bytes_max;
    }
    void push(Letter letter) {
        bytes_[ends_of(head_of(letter))] += letter.size();
        letters_.push_back(std::move(letter));
    }
    /// Letters that are older than all that are here.
    void put_back(Letters letters) {
        for (const Letter& letter : letters) bytes_[ends_of(head_of(letter))] += letter.size();
        letters_.splice(letters_.begin(), letters);
    }
    void pop_front() {
        const auto held = bytes_.find(ends_of(head_of(letters_.front())));
        held->second -= letters_.front().size();
        if (held->second == 0) bytes_.erase(held);
        letters_.pop_front();
    }
    void clear() noexcept {
        letters_.clear();
        bytes_.clear();
    }

private:
    using Ends = std::pair<Node, Node>; // source and destination
    static Ends ends_of(const Envelope& head) noexcept { return {head.source, head.destination}; }

    Letters letters_;
    std::map<Ends, std::size_t> bytes_; // of them
};

} // namespace kumi::device::composite
