#pragma once

// A list of words, for sets of nodes.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace kumi::base {

/// A list of words, like std::vector, that allocates nothing for up to `near_max` of them.
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
        if (!words.empty()) std::memcpy(data(), words.data(), words.size_bytes());
    }
    /// Changes the size. New words are zero.
    void resize(std::size_t count) {
        if (count > capacity_) grow(count);
        if (count > size_) std::memset(data() + size_, 0, (count - size_) * sizeof(std::uint64_t));
        size_ = static_cast<std::uint32_t>(count);
    }
    /// Inserts `count` zeros at the front.
    void add_front(std::size_t count) {
        resize(size_ + count);
        std::memmove(data() + count, data(), (size_ - count) * sizeof(std::uint64_t));
        std::memset(data(), 0, count * sizeof(std::uint64_t));
    }
    void drop_front(std::size_t count) noexcept {
        size_ -= static_cast<std::uint32_t>(count);
        std::memmove(data(), data() + count, size_ * sizeof(std::uint64_t));
    }
    friend bool operator==(const Words& a, const Words& b) noexcept {
        return a.size_ == b.size_ && std::memcmp(a.data(), b.data(), a.size_ * sizeof(std::uint64_t)) == 0;
    }

private:
    bool is_far() const noexcept { return capacity_ > near_max; }
    void grow(std::size_t count) {
        const std::size_t twice = 2 * std::size_t{capacity_};
        const auto capacity = static_cast<std::uint32_t>(count > twice ? count : twice);
        auto* const far = new std::uint64_t[capacity];
        std::memcpy(far, data(), size_ * sizeof(std::uint64_t));
        if (is_far()) delete[] far_;
        far_ = far;
        capacity_ = capacity;
    }
    /// Moves the words of `other`, which is empty after that.
    void take(Words& other) noexcept {
        copy_near(other);
        capacity_ = std::exchange(other.capacity_, near_max);
        other.size_ = 0;
    }
    /// Copies the whole union: all near words, or the pointer. Copying only `size_` words would take longer.
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
