#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace kumi::base {

/// A list of words as a value, like a vector; few of them take no memory of their own.
class Words {
public:
    static constexpr std::uint32_t near_max = 4;

    Words() noexcept : near_{} {}
    Words(const Words& other) {
        if (other.is_far()) assign(other);
        else copy_near(other);
    }
    Words(Words&& other) noexcept { take(other); }
    Words& operator=(const Words& other) {
        if (this != &other) assign(other);
        return *this;
    }
    Words& operator=(Words&& other) noexcept {
        if (this == &other) return *this;
        if (is_far()) delete[] far_;
        take(other);
        return *this;
    }
    ~Words() {
        if (is_far()) delete[] far_;
    }

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    std::uint64_t* data() noexcept { return is_far() ? far_ : near_; }
    const std::uint64_t* data() const noexcept { return is_far() ? far_ : near_; }
    std::uint64_t* begin() noexcept { return data(); }
    std::uint64_t* end() noexcept { return data() + size_; }
    const std::uint64_t* begin() const noexcept { return data(); }
    const std::uint64_t* end() const noexcept { return data() + size_; }
    std::uint64_t& operator[](std::size_t index) noexcept { return data()[index]; }
    std::uint64_t operator[](std::size_t index) const noexcept { return data()[index]; }
    std::uint64_t& front() noexcept { return data()[0]; }
    std::uint64_t front() const noexcept { return data()[0]; }
    std::uint64_t& back() noexcept { return data()[size_ - 1]; }
    std::uint64_t back() const noexcept { return data()[size_ - 1]; }

    void assign(std::span<const std::uint64_t> words) {
        size_ = 0;
        resize(words.size());
        std::copy(words.begin(), words.end(), begin());
    }
    /// More are zero.
    void resize(std::size_t count) {
        if (count > capacity_) grow(count);
        if (count > size_) std::fill(data() + size_, data() + count, 0);
        size_ = static_cast<std::uint32_t>(count);
    }
    /// Zeros in front of the others.
    void add_front(std::size_t count) {
        resize(size_ + count);
        std::copy_backward(begin(), end() - count, end());
        std::fill_n(begin(), count, 0);
    }
    void drop_front(std::size_t count) noexcept {
        std::copy(begin() + count, end(), begin());
        size_ -= static_cast<std::uint32_t>(count);
    }
    friend bool operator==(const Words& a, const Words& b) noexcept {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    bool is_far() const noexcept { return capacity_ > near_max; }
    void grow(std::size_t count) {
        const auto capacity = static_cast<std::uint32_t>(std::max<std::size_t>(count, 2 * std::size_t{capacity_}));
        auto* const far = new std::uint64_t[capacity];
        std::copy(begin(), end(), far);
        if (is_far()) delete[] far_;
        far_ = far;
        capacity_ = capacity;
    }
    /// And leaves nothing.
    void take(Words& other) noexcept {
        copy_near(other);
        capacity_ = std::exchange(other.capacity_, near_max);
        other.size_ = 0;
    }
    /// All of them, or the pointer: to copy as many as there are would take longer.
    void copy_near(const Words& other) noexcept {
        std::memcpy(near_, other.near_, sizeof near_);
        size_ = other.size_;
    }

    union {
        std::uint64_t near_[near_max];
        std::uint64_t* far_;
    };
    std::uint32_t size_ = 0;
    std::uint32_t capacity_ = near_max;
};

} // namespace kumi::base
