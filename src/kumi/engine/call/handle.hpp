#pragma once

// What names a handler, or a function, in a call: its index among those of one Handlers object. In another object that
// index means something else, so a handle also says whose it is, and calls refuse a handle of another object.

#include <atomic>
#include <cstdint>
#include <utility>

namespace kumi::engine {

struct Handle {
    std::uint32_t owner; // HandleOwner::number() of the Handlers object
    std::uint32_t index;
};

/// The number of a Handlers object. It moves with the object's handlers, and the object gets another one.
class HandleOwner {
public:
    HandleOwner() noexcept : number_(next()) {}
    /// A copy of Handlers could go on to give the same indices to other handlers: Handlers are moved.
    HandleOwner(const HandleOwner&) = delete;
    HandleOwner& operator=(const HandleOwner&) = delete;
    HandleOwner(HandleOwner&& other) noexcept : number_(std::exchange(other.number_, next())) {}
    HandleOwner& operator=(HandleOwner&& other) noexcept {
        number_ = std::exchange(other.number_, next());
        return *this;
    }

    std::uint32_t number() const noexcept { return number_; }

private:
    static std::uint32_t next() noexcept {
        static std::atomic<std::uint32_t> last{0};
        return last.fetch_add(1, std::memory_order_relaxed) + 1; // relaxed: nothing but different numbers
    }

    std::uint32_t number_;
};

} // namespace kumi::engine
