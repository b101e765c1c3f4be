#include "kumi/group/mail/inbox.hpp"

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
    if (std::ranges::find(barrier_awaits, node) != barrier_awaits.end()) return true;
    if (const Sending* const sending = find_sending(node)) return sending->state == Sending::State::asked;
    return std::ranges::any_of(receives,
                               [&](const Receive& receive) { return receive.from == node && !receive.is_bound; });
}

bool Inbox::has_unsent() const noexcept {
    return std::ranges::any_of(
        sendings, [&](const Sending& one) { return find_sending(one.to)->state != Sending::State::asked; });
}

bool Inbox::is_blocked() const noexcept {
    if (has_unsent()) return false;
    return barrier || !sendings.empty() ||
           std::ranges::any_of(receives, [](const Receive& receive) { return !receive.is_bound; });
}

} // namespace kumi::group
