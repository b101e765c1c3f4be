#pragma once

#include "kumi/group/wire/collective.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::group {

using pm::Node;

/// What a call is: all members must make calls of the same name, and of the same size unless they take any.
struct CallShape {
    Collective collective;
    Node root = 0;
    std::uint64_t bytes = 0;     // that all members must come with
    std::size_t bytes_each = 1;  // messages are cut between values of this size
    bool takes_any_size = false; // each member comes with what it has

    bool has_same_name(const CollectiveHeader& head) const noexcept {
        return head.collective == static_cast<std::uint8_t>(collective) && head.root == root;
    }
    bool has_same_size(const CollectiveHeader& head) const noexcept {
        return takes_any_size || head.came_with == bytes;
    }
};

} // namespace kumi::group
