#pragma once

// Values as bytes, and bytes as values: the spans that all messages are made of. Include it to build or read messages
// without casts.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace kumi {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

/// The bytes of a trivially copyable value. Requires that the value outlives the span.
template <class T>
    requires std::is_trivially_copyable_v<T>
Bytes bytes_of(const T& value) noexcept {
    return std::as_bytes(std::span<const T, 1>(&value, 1));
}

inline Bytes bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

/// Copies the first bytes of `bytes` into `value`. False when there are fewer than a T has.
template <class T>
    requires std::is_trivially_copyable_v<T>
bool read_value(Bytes bytes, T& value) noexcept {
    if (bytes.size() < sizeof(T)) return false;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return true;
}

/// Copies like memcpy, but without a function call for 8 to 16 bytes, the size of most messages.
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

/// A message in two pieces. The first may be empty.
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
    /// Copies `count` bytes, beginning with the one at `offset`.
    void copy_part(std::byte* to, std::size_t offset, std::size_t count) const noexcept {
        if (offset < head.size()) {
            const std::size_t in_head = head.size() - offset, part = in_head < count ? in_head : count;
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
