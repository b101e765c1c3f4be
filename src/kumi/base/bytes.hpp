#pragma once

// Values as bytes and back, without casts at the place of use.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace kumi {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

/// The bytes of a trivially copyable value. The value must outlive the span.
template <class T>
    requires std::is_trivially_copyable_v<T>
Bytes bytes_of(const T& value) noexcept {
    return std::as_bytes(std::span<const T, 1>(&value, 1));
}

inline Bytes bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

/// The value whose bytes start at `bytes`; false when there are too few of them.
template <class T>
    requires std::is_trivially_copyable_v<T>
bool read_value(Bytes bytes, T& value) noexcept {
    if (bytes.size() < sizeof(T)) return false;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return true;
}

/// memcpy, without the call for the few bytes that most messages have.
inline void copy_bytes(std::byte* to, Bytes from) noexcept {
    const std::size_t count = from.size();
    if (count >= 8 && count <= 16) { // two words that overlap
        std::uint64_t first, last;
        std::memcpy(&first, from.data(), 8);
        std::memcpy(&last, from.data() + count - 8, 8);
        std::memcpy(to, &first, 8);
        std::memcpy(to + count - 8, &last, 8);
    } else if (count != 0) {
        std::memcpy(to, from.data(), count);
    }
}

/// A run of bytes in two pieces, of which the first may be empty.
struct Pieces {
    Bytes head;
    Bytes body;

    Pieces(Bytes whole) noexcept : body(whole) {}
    Pieces(Bytes first, Bytes second) noexcept : head(first), body(second) {}

    std::size_t size() const noexcept { return head.size() + body.size(); }
    void copy_to(std::byte* to) const noexcept {
        if (!head.empty()) copy_bytes(to, head);
        copy_bytes(to + head.size(), body);
    }
    /// `count` bytes from `offset` on.
    void copy_part(std::byte* to, std::size_t offset, std::size_t count) const noexcept {
        if (offset < head.size()) {
            const std::size_t part = std::min(head.size() - offset, count);
            std::memcpy(to, head.data() + offset, part);
            to += part, offset += part, count -= part;
        }
        if (count != 0) std::memcpy(to, body.data() + offset - head.size(), count);
    }
};

inline std::string_view text_of(Bytes bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace kumi
