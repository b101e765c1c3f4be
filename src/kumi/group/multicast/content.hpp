#pragma once

#include "kumi/base/bytes.hpp"

#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace kumi::group {

/// The content of a multicast at one node. It may be shared by a relay, a delivery and a stream.
struct Content {
    Bytes bytes;
    std::shared_ptr<const void> memory; // none: the bytes lie in the master's heap, or in a message

    /// In memory of its own.
    static Content copy_of(const Pieces& pieces) {
        auto copy = std::make_shared_for_overwrite<std::byte[]>(pieces.size());
        pieces.copy_to(copy.get());
        const Bytes bytes(copy.get(), pieces.size());
        return {bytes, std::move(copy)};
    }
};

/// A content that arrives in blocks.
using SharedBytes = std::shared_ptr<std::vector<std::byte>>;

/// Null: there is no memory for it.
inline SharedBytes try_make_bytes(std::size_t bytes) {
    try {
        return std::make_shared<std::vector<std::byte>>(bytes);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

} // namespace kumi::group
