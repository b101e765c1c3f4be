#pragma once

#include "kumi/base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::provider {

/// Things by small numbers, which are used again. A thing stays where it is while it is there.
template <class Thing>
class Slab {
public:
    std::uint32_t add(Thing thing) {
        if (free_.empty()) {
            things_.emplace_back(std::move(thing));
            ++count_;
            return static_cast<std::uint32_t>(things_.size() - 1);
        }
        const std::uint32_t number = free_.back();
        free_.pop_back();
        things_[number].emplace(std::move(thing));
        ++count_;
        return number;
    }
    /// The number that the next add() answers.
    std::uint32_t next() const noexcept {
        return free_.empty() ? static_cast<std::uint32_t>(things_.size()) : free_.back();
    }
    /// Null: there is none of that number.
    Thing* find(std::uint32_t number) noexcept {
        return number < things_.size() && things_[number] ? &*things_[number] : nullptr;
    }
    Thing& operator[](std::uint32_t number) noexcept {
        KUMI_ASSERT(find(number) != nullptr);
        return *things_[number];
    }
    Thing take(std::uint32_t number) {
        Thing thing = std::move((*this)[number]);
        things_[number].reset();
        free_.push_back(number);
        --count_;
        return thing;
    }
    std::size_t count() const noexcept { return count_; }
    /// Calls `visit(number, thing)`, which may take that thing.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (std::uint32_t number = 0; number < things_.size(); ++number)
            if (things_[number]) visit(number, *things_[number]);
    }

private:
    std::deque<std::optional<Thing>> things_;
    std::vector<std::uint32_t> free_;
    std::size_t count_ = 0;
};

} // namespace kumi::provider
