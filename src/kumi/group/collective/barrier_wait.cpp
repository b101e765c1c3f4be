#include "kumi/group/collective/barrier_wait.hpp"

#include <utility>
#include <vector>

namespace kumi::group {

Result<void> BarrierWait::arrive(const engine::Turn& turn) {
    const auto token = seat_.mailbox.dispatcher().barriers().come(turn, seat_.barriers, seat_.members);
    if (!token) return token.error();
    token_ = *token;
    seat_.box.barrier = token_->sequence;
    return {};
}

bool BarrierWait::is_open(const engine::Turn& turn) {
    if (token_ && seat_.mailbox.dispatcher().barriers().is_complete(*token_)) end(turn);
    return token_.has_value();
}

std::uint32_t BarrierWait::number(const engine::Turn& turn) const {
    return token_ ? token_->sequence : seat_.mailbox.dispatcher().barriers().next_of(turn, seat_.barriers);
}

std::optional<Node> BarrierWait::lost(const engine::Turn& turn) const {
    if (!token_) return {};
    return seat_.mailbox.dispatcher().barriers().lost_of(turn, *token_);
}

void BarrierWait::look(const engine::Turn& turn) {
    if (!is_open(turn)) return;
    std::vector<Node> awaited = seat_.mailbox.dispatcher().barriers().awaited(turn, *token_);
    if (awaited == seat_.box.barrier_awaits) return;
    seat_.box.barrier_awaits = std::move(awaited);
    search_.move(turn);
}

void BarrierWait::leave(const engine::Turn& turn) {
    if (!token_) return;
    seat_.mailbox.dispatcher().barriers().unfinished(turn).add(*token_);
    end(turn);
}

void BarrierWait::end(const engine::Turn& turn) {
    token_.reset();
    seat_.box.barrier.reset();
    seat_.box.barrier_awaits.clear();
    search_.move(turn);
}

} // namespace kumi::group
