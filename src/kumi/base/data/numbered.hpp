#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::base {

/// Objects that other nodes refer to by number. A number is used again with another generation, so an old number finds
/// nothing. The memory of objects is used again too: T::reset() makes an object as good as new, and leaves alone what
/// need not be reset.
template <class T, class Id>
class Numbered {
public:
    std::pair<Id, T&> add() {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(slots_.size()));
            slots_.emplace_back();
        }
        const std::uint32_t index = free_.back();
        free_.pop_back();
        if (spare_.empty()) spare_.push_back(std::make_unique<T>());
        Slot& slot = slots_[index];
        slot.thing = std::move(spare_.back());
        spare_.pop_back();
        return {Id{index, ++slot.generation}, *slot.thing};
    }
    T* find(Id id) const noexcept {
        if (id.index >= slots_.size() || slots_[id.index].generation != id.generation) return nullptr;
        return slots_[id.index].thing.get();
    }
    /// The object is not found any more. It exists until it is given back.
    std::unique_ptr<T> remove(Id id) {
        free_.push_back(id.index);
        return std::move(slots_[id.index].thing);
    }
    void give_back(std::unique_ptr<T> thing) {
        thing->reset();
        spare_.push_back(std::move(thing));
    }

    std::size_t size() const noexcept { return slots_.size() - free_.size(); }
    /// Calls `visit(T&)` or `visit(Id, T&)` for all objects. `visit` may add others, which may be visited too, and may
    /// remove any.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (std::uint32_t index = 0; index < slots_.size(); ++index) {
            if (!slots_[index].thing) continue;
            if constexpr (std::is_invocable_v<Visit&, Id, T&>)
                visit(Id{index, slots_[index].generation}, *slots_[index].thing);
            else visit(*slots_[index].thing);
        }
    }

private:
    struct Slot {
        std::unique_ptr<T> thing;
        std::uint32_t generation = 0;
    };

    std::vector<Slot> slots_;         // by index
    std::vector<std::uint32_t> free_; // of these
    std::vector<std::unique_ptr<T>> spare_;
};

} // namespace kumi::base
