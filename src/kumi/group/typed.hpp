#pragma once

// Typed values as the bytes that collectives take, and back. Programs do not need these functions: group.hpp and
// starting.hpp use them.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/collectives.hpp"
#include "kumi/group/operations.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::group::by_bytes {

template <class Range>
Bytes bytes(const Range& values) noexcept {
    return std::as_bytes(span_of(values));
}
template <class Range>
MutableBytes room(Range&& values) noexcept {
    return std::as_writable_bytes(span_of(values));
}
template <class List>
std::vector<Bytes> list(const List& parts) {
    std::vector<Bytes> all;
    for (const auto& part : parts) all.push_back(bytes(part));
    return all;
}
template <class List>
std::vector<MutableBytes> rooms(List& arrays) {
    std::vector<MutableBytes> all;
    for (auto& array : arrays) all.push_back(room(array));
    return all;
}
template <class T>
std::vector<T> typed(const std::vector<std::byte>& content) {
    std::vector<T> values(content.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), content.data(), values.size() * sizeof(T));
    return values;
}
template <class T>
Result<std::vector<std::vector<T>>> typed(const Result<Parts>& parts) {
    if (!parts) return parts.error();
    std::vector<std::vector<T>> all;
    for (const auto& part : *parts) all.push_back(typed<T>(part));
    return all;
}

/// The operation on values as bytes, at any alignment.
template <class T, class Operation>
auto combining(const Operation& operation) noexcept {
    return [&operation](std::byte* into, const std::byte* mine, const std::byte* other, std::size_t size,
                        bool other_is_first) {
        const std::size_t count = size / sizeof(T);
        const auto is_aligned = [](const std::byte* at) {
            return reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0;
        };
        if (is_aligned(into) && is_aligned(mine) && is_aligned(other)) {
            T* const to = reinterpret_cast<T*>(into);
            const T* const a = reinterpret_cast<const T*>(other_is_first ? other : mine);
            const T* const b = reinterpret_cast<const T*>(other_is_first ? mine : other);
            for (std::size_t i = 0; i < count; ++i) to[i] = operation(a[i], b[i]);
            return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            T a, b;
            std::memcpy(&a, (other_is_first ? other : mine) + i * sizeof(T), sizeof(T));
            std::memcpy(&b, (other_is_first ? mine : other) + i * sizeof(T), sizeof(T));
            const T both = operation(a, b);
            std::memcpy(into + i * sizeof(T), &both, sizeof(T));
        }
    };
}

/// The same with a copy of the operation, for a call that goes on after this one returns.
template <class T, class Operation>
Reduction reduction(const Operation& operation, Order order) {
    using Copy = std::decay_t<const Operation&>; // of a plain function: its address
    struct Kept {
        explicit Kept(const Copy& its) : copy(its), combine(combining<T>(copy)) {}
        Kept(const Kept&) = delete;
        Kept& operator=(const Kept&) = delete;
        Copy copy;
        decltype(combining<T>(std::declval<const Copy&>())) combine; // refers to the copy
    };
    const auto kept = std::make_shared<Kept>(operation);
    return {kept->combine, sizeof(T), order, kept};
}

} // namespace kumi::group::by_bytes
