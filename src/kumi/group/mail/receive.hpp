#pragma once

// A message that a call awaits from one member, and what becomes of its bytes as they come. Pure: the call asks whether
// a message fits before it gives it here, and tells of failures.

#include "kumi/base/bytes.hpp"
#include "kumi/group/collective/collectives.hpp"
#include "kumi/group/wire/collective.hpp"

#include <cstdint>
#include <vector>

namespace kumi::group {

struct Receive {
    Node from;
    std::uint16_t step;
    std::byte* target;
    std::uint64_t bytes;
    std::vector<std::byte>* content = nullptr; // where it goes first, if not to the target: then it may have any size
    const Combine* combine = nullptr;          // with `mine`
    const std::byte* mine = nullptr;           // which may be where the target is
    bool is_first = false;                     // comes before `mine`
    bool may_fit = false;                      // goes to the target at once if it has the target's size
    std::uint64_t arrived = 0;
    std::uint32_t serial = 0;
    bool is_bound = false; // it has begun to come
    bool is_done = false;

    /// Whether a message of that step and size is the one that is awaited.
    bool is_meant(std::uint16_t its_step, std::uint64_t size) const noexcept {
        const bool may_have_any = content != nullptr && combine == nullptr;
        return its_step == step && (may_have_any || size == bytes);
    }
    /// Makes room for a message of that size, which is meant. Throws if there is no memory.
    void make_room(std::uint64_t size);
    /// Whether `data` may be the next part. Values of `bytes_each` are not cut where they are combined as they come.
    bool fits(Bytes data, std::size_t bytes_each) const noexcept {
        const bool is_cut_wrong = combine != nullptr && content == nullptr && data.size() % bytes_each != 0;
        return data.size() <= bytes - arrived && !is_cut_wrong;
    }
    /// Takes the next part, which fits. Throws what the operation throws.
    void take(Bytes data);
};

} // namespace kumi::group
