#include "kumi/group/mail/mailbox.hpp"

#include "kumi/base/log.hpp"
#include "kumi/engine/call/parameters.hpp"
#include "kumi/group/collective/collective_call.hpp"
#include "kumi/group/started/started_calls.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kumi::group {

Membership::Membership(Mailbox& in, const Set& of, std::uint64_t key)
    : mailbox(in), keeps(in.weak_from_this().lock()), set(of), members(of.begin(), of.end()),
      rank(of.rank(in.dispatcher().node())), barriers(engine::Barriers::set_of(members, in.dispatcher().nodes())),
      box([&]() -> Inbox& {
          const auto turn = in.dispatcher().take_turn();
          Inbox& found = in.inboxes(turn).find_or_add(key);
          ++found.seats;
          return found;
      }()) {}

Membership::~Membership() {
    if (mailbox.has_ended()) return; // the inboxes go with the mailbox
    const auto turn = mailbox.dispatcher().take_turn();
    --box.seats;
    mailbox.inboxes(turn).remove_unused(box);
}

Mailbox::Mailbox(engine::Dispatcher& dispatcher)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)),
      chunk_bytes_(std::min(engine::chunk_bytes, dispatcher.message_bytes_max()) - sizeof(CollectiveHeader)),
      windows_(dispatcher.nodes()), inboxes_(dispatcher.nodes()), started_(std::make_unique<StartedCalls>(*this)) {}

Mailbox::~Mailbox() = default;

// ---- going out

bool Mailbox::try_post(const engine::Turn&, Node to, CollectiveHeader head, Bytes data) noexcept {
    constexpr std::size_t head_bytes = engine::header_room + sizeof(CollectiveHeader);
    constexpr std::size_t together_max = 64; // in one piece
    alignas(8) std::array<std::byte, head_bytes + together_max> message;
    head.taken = windows_.received(to);
    std::memcpy(message.data() + engine::header_room, &head, sizeof head);
    const bool is_together = data.size() <= together_max;
    if (is_together) copy_bytes(message.data() + head_bytes, data);
    const MutableBytes front = MutableBytes(message).first(head_bytes + (is_together ? data.size() : 0));
    if (!port_.try_send(to, only_kind, front, is_together ? Bytes{} : data)) return false;
    windows_.on_told(to, head.taken);
    return true;
}

void Mailbox::post(const engine::Turn& turn, Node to, CollectiveHeader head, Bytes data) {
    if (try_post(turn, to, head, data) || dispatcher_.peers().is_gone(to)) return;
    std::array<std::byte, engine::header_room + sizeof(CollectiveHeader)> front;
    head.taken = windows_.received(to);
    windows_.on_told(to, head.taken);
    std::memcpy(front.data() + engine::header_room, &head, sizeof head);
    // with the turn it waits in the engine; refused only where nothing can go
    (void)port_.send(to, only_kind, front, data);
}

void Mailbox::take(const engine::Turn& turn, Node source, const CollectiveHeader& head) {
    if (head.kind != MessageKind::first) return;
    if (windows_.on_received(source, head.bytes))
        post(turn, source, CollectiveHeader{.key = head.key, .kind = MessageKind::taken});
}

void Mailbox::drop(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head) {
    take(turn, source, head);
    if (head.kind == MessageKind::ready)
        post(turn, source, CollectiveHeader{.key = box.key, .serial = head.serial, .kind = MessageKind::drop});
}

void Mailbox::add_skip(const engine::Turn& turn, Inbox& box, Node source, std::optional<std::uint32_t> serial) {
    const auto forgotten = [&](Inbox& in, Node of, const CollectiveHeader& its) { drop(turn, in, of, its); };
    inboxes_.add_skip(box, source, serial, forgotten);
}

// ---- arrivals

engine::Handled Mailbox::on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    CollectiveHeader head;
    if (kind != only_kind || !read_value(body, head)) return engine::Handled::no;
    on_post(turn, source, head, body.subspan(sizeof head));
    return engine::Handled::yes;
}

void Mailbox::on_post(const engine::Turn& turn, Node source, const CollectiveHeader& head, Bytes data) {
    if (!windows_.on_taken(source, head.taken)) dispatcher_.note_unsound(source);
    if (head.kind == MessageKind::taken) return;
    if (head.kind == MessageKind::go || head.kind == MessageKind::drop) {
        Inbox* const box = inboxes_.find(head.key);
        if (box == nullptr || box->call == nullptr) return;
        box->call->on_cleared(turn, source, head.serial, head.kind == MessageKind::go);
        return after_message(turn, *box);
    }
    if (head.kind == MessageKind::ask || head.kind == MessageKind::stuck || head.kind == MessageKind::chase) {
        Inbox* const box = inboxes_.find(head.key);
        if (box == nullptr || box->call == nullptr) {
            if (head.kind == MessageKind::ask) warn_of_barrier(turn, source, head);
            return;
        }
        box->call->on_waiting(turn, source, head);
        return after_message(turn, *box);
    }
    if (head.kind > MessageKind::mismatch ||
        (head.kind == MessageKind::first && (head.bytes > eager_bytes_max || data.size() > head.bytes)))
        return dispatcher_.note_unsound(source);
    Inbox& box = inboxes_.find_or_add(head.key);
    take_in(turn, box, source, head, data);
    after_message(turn, box);
}

