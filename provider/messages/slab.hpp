#pragma once

#include "kumi/base/assert.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kumi::provider {

/// Things by small numbers, which are used again. A thing stays where it is while it is there. Numbers that are not
/// used have a thing that was made without arguments, or what was left of one.
template <class Thing>
class Slab {
public:
    std::uint32_t add(Thing thing) {
        const std::uint32_t number = next();
        if (free_.empty()) grow();
        free_.pop_back();
        Place& place = at(number);
        place.thing = std::move(thing);
        place.is_used = true;
        ++count_;
        return number;
    }
    /// The number that the next add() answers.
    std::uint32_t next() const noexcept {
        return free_.empty() ? static_cast<std::uint32_t>(blocks_.size() * block_places) : free_.back();
    }
    /// Null: there is none of that number.
    Thing* find(std::uint32_t number) noexcept {
        const bool is_there = number / block_places < blocks_.size() && at(number).is_used;
        return is_there ? &at(number).thing : nullptr;
    }
    /// Requires that it is there.
    Thing& operator[](std::uint32_t number) noexcept { return at(number).thing; }
    void drop(std::uint32_t number) noexcept {
        KUMI_ASSERT(at(number).is_used);
        at(number).is_used = false;
        free_.push_back(number); // which has room: grow()
        --count_;
    }
    Thing take(std::uint32_t number) noexcept {
        Thing thing = std::move(at(number).thing);
        drop(number);
        return thing;
    }
    std::size_t count() const noexcept { return count_; }
    /// Calls `visit(number, thing)`, which may take or drop that thing.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (std::uint32_t number = 0; number < blocks_.size() * block_places; ++number)
            if (at(number).is_used) visit(number, at(number).thing);
    }

private:
    static constexpr std::size_t block_places = 64;
    struct Place {
        Thing thing{};
        bool is_used = false;
    };

    Place& at(std::uint32_t number) noexcept { return (*blocks_[number / block_places])[number % block_places]; }
    void grow() {
        const auto first = static_cast<std::uint32_t>(blocks_.size() * block_places);
        free_.reserve(first + block_places);
        blocks_.push_back(std::make_unique<std::array<Place, block_places>>());
        for (std::uint32_t i = block_places; i-- > 0;) free_.push_back(first + i); // the lowest is used first
    }

    std::vector<std::unique_ptr<std::array<Place, block_places>>> blocks_;
    std::vector<std::uint32_t> free_;
    std::size_t count_ = 0;
};

} // namespace kumi::provider
