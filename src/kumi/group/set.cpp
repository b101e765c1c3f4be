#include "kumi/group/set.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <span>

namespace kumi::group {
namespace {

static_assert(std::endian::native == std::endian::little, "words go on the wire as they are");

// The first byte on the wire. Then numbers of 7 bits a byte, lowest first:
enum class Form : std::uint8_t {
    list,  // how many, the first, and how much further each of the others is
    range, // the first, how many, the step
    bits,  // the index of the first word, how many bytes, the bytes
};

std::size_t number_bytes(std::uint32_t number) noexcept {
    return (static_cast<std::size_t>(std::bit_width(number | 1)) + 6) / 7;
}

void put_number(std::vector<std::byte>& onto, std::uint32_t number) {
    for (; number >= 0x80; number >>= 7) onto.push_back(static_cast<std::byte>(number | 0x80));
    onto.push_back(static_cast<std::byte>(number));
}

/// False: there is none, it is too large, or longer than it had to be.
bool take_number(Bytes& bytes, std::uint32_t& number) noexcept {
    number = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), 5); ++i) {
        const auto byte = std::to_integer<std::uint32_t>(bytes[i]);
        if (i == 4 && byte > 0x0f) return false;
        number |= (byte & 0x7f) << (7 * i);
        if (byte >= 0x80) continue;
        if (byte == 0 && i > 0) return false;
        bytes = bytes.subspan(i + 1);
        return true;
    }
    return false;
}

/// The members of a list but the first, for each of which `visit(node)` is called. False: it is not one below `nodes`.
template <class Visit>
bool take_list(Bytes& bytes, std::uint32_t first, std::uint32_t count, Node nodes, Visit&& visit) {
    std::uint64_t node = first;
    for (std::uint32_t i = 1; i < count; ++i) {
        std::uint32_t further;
        if (!take_number(bytes, further) || further == 0) return false;
        node += further;
        if (node >= nodes) return false;
        visit(static_cast<Node>(node));
    }
    return true;
}

constexpr std::uint64_t ones = ~std::uint64_t{0};

std::uint64_t bit_of(Node node) noexcept { return std::uint64_t{1} << (node % 64); }

Node count_ones(const base::Words& words) noexcept {
    Node count = 0;
    for (const std::uint64_t word : words) count += static_cast<Node>(std::popcount(word));
    return count;
}

} // namespace

Set::Set(std::initializer_list<Node> members) {
    if (members.size() == 0) return;
    const auto [low, high] = std::minmax(members);
    cover(low / 64, high / 64 + 1);
    for (const Node node : members) add(node);
}

Set Set::range(Node begin, Node end, Node step) {
    KUMI_ASSERT(step > 0);
    Set set;
    if (begin >= end) return set;
    const Node last = end - 1 - (end - 1 - begin) % step;
    set.cover(begin / 64, last / 64 + 1);
    if (step == 1) {
        std::fill(set.words_.begin(), set.words_.end(), ones);
        set.words_.front() &= ones << (begin % 64);
        set.words_.back() &= ones >> (63 - last % 64);
    } else {
        for (std::uint64_t node = begin; node <= last; node += step)
            set.words_[node / 64 - set.first_word_] |= bit_of(static_cast<Node>(node));
    }
    set.size_ = (last - begin) / step + 1;
    return set;
}

void Set::add(Node node) {
    cover(node / 64, node / 64 + 1);
    std::uint64_t& word = words_[node / 64 - first_word_];
    if ((word & bit_of(node)) == 0) ++size_;
    word |= bit_of(node);
}

void Set::remove(Node node) noexcept {
    if (!contains(node)) return;
    std::uint64_t& word = words_[node / 64 - first_word_];
    word &= ~bit_of(node);
    --size_;
    if (word == 0) trim();
}

bool Set::contains(Node node) const noexcept {
    const std::uint32_t word = node / 64;
    return word >= first_word_ && word < end_word() && (words_[word - first_word_] & bit_of(node)) != 0;
}

Node Set::first() const noexcept {
    KUMI_ASSERT(!empty());
    return first_word_ * 64 + static_cast<Node>(std::countr_zero(words_.front()));
}

Node Set::last() const noexcept {
    KUMI_ASSERT(!empty());
    return (end_word() - 1) * 64 + 63 - static_cast<Node>(std::countl_zero(words_.back()));
}

