#include "kumi/base/data/bitmap.hpp"

#include <algorithm>

namespace kumi::base {
namespace {

/// Calls `change(word_index, mask)` for every word that the range touches.
template <class Change>
void for_each_word(std::size_t first, std::size_t count, Change change) {
    while (count > 0) {
        const std::size_t offset = first % 64;
        const std::size_t taken = std::min<std::size_t>(count, 64 - offset);
        const std::uint64_t ones = taken == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << taken) - 1;
        change(first / 64, ones << offset);
        first += taken;
        count -= taken;
    }
}

/// The first one-bit of words[i] ^ flip at or after `from`, or `bits`.
std::size_t scan(const std::vector<std::uint64_t>& words, std::size_t bits, std::size_t from, std::uint64_t flip) {
    if (from >= bits) return bits;
    std::size_t index = from / 64;
    std::uint64_t word = (words[index] ^ flip) & (~std::uint64_t{0} << (from % 64));
    while (word == 0) {
        if (++index == words.size()) return bits;
        word = words[index] ^ flip;
    }
    return std::min(bits, index * 64 + static_cast<std::size_t>(std::countr_zero(word)));
}

} // namespace

void Bitmap::set_range(std::size_t first, std::size_t count) noexcept {
    for_each_word(first, count, [&](std::size_t index, std::uint64_t mask) { words_[index] |= mask; });
}

void Bitmap::clear_range(std::size_t first, std::size_t count) noexcept {
    for_each_word(first, count, [&](std::size_t index, std::uint64_t mask) { words_[index] &= ~mask; });
}

std::size_t Bitmap::count() const noexcept {
    std::size_t total = 0;
    for (const std::uint64_t word : words_) total += static_cast<std::size_t>(std::popcount(word));
    return total;
}

bool Bitmap::any() const noexcept {
    return std::any_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word != 0; });
}

std::size_t Bitmap::next_set(std::size_t from) const noexcept { return scan(words_, bits_, from, 0); }

std::size_t Bitmap::next_clear(std::size_t from) const noexcept { return scan(words_, bits_, from, ~std::uint64_t{0}); }

std::optional<std::size_t> Bitmap::find_clear_run(std::size_t count) const noexcept {
    for (std::size_t start = next_clear(0); start + count <= bits_;) {
        const std::size_t end = next_set(start);
        if (end - start >= count) return start;
        start = next_clear(end);
    }
    return std::nullopt;
}

} // namespace kumi::base
