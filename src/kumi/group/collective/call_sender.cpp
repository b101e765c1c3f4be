#include "kumi/group/collective/call_sender.hpp"

#include <algorithm>

namespace kumi::group {

CallSender::CallSender(Membership& seat, std::size_t bytes_each) noexcept
    : mailbox_(seat.mailbox), sendings_(seat.box.sendings), piece_bytes_(mailbox_.chunk_bytes()) {
    if (bytes_each != 0 && bytes_each <= piece_bytes_) piece_bytes_ -= piece_bytes_ % bytes_each;
}

bool CallSender::send(const engine::Turn& turn, const CollectiveHeader& own, Node to, std::uint16_t step, Bytes data) {
    Sending sending{to, step, Sending::State::fresh, data, 0};
    const bool is_behind = std::ranges::any_of(sendings_, [&](const Sending& other) { return other.to == to; });
    if (!is_behind && advance(turn, own, sending)) return true;
    sendings_.push_back(sending);
    return false;
}

/// True: all of it has gone.
bool CallSender::advance(const engine::Turn& turn, CollectiveHeader head, Sending& sending) {
    using State = Sending::State;
    head.step = sending.step;
    head.bytes = sending.data.size();
    if (sending.state == State::fresh) {
        if (sending.data.size() > Mailbox::eager_bytes_max ||
            !mailbox_.windows(turn).has_room(sending.to, sending.data.size())) {
            head.kind = MessageKind::ready;
            if (mailbox_.try_post(turn, sending.to, head, {})) sending.state = State::asked;
            return false;
        }
    }
    if (sending.state == State::asked) return false;
    do {
        const Bytes piece =
            sending.data.subspan(sending.gone, std::min<std::size_t>(sending.data.size() - sending.gone, piece_bytes_));
        head.kind = sending.state == State::fresh ? MessageKind::first : MessageKind::more;
        if (!mailbox_.try_post(turn, sending.to, head, piece)) return false;
        if (sending.state == State::fresh) {
            mailbox_.windows(turn).on_sent(sending.to, sending.data.size());
            sending.state = State::eager;
        }
        sending.gone += piece.size();
    } while (sending.gone < sending.data.size());
    return true;
}

void CallSender::go_on(const engine::Turn& turn, const CollectiveHeader& own) {
    for (std::size_t i = 0; i < sendings_.size();) {
        const auto here = sendings_.begin() + static_cast<std::ptrdiff_t>(i);
        const bool is_behind =
            std::any_of(sendings_.begin(), here, [&](const Sending& other) { return other.to == here->to; });
        if (!is_behind && advance(turn, own, *here)) sendings_.erase(here);
        else ++i;
    }
}

bool CallSender::on_cleared(const engine::Turn& turn, const CollectiveHeader& own, Node source, bool is_wanted) {
    const auto found = std::ranges::find_if(sendings_, [&](const Sending& sending) {
        return sending.to == source && sending.state == Sending::State::asked;
    });
    if (found == sendings_.end()) return false;
    found->state = Sending::State::cleared;
    if (!is_wanted || advance(turn, own, *found)) sendings_.erase(found);
    return true;
}

} // namespace kumi::group
