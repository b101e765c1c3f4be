#pragma once

// Atomic operations on words of memory: what they do, for nodes of this host and for messages alike. Pure.

#include "kumi/engine/memory/words.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kumi::engine {

/// True for an operation that exists, on an aligned word of 4 or 8 bytes. Whatever comes from the wire is checked so.
inline bool is_sound(const Atomic& what, const std::byte* where) noexcept {
    return (what.bytes == 4 || what.bytes == 8) && what.kind <= Atomic::last_kind &&
           reinterpret_cast<std::uintptr_t>(where) % what.bytes == 0;
}

/// Stores what `change` makes of the word, atomically. Returns what was there before.
template <class Word, class Change>
Word change_word(const std::atomic_ref<Word>& word, Change change) noexcept {
    Word seen = word.load(std::memory_order_relaxed); // a guess: the exchange checks it
    while (!word.compare_exchange_weak(seen, change(seen))) {
    }
    return seen;
}

/// `Number` is a number of the size of Word: what the bits of both stand for.
template <class Number, class Word>
Word keep_smaller(const std::atomic_ref<Word>& word, Word operand) noexcept {
    return change_word(word, [operand](Word seen) {
        return std::bit_cast<Number>(operand) < std::bit_cast<Number>(seen) ? operand : seen;
    });
}
template <class Number, class Word>
Word keep_larger(const std::atomic_ref<Word>& word, Word operand) noexcept {
    return change_word(word, [operand](Word seen) {
        return std::bit_cast<Number>(seen) < std::bit_cast<Number>(operand) ? operand : seen;
    });
}

/// Apart from apply_to(), which stays small so.
template <class Signed, class Float, class Word>
[[gnu::noinline]] Word apply_further(const std::atomic_ref<Word>& word, Atomic::Kind kind, Word operand) noexcept {
    switch (kind) {
    case Atomic::bit_and: return word.fetch_and(operand);
    case Atomic::bit_or: return word.fetch_or(operand);
    case Atomic::bit_xor: return word.fetch_xor(operand);
    case Atomic::min_signed: return keep_smaller<Signed>(word, operand);
    case Atomic::max_signed: return keep_larger<Signed>(word, operand);
    case Atomic::min_unsigned: return keep_smaller<Word>(word, operand);
    case Atomic::max_unsigned: return keep_larger<Word>(word, operand);
    case Atomic::min_float: return keep_smaller<Float>(word, operand);
    case Atomic::max_float: return keep_larger<Float>(word, operand);
    case Atomic::add_float:
        return change_word(word, [operand](Word seen) {
            return std::bit_cast<Word>(std::bit_cast<Float>(seen) + std::bit_cast<Float>(operand));
        });
    default: return 0;
    }
}

template <class Word, class Signed, class Float>
std::uint64_t apply_to(std::byte* where, const Atomic& what) noexcept {
    const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(where));
    const auto operand = static_cast<Word>(what.operand);
    switch (what.kind) {
    case Atomic::add: return word.fetch_add(operand);
    case Atomic::swap: return word.exchange(operand);
    case Atomic::compare_exchange: {
        auto expected = static_cast<Word>(what.expected);
        word.compare_exchange_strong(expected, operand);
        return expected;
    }
    default: return apply_further<Signed, Float>(word, what.kind, operand);
    }
}

/// Carries out an operation that is sound. Returns what was there before, in the low bytes.
inline std::uint64_t apply_atomic(const Atomic& what, std::byte* where) noexcept {
    return what.bytes == 4 ? apply_to<std::uint32_t, std::int32_t, float>(where, what)
                           : apply_to<std::uint64_t, std::int64_t, double>(where, what);
}

} // namespace kumi::engine