/// A node in barrier() of the job and one in another collective wait for each other in vain. That is not certain: other
/// threads of this node may make the call that the source waits for.
void Mailbox::warn_of_barrier(const engine::Turn& turn, Node source, const CollectiveHeader& head) {
    if (!dispatcher_.barriers().is_waited_for(turn) || std::exchange(has_warned_, true)) return;
    base::log_warning("{} waits in barrier(), and {} in {}: all nodes make the same calls in the same order",
                      dispatcher_.name_of(dispatcher_.node()), dispatcher_.name_of(source),
                      name_of(static_cast<Collective>(head.collective)));
}

void Mailbox::after_message(const engine::Turn& turn, Inbox& box) {
    if (!box.started.empty()) started_->go_on(turn, box);
    inboxes_.remove_unused(box);
    started_->finish(turn);
}

void Mailbox::take_in(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data) {
    const auto forgotten = [&](Inbox& in, Node of, const CollectiveHeader& its) { drop(turn, in, of, its); };
    if (!box.skips.empty() && Inboxes::is_skipped(box, source, head.serial)) {
        drop(turn, box, source, head);
    } else if (head.kind == MessageKind::mismatch && mismatches_.contains(head.came_with)) {
        inboxes_.forget_up_to(box, source, head.serial, forgotten);
    } else if (head.kind == MessageKind::mismatch && box.call != nullptr && box.is_concerned(source, head)) {
        box.call->on_trouble(turn, source, head, data);
    } else if (head.kind == MessageKind::more) {
        if (!add_more(turn, box, source, head, data)) dispatcher_.note_unsound(source);
    } else {
        const bool is_behind =
            std::ranges::any_of(box.early, [&](const Inbox::Early& early) { return early.source == source; });
        Receive* const receive = box.call != nullptr && !is_behind ? box.find_receive(source) : nullptr;
        if (receive == nullptr) inboxes_.keep(box, source, head, data, forgotten);
        else if (head.kind == MessageKind::trouble || head.kind == MessageKind::mismatch)
            box.call->on_trouble(turn, source, head, data);
        else if (!receive->is_bound) box.call->bind(turn, *receive, source, head, data);
        else dispatcher_.note_unsound(source);
    }
}

bool Mailbox::add_more(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data) {
    for (auto early = box.early.rbegin(); early != box.early.rend(); ++early) {
        if (early->source != source || early->head.kind != MessageKind::first) continue;
        if (early->head.serial != head.serial || early->data.size() + data.size() > early->head.bytes) return false;
        early->data.insert(early->data.end(), data.begin(), data.end());
        return true;
    }
    if (box.call == nullptr) return false;
    Receive* const receive = box.find_receive(source);
    if (receive == nullptr || !receive->is_bound || receive->serial != head.serial) return false;
    box.call->feed(turn, *receive, data);
    return true;
}

// ---- calls that were started

bool Mailbox::go_on(const engine::Turn& turn) noexcept {
    const bool any = started_->go_on_all(turn);
    started_->finish(turn);
    return any;
}

Instant Mailbox::next_due(const engine::Turn& turn) const noexcept { return started_->next_deadline(turn); }

void Mailbox::check_silent_peers(const engine::Turn& turn) noexcept { (void)go_on(turn); }

void Mailbox::on_lost(const engine::Turn& turn, Node node) noexcept {
    started_->go_on_with(turn, node);
    started_->finish(turn);
}

bool Mailbox::is_done(const engine::Turn& turn) const noexcept { return started_->empty(turn); }

void Mailbox::on_end(const engine::Turn& turn) noexcept {
    // Release: partner of the acquire in has_ended(). First, so that what is given to then() starts no call.
    has_ended_.store(true, std::memory_order_release);
    started_->end(turn);
    report_unreceived(turn);
}

/// Messages that no call has received are for calls that this node has not made. Their sender has not noticed: the root
/// of a broadcast does not wait, also if other members name another root.
void Mailbox::report_unreceived(const engine::Turn&) {
    if (has_failed_) return; // the rest of a call that failed
    const auto [box, message] = inboxes_.find_kept();
    if (message == nullptr) return;
    const auto& [source, head, data] = *message;
    const std::string last = box->ended ? fmt::format("; its last call on that set was {}",
                                                      describe_call(box->ended->collective, box->ended->root))
                                        : "";
    dispatcher_.progress().link()->unasked().add(
        error(ErrorCode::misuse,
              "{} has called {}, and {} ends without that call{}: members of a set make the same "
              "calls, with the same root",
              dispatcher_.name_of(source), describe_call(head.collective, head.root),
              dispatcher_.name_of(dispatcher_.node()), last),
        {});
}

} // namespace kumi::group
