#include "kumi/engine/operation/operations.hpp"

#include "kumi/base/sync/thread_number.hpp"

#include <utility>

namespace kumi::engine {

OperationId Operations::begin(Operation operation) {
    const auto [id, slot] = table_.add();
    slot = std::move(operation);
    slot.thread = base::thread_number();
    count_ += slot.is_for_sync ? 1 : 0;
    return id;
}

std::vector<OperationId> Operations::open_of(std::uint32_t thread) const {
    std::vector<OperationId> open;
    table_.for_each([&](OperationId id, const Operation& operation) {
        if (operation.is_for_sync && !operation.is_done && operation.thread == thread) open.push_back(id);
    });
    return open;
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
