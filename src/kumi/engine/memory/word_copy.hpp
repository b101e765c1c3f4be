#pragma once

// Copies to and from memory that other nodes use at the same time: a word of 4 or 8 bytes, aligned, goes whole, so that
// it may be read, written and counted up by several at once. More than a word is not: who shares it has flags and
// barriers.

#include "kumi/base/bytes.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace kumi::engine {

inline bool is_aligned(const std::byte* where, std::size_t bytes) noexcept {
    return reinterpret_cast<std::uintptr_t>(where) % bytes == 0;
}

template <class Word>
void store_word(std::byte* to, const std::byte* from) noexcept {
    Word word;
    std::memcpy(&word, from, sizeof word);
    // Relaxed: what orders it is the flag, message or barrier that tells of it.
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_relaxed);
}

template <class Word>
void load_word(std::byte* to, const std::byte* from) noexcept {
    // Relaxed: as in store_word().
    const Word word =
        std::atomic_ref<Word>(*reinterpret_cast<Word*>(const_cast<std::byte*>(from))).load(std::memory_order_relaxed);
    std::memcpy(to, &word, sizeof word);
}

/// Both may be in one segment, and overlap.
inline void move_bytes(std::byte* to, Bytes from) noexcept {
    if (from.size() >= 8 && from.size() <= 16) copy_bytes(to, from); // reads all before it writes
    else if (!from.empty()) std::memmove(to, from.data(), from.size());
}

/// Into shared memory.
inline void copy_in(std::byte* to, Bytes from) noexcept {
    if (from.size() == 8 && is_aligned(to, 8)) store_word<std::uint64_t>(to, from.data());
    else if (from.size() == 4 && is_aligned(to, 4)) store_word<std::uint32_t>(to, from.data());
    else move_bytes(to, from);
}

/// Out of shared memory.
inline void copy_out(std::byte* to, Bytes from) noexcept {
    if (from.size() == 8 && is_aligned(from.data(), 8)) load_word<std::uint64_t>(to, from.data());
    else if (from.size() == 4 && is_aligned(from.data(), 4)) load_word<std::uint32_t>(to, from.data());
    else move_bytes(to, from);
}

} // namespace kumi::engine
