#pragma once

// The atomic operations that programs call, in two forms: Memory waits for what was there before, and AsyncMemory gives
// a future of it.

#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/memory/words.hpp"

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace kumi::engine {

/// Words that remote atomic operations work on.
template <class T>
concept AtomicWord = (sizeof(T) == 4 || sizeof(T) == 8) && (std::integral<T> || std::floating_point<T>);

/// A value as an operation carries it, and back.
template <AtomicWord T>
std::uint64_t to_word(T value) noexcept {
    if constexpr (std::integral<T>) return static_cast<std::uint64_t>(value);
    else if constexpr (sizeof(T) == 4) return std::bit_cast<std::uint32_t>(value);
    else return std::bit_cast<std::uint64_t>(value);
}
template <AtomicWord T>
T from_word(std::uint64_t word) noexcept {
    if constexpr (std::integral<T>) return static_cast<T>(word);
    else if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<std::uint32_t>(word));
    else return std::bit_cast<T>(word);
}

/// Atomic against each other, and against std::atomic_ref at the target. The word must be aligned. All return what was
/// there before: a Result<T>, or a Future<T> of it. `Face` has atomic(word, operation).
template <class Face>
class AtomicOperations {
public:
    template <AtomicWord T>
    auto fetch_add(global_ptr<T> word, std::type_identity_t<T> amount) {
        return apply(word, std::integral<T> ? Atomic::add : Atomic::add_float, amount);
    }
    template <AtomicWord T>
    auto swap(global_ptr<T> word, std::type_identity_t<T> value) {
        return apply(word, Atomic::swap, value);
    }
    /// Stores `desired` if `expected` is there. Compares bits: of floating-point numbers, 0.0 is not -0.0, and a NaN
    /// is the same NaN.
    template <AtomicWord T>
    auto compare_exchange(global_ptr<T> word, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
        return apply(word, Atomic::compare_exchange, desired, expected);
    }

    /// Stores the smaller, or the larger, of `value` and what is there, as T compares them. A NaN is never stored, and
    /// one that is there stays.
    template <AtomicWord T>
    auto fetch_min(global_ptr<T> word, std::type_identity_t<T> value) {
        constexpr Atomic::Kind of_integers = std::is_signed_v<T> ? Atomic::min_signed : Atomic::min_unsigned;
        return apply(word, std::integral<T> ? of_integers : Atomic::min_float, value);
    }
    template <AtomicWord T>
    auto fetch_max(global_ptr<T> word, std::type_identity_t<T> value) {
        constexpr Atomic::Kind of_integers = std::is_signed_v<T> ? Atomic::max_signed : Atomic::max_unsigned;
        return apply(word, std::integral<T> ? of_integers : Atomic::max_float, value);
    }

    template <AtomicWord T>
        requires std::integral<T>
    auto fetch_and(global_ptr<T> word, std::type_identity_t<T> bits) {
        return apply(word, Atomic::bit_and, bits);
    }
    template <AtomicWord T>
        requires std::integral<T>
    auto fetch_or(global_ptr<T> word, std::type_identity_t<T> bits) {
        return apply(word, Atomic::bit_or, bits);
    }
    template <AtomicWord T>
        requires std::integral<T>
    auto fetch_xor(global_ptr<T> word, std::type_identity_t<T> bits) {
        return apply(word, Atomic::bit_xor, bits);
    }

private:
    template <class T>
    auto apply(global_ptr<T> word, Atomic::Kind kind, T operand, T expected = {}) {
        return static_cast<Face*>(this)->atomic(word, Atomic{kind, sizeof(T), to_word(operand), to_word(expected)});
    }
};

} // namespace kumi::engine
