#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kumi::boot {

/// What a launcher offers to the processes that it started: their numbers, and a store in which each puts values for
/// the others. Calls block until a deadline. Errors name the launcher's interface and what was asked of it.
class KeyValues {
public:
    virtual ~KeyValues() = default;

    virtual std::uint32_t node() const noexcept = 0;
    virtual std::uint32_t nodes() const noexcept = 0;

    /// Puts bytes under a key of this node, which it must not have used before. Other nodes see them after the next
    /// fence().
    virtual Result<void> put(std::string_view key, Bytes value) = 0;

    /// Waits until all nodes have called it.
    virtual Result<void> fence() = 0;

    /// The value that `node` put under `key` before the last fence.
    virtual Result<std::vector<std::byte>> get(std::uint32_t node, std::string_view key) = 0;

    /// Leaves: from now on this process may exit without an error of the launcher.
    virtual void leave() = 0;
};

} // namespace kumi::boot
