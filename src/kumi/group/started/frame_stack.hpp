#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace kumi::group {

/// Memory for the frames of coroutines that end in the opposite order of their beginning. The memory is used again, so
/// a call on a set allocates no frame after the first one. Frames that do not fit come from the heap.
class FrameStack {
public:
    static constexpr std::size_t block_bytes = 4096;

    FrameStack() = default;
    FrameStack(const FrameStack&) = delete;
    FrameStack& operator=(const FrameStack&) = delete;

    void* take(std::size_t bytes) {
        const std::size_t needed = sizeof(Head) + rounded(bytes);
        if (needed > block_bytes - used_) return ::new (::operator new(needed)) Head{nullptr} + 1;
        if (!block_) block_ = std::make_unique_for_overwrite<Unit[]>(block_bytes / sizeof(Unit));
        std::byte* const at = reinterpret_cast<std::byte*>(block_.get()) + used_;
        used_ += needed;
        return ::new (at) Head{this} + 1;
    }
    /// Requires that all frames which were taken later have been given back.
    static void give_back(void* frame, std::size_t bytes) noexcept {
        Head* const head = static_cast<Head*>(frame) - 1;
        if (head->owner == nullptr) ::operator delete(head);
        else head->owner->used_ -= sizeof(Head) + rounded(bytes);
    }
    std::size_t used() const noexcept { return used_; }

private:
    static constexpr std::size_t unit_bytes = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    struct alignas(unit_bytes) Unit {
        std::byte bytes[unit_bytes];
    };
    struct alignas(unit_bytes) Head {
        FrameStack* owner; // null: the heap
    };
    static constexpr std::size_t rounded(std::size_t bytes) noexcept {
        return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
    }

    std::unique_ptr<Unit[]> block_; // from the first frame on
    std::size_t used_ = 0;
};

} // namespace kumi::group
