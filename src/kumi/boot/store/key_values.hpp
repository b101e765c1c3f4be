#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kumi::boot {

/// What a launcher offers to the processes that it started: their numbers, and a store in which each leaves values for
/// the others. Calls block, to a deadline, and an error names the launcher's interface and what was asked of it.
class KeyValues {
public:
    virtual ~KeyValues() = default;

    virtual std::uint32_t node() const noexcept = 0;
    virtual std::uint32_t nodes() const noexcept = 0;

    /// Leaves bytes under a key of this node's own, which it has not used before. Others see them after the next fence.
    virtual Result<void> put(std::string_view key, Bytes value) = 0;

    /// Returns when all nodes have come here.
    virtual Result<void> fence() = 0;

    /// What `node` left under `key` before the last fence.
    virtual Result<std::vector<std::byte>> get(std::uint32_t node, std::string_view key) = 0;

    /// From now on the launcher does not miss this process.
    virtual void leave() = 0;
};

} // namespace kumi::boot