Node Set::rank(Node node) const noexcept {
    const std::uint32_t word = node / 64;
    if (word < first_word_) return 0;
    if (word >= end_word()) return size_;
    Node before = 0;
    for (std::uint32_t i = 0; i < word - first_word_; ++i) before += static_cast<Node>(std::popcount(words_[i]));
    return before + static_cast<Node>(std::popcount(words_[word - first_word_] & (bit_of(node) - 1)));
}

Node Set::at(Node rank) const noexcept {
    KUMI_ASSERT(rank < size_);
    for (std::uint32_t index = 0;; ++index) {
        std::uint64_t word = words_[index];
        const auto members = static_cast<Node>(std::popcount(word));
        if (rank >= members) {
            rank -= members;
            continue;
        }
        for (; rank > 0; --rank) word &= word - 1;
        return (first_word_ + index) * 64 + static_cast<Node>(std::countr_zero(word));
    }
}

Set Set::slice(Node begin, Node end) const {
    Set part;
    end = std::min(end, size_);
    if (begin >= end) return part;
    const Node low = at(begin);
    const Node high = at(end - 1);
    part.first_word_ = low / 64;
    part.words_.assign(std::span(words_).subspan(low / 64 - first_word_, high / 64 - low / 64 + 1));
    part.words_.front() &= ones << (low % 64);
    part.words_.back() &= ones >> (63 - high % 64);
    part.size_ = end - begin;
    return part;
}

Set& Set::operator|=(const Set& other) {
    if (other.empty()) return *this;
    cover(other.first_word_, other.end_word());
    for (std::size_t i = 0; i < other.words_.size(); ++i)
        words_[other.first_word_ - first_word_ + i] |= other.words_[i];
    size_ = count_ones(words_);
    return *this;
}

Set& Set::operator&=(const Set& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) {
        const std::size_t word = first_word_ + i;
        words_[i] &= word >= other.first_word_ && word < other.end_word() ? other.words_[word - other.first_word_] : 0;
    }
    size_ = count_ones(words_);
    trim();
    return *this;
}

Set& Set::operator-=(const Set& other) noexcept {
    const std::uint32_t end = std::min(end_word(), other.end_word());
    for (std::uint32_t word = std::max(first_word_, other.first_word_); word < end; ++word)
        words_[word - first_word_] &= ~other.words_[word - other.first_word_];
    size_ = count_ones(words_);
    trim();
    return *this;
}

void Set::cover(std::uint32_t begin, std::uint32_t end) {
    if (words_.empty()) first_word_ = begin;
    if (begin < first_word_) {
        words_.add_front(first_word_ - begin);
        first_word_ = begin;
    }
    if (end > end_word()) words_.resize(end - first_word_);
}

void Set::trim() noexcept {
    while (!words_.empty() && words_.back() == 0) words_.resize(words_.size() - 1);
    const auto begin = std::find_if(words_.begin(), words_.end(), [](std::uint64_t word) { return word != 0; });
    first_word_ = words_.empty() ? 0 : first_word_ + static_cast<std::uint32_t>(begin - words_.begin());
    words_.drop_front(static_cast<std::size_t>(begin - words_.begin()));
}

std::uint64_t Set::next(std::uint64_t from) const noexcept {
    const std::uint64_t end = end_word();
    std::uint64_t mask = ones << (from % 64);
    for (std::uint64_t word = from / 64; word < end; ++word, mask = ones)
        if (const std::uint64_t left = words_[word - first_word_] & mask; left != 0)
            return word * 64 + static_cast<std::uint64_t>(std::countr_zero(left));
    return end * 64;
}

Set::Iterator& Set::Iterator::operator++() noexcept {
    node_ = set_->next(node_ + 1);
    return *this;
}

Set::Iterator Set::begin() const noexcept { return {*this, next(std::uint64_t{first_word_} * 64)}; }

Set::Iterator Set::end() const noexcept { return {*this, std::uint64_t{end_word()} * 64}; }

std::string Set::text() const {
    std::string text;
    for (Iterator member = begin(); member != end();) {
        const Node low = *member;
        Node high = low;
        while (++member != end() && *member == high + 1) ++high;
        fmt::format_to(std::back_inserter(text), "{}{}", text.empty() ? "" : ",", low);
        if (high != low) fmt::format_to(std::back_inserter(text), "-{}", high);
    }
    return text;
}

