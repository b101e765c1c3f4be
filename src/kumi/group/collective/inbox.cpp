#include "kumi/group/collective/inbox.hpp"

#include <algorithm>

namespace kumi::group {

Receive* Inbox::find_receive(Node source) noexcept {
    for (Receive& receive : receives)
        if (receive.from == source && !receive.is_done) return &receive;
    return nullptr;
}

const Sending* Inbox::find_sending(Node to) const noexcept {
    const auto found = std::ranges::find(sendings, to, &Sending::to);
    return found == sendings.end() ? nullptr : &*found;
}

bool Inbox::is_waiting_for(Node node) const noexcept {
    if (const Sending* const sending = find_sending(node)) return sending->state == Sending::State::asked;
    return std::ranges::any_of(receives,
                               [&](const Receive& receive) { return receive.from == node && !receive.is_bound; });
}

bool Inbox::is_blocked() const noexcept {
    const auto must_wait = [&](const Sending& one) { return find_sending(one.to)->state == Sending::State::asked; };
    if (!std::ranges::all_of(sendings, must_wait)) return false;
    return !sendings.empty() || std::ranges::any_of(receives, [](const Receive& receive) { return !receive.is_bound; });
}

} // namespace kumi::group
