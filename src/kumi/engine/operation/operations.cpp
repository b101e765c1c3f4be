#include "kumi/engine/operation/operations.hpp"

#include <utility>

namespace kumi::engine {

OperationId Operations::begin(Operation operation) {
    const auto [id, slot] = table_.add();
    slot = std::move(operation);
    count_ += slot.is_for_sync ? 1 : 0;
    return id;
}

Operation* Operations::find(OperationId id) noexcept { return table_.find(id); }

void Operations::end(OperationId id) noexcept {
    const Operation* const operation = find(id);
    if (operation == nullptr) return;
    count_ -= operation->is_for_sync ? 1 : 0;
    table_.give_back(table_.remove(id)); // not found any more when it is reset: what it held may begin another one
}

void Operations::clear() noexcept {
    table_.for_each([this](OperationId id, const Operation&) { end(id); });
}

} // namespace kumi::engine
