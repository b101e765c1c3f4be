#pragma once

#include "kumi/base/assert.hpp"
#include "kumi/reliable/packet.hpp"

#include <vector>

namespace kumi::reliable {

/// First-in first-out queue of nodes. Each node is in it at most once, so it never grows.
class NodeRing {
public:
    explicit NodeRing(Node nodes) : places_(nodes) {}

    bool empty() const noexcept { return count_ == 0; }
    void push(Node node) noexcept {
        KUMI_ASSERT(count_ < places_.size());
        const std::size_t place = first_ + count_++;
        places_[place < places_.size() ? place : place - places_.size()] = node;
    }
    Node pop() noexcept {
        const Node node = places_[first_];
        first_ = first_ + 1 < places_.size() ? first_ + 1 : 0;
        --count_;
        return node;
    }

private:
    std::vector<Node> places_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
};

} // namespace kumi::reliable