void Set::encode(std::vector<std::byte>& onto) const {
    const auto put = [&](Form form, auto... numbers) {
        onto.push_back(static_cast<std::byte>(form));
        (put_number(onto, numbers), ...);
    };
    if (empty()) return put(Form::list, 0u);

    const Node low = first();
    if (size_ == 1) return put(Form::list, 1u, low); // nothing is shorter
    const Node high = last();
    const std::uint32_t bits_bytes = (high - first_word_ * 64) / 8 + 1;
    std::size_t best = number_bytes(first_word_) + number_bytes(bits_bytes) + bits_bytes;
    Form form = Form::bits;

    const Node step = size_ > 1 ? at(1) - low : 1;
    const auto in_step = [&] {
        if (high - low != std::uint64_t{size_ - 1} * step) return false;
        if (step == 1) return true;
        std::uint64_t node = low;
        while (node <= high && contains(static_cast<Node>(node))) node += step;
        return node > high;
    };
    if (const std::size_t bytes = number_bytes(low) + number_bytes(size_) + number_bytes(step);
        bytes < best && in_step()) {
        best = bytes;
        form = Form::range;
    }

    // Every member takes a byte at least.
    if (size_ < best) {
        std::size_t bytes = number_bytes(size_) + number_bytes(low);
        Node before = low;
        for (Iterator member = ++begin(); member != end() && bytes <= best; before = *member++)
            bytes += number_bytes(*member - before);
        if (bytes <= best) form = Form::list;
    }

    switch (form) {
    case Form::list: {
        put(form, size_, low);
        Node before = low;
        for (Iterator member = ++begin(); member != end(); before = *member++) put_number(onto, *member - before);
        return;
    }
    case Form::range: return put(form, low, size_, step);
    case Form::bits: {
        put(form, first_word_, bits_bytes);
        const Bytes bits = std::as_bytes(std::span(words_)).first(bits_bytes);
        onto.insert(onto.end(), bits.begin(), bits.end());
        return;
    }
    }
}

std::optional<Set> Set::decode(Bytes& bytes, Node nodes) {
    if (bytes.empty()) return std::nullopt;
    Bytes left = bytes.subspan(1);
    std::optional<Set> set;
    switch (static_cast<Form>(bytes[0])) {
    case Form::list: set = decode_list(left, nodes); break;
    case Form::range: set = decode_range(left, nodes); break;
    case Form::bits: set = decode_bits(left, nodes); break;
    }
    if (set) bytes = left;
    return set;
}

std::optional<Set> Set::decode_list(Bytes& bytes, Node nodes) {
    std::uint32_t count, low;
    if (!take_number(bytes, count)) return std::nullopt;
    if (count == 0) return Set{};
    if (!take_number(bytes, low) || low >= nodes) return std::nullopt;
    // Twice: room is made for what is there, not for what it says is there.
    Node high = low;
    Bytes ahead = bytes;
    if (!take_list(ahead, low, count, nodes, [&](Node node) { high = node; })) return std::nullopt;
    Set set;
    set.cover(low / 64, high / 64 + 1);
    set.words_.front() = bit_of(low);
    take_list(bytes, low, count, nodes, [&](Node node) { set.words_[node / 64 - set.first_word_] |= bit_of(node); });
    set.size_ = count;
    return set;
}

std::optional<Set> Set::decode_range(Bytes& bytes, Node nodes) {
    std::uint32_t low, count, step;
    if (!take_number(bytes, low) || !take_number(bytes, count) || !take_number(bytes, step)) return std::nullopt;
    if (low >= nodes || count == 0 || step == 0 || (count == 1 && step != 1)) return std::nullopt;
    // Divided, because the product may not fit.
    if (count - 1 > (nodes - 1 - low) / step) return std::nullopt;
    return range(low, low + (count - 1) * step + 1, step);
}

std::optional<Set> Set::decode_bits(Bytes& bytes, Node nodes) {
    std::uint32_t first_word, count;
    if (!take_number(bytes, first_word) || !take_number(bytes, count)) return std::nullopt;
    if (count == 0 || count > bytes.size() || bytes[count - 1] == std::byte{0}) return std::nullopt;
    const auto top = static_cast<std::uint64_t>(std::bit_width(std::to_integer<unsigned>(bytes[count - 1])));
    if (std::uint64_t{first_word} * 64 + std::uint64_t{count - 1} * 8 + top > nodes) return std::nullopt;
    Set set;
    set.cover(first_word, first_word + (count + 7) / 8);
    std::memcpy(set.words_.data(), bytes.data(), count);
    if (set.words_.front() == 0) return std::nullopt;
    set.size_ = count_ones(set.words_);
    bytes = bytes.subspan(count);
    return set;
}

} // namespace kumi::group
