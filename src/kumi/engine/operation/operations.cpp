#include "kumi/engine/operation/operations.hpp"

#include <utility>

namespace kumi::engine {

OperationId Operations::begin(Operation operation) {
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(slots_.size()));
        slots_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.operation = std::move(operation);
    slot.is_used = true;
    count_ += slot.operation.is_for_sync ? 1 : 0;
    return {index, slot.generation};
}

Operation* Operations::find(OperationId id) noexcept {
    if (id.index >= slots_.size()) return nullptr;
    Slot& slot = slots_[id.index];
    return slot.is_used && slot.generation == id.generation ? &slot.operation : nullptr;
}

void Operations::end(OperationId id) noexcept {
    if (find(id) == nullptr) return;
    Slot& slot = slots_[id.index];
    count_ -= slot.operation.is_for_sync ? 1 : 0;
    // Dies last: what it held may begin another one.
    const Operation ended = std::exchange(slot.operation, {});
    slot.is_used = false;
    ++slot.generation;
    free_.push_back(id.index);
}

void Operations::clear() noexcept {
    for (std::uint32_t index = 0; index < slots_.size(); ++index) end({index, slots_[index].generation});
}

} // namespace kumi::engine
