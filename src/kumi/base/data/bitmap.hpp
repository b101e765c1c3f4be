#pragma once

// A bitmap of fixed size.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::base {

/// A fixed number of bits, numbered from zero. Used for sets of nodes and for the units of a heap that are taken.
class Bitmap {
public:
    explicit Bitmap(std::size_t bits = 0) : bits_(bits), words_((bits + 63) / 64) {}

    std::size_t size() const noexcept { return bits_; }
    bool test(std::size_t index) const noexcept { return ((words_[index / 64] >> (index % 64)) & 1) != 0; }
    void set(std::size_t index) noexcept { words_[index / 64] |= std::uint64_t{1} << (index % 64); }
    void clear(std::size_t index) noexcept { words_[index / 64] &= ~(std::uint64_t{1} << (index % 64)); }
    void clear() noexcept { words_.assign(words_.size(), 0); }

    void set_range(std::size_t first, std::size_t count) noexcept;
    void clear_range(std::size_t first, std::size_t count) noexcept;

    std::size_t count() const noexcept;
    bool any() const noexcept;

    /// The first set (clear) bit at or after `from`; size() when there is none.
    std::size_t next_set(std::size_t from) const noexcept;
    std::size_t next_clear(std::size_t from) const noexcept;

    /// The start of the first run of `count` clear bits.
    std::optional<std::size_t> find_clear_run(std::size_t count) const noexcept;

    bool operator==(const Bitmap&) const = default;

private:
    std::size_t bits_;
    std::vector<std::uint64_t> words_; // bits at and after bits_ are zero
};

/// Calls `visit(index)` for every one-bit of `word`, lowest first.
template <class Visit>
void for_each_bit(std::uint64_t word, Visit&& visit) {
    for (; word != 0; word &= word - 1) visit(static_cast<unsigned>(std::countr_zero(word)));
}

} // namespace kumi::base
