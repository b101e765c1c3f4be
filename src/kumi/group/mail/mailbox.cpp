#include "kumi/group/mail/mailbox.hpp"

#include "kumi/engine/call/parameters.hpp"
#include "kumi/group/collective/collective_call.hpp"
#include "kumi/group/started/started_calls.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <algorithm>
#include <array>

namespace kumi::group {

Membership::Membership(Mailbox& in, const Set& of, std::uint64_t key)
    : mailbox(in), keeps(in.weak_from_this().lock()), set(of), members(of.begin(), of.end()),
      rank(of.rank(in.dispatcher().node())), box([&]() -> Inbox& {
          const auto turn = in.dispatcher().take_turn();
          Inbox& found = in.find_or_add(turn, key);
          ++found.seats;
          return found;
      }()) {}

Membership::~Membership() {
    if (mailbox.has_ended()) return; // the inboxes go with the mailbox
    const auto turn = mailbox.dispatcher().take_turn();
    --box.seats;
    mailbox.leave(turn, box);
}

Mailbox::Mailbox(engine::Dispatcher& dispatcher)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)),
      chunk_bytes_(std::min<std::size_t>(64 << 10, dispatcher.message_bytes_max()) - sizeof(CollectiveHeader)),
      peers_(dispatcher.nodes()), started_(std::make_unique<StartedCalls>(*this)) {}

Mailbox::~Mailbox() = default;

// ---- boxes

Inbox* Mailbox::find(std::uint64_t key) noexcept {
    if (last_ != nullptr && last_->key == key) return last_;
    const auto found = boxes_.find(key);
    return found == boxes_.end() ? nullptr : last_ = found->second.get();
}

Inbox& Mailbox::find_or_add(const engine::Turn&, std::uint64_t key) {
    if (Inbox* const found = find(key)) return *found;
    auto& added = boxes_[key];
    added = std::make_unique<Inbox>();
    added->key = key;
    return *(last_ = added.get());
}

void Mailbox::leave(const engine::Turn&, Inbox& box) noexcept {
    if (box.seats != 0 || !box.early.empty() || !box.skips.empty()) return;
    if (last_ == &box) last_ = nullptr;
    boxes_.erase(box.key);
}

std::size_t Mailbox::kept() const noexcept {
    std::size_t count = 0;
    for (const auto& [key, box] : boxes_) count += box->early.size();
    return count;
}

// ---- going out

bool Mailbox::try_post(const engine::Turn&, Node to, CollectiveHeader head, Bytes data) noexcept {
    constexpr std::size_t head_bytes = engine::header_room + sizeof(CollectiveHeader);
    constexpr std::size_t together_max = 64; // in one piece
    alignas(8) std::array<std::byte, head_bytes + together_max> message;
    Peer& peer = peers_[to];
    head.taken = peer.taken_here;
    std::memcpy(message.data() + engine::header_room, &head, sizeof head);
    const bool is_together = data.size() <= together_max;
    if (is_together) copy_bytes(message.data() + head_bytes, data);
    const MutableBytes front = MutableBytes(message).first(head_bytes + (is_together ? data.size() : 0));
    if (!port_.try_send(to, only_kind, front, is_together ? Bytes{} : data)) return false;
    peer.told = head.taken;
    return true;
}

void Mailbox::post(const engine::Turn& turn, Node to, CollectiveHeader head, Bytes data) {
    if (try_post(turn, to, head, data) || dispatcher_.peers().is_gone(to)) return;
    std::array<std::byte, engine::header_room + sizeof(CollectiveHeader)> front;
    Peer& peer = peers_[to];
    peer.told = head.taken = peer.taken_here;
    std::memcpy(front.data() + engine::header_room, &head, sizeof head);
    // with the turn it waits in the engine; refused only where nothing can go
    (void)port_.send(to, only_kind, front, data);
}

void Mailbox::note_taken(Node by, std::uint32_t taken) noexcept {
    Peer& peer = peers_[by];
    const std::uint32_t more = taken - peer.taken;
    if (more > peer.sent - peer.taken) return dispatcher_.note_unsound(by);
    peer.taken = taken;
}

void Mailbox::take(const engine::Turn& turn, Node source, const CollectiveHeader& head) {
    if (head.kind != MessageKind::first) return;
    Peer& peer = peers_[source];
    peer.taken_here += cost_of(head.bytes);
    if (peer.taken_here - peer.told >= window_bytes / 2)
        post(turn, source, CollectiveHeader{.key = head.key, .kind = MessageKind::taken});
}

void Mailbox::drop(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head) {
    take(turn, source, head);
    if (head.kind == MessageKind::ready)
        post(turn, source, CollectiveHeader{.key = box.key, .serial = head.serial, .kind = MessageKind::drop});
}

// ---- arrivals

engine::Handled Mailbox::on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    CollectiveHeader head;
    if (kind != only_kind || !read_value(body, head)) return engine::Handled::no;
    on_post(turn, source, head, body.subspan(sizeof head));
    return engine::Handled::yes;
}

void Mailbox::on_post(const engine::Turn& turn, Node source, const CollectiveHeader& head, Bytes data) {
    note_taken(source, head.taken);
    if (head.kind == MessageKind::taken) return;
    if (head.kind == MessageKind::go || head.kind == MessageKind::drop) {
        Inbox* const box = find(head.key);
        if (box == nullptr || box->call == nullptr) return;
        box->call->on_cleared(turn, source, head.serial, head.kind == MessageKind::go);
        return after_message(turn, *box);
    }
    if (head.kind == MessageKind::ask || head.kind == MessageKind::stuck || head.kind == MessageKind::chase) {
        Inbox* const box = find(head.key);
        if (box == nullptr || box->call == nullptr) return;
        box->call->on_waiting(turn, source, head);
        return after_message(turn, *box);
    }
    if (head.kind > MessageKind::mismatch ||
        (head.kind == MessageKind::first && (head.bytes > eager_bytes_max || data.size() > head.bytes)))
        return dispatcher_.note_unsound(source);
    Inbox& box = find_or_add(turn, head.key);
    take_in(turn, box, source, head, data);
    after_message(turn, box);
}

void Mailbox::after_message(const engine::Turn& turn, Inbox& box) {
    if (!box.started.empty()) started_->go_on(turn, box);
    leave(turn, box);
    started_->finish(turn);
}

void Mailbox::take_in(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data) {
    if (!box.skips.empty() && is_skipped(box, source, head)) {
        drop(turn, box, source, head);
    } else if (head.kind == MessageKind::mismatch && knows(turn, head.came_with)) {
        forget_up_to(turn, box, source, head.serial);
    } else if (head.kind == MessageKind::mismatch && box.call != nullptr && box.is_waiting_for(source)) {
        box.call->on_trouble(turn, source, head, data);
    } else if (head.kind == MessageKind::more) {
        if (!add_more(turn, box, source, head, data)) dispatcher_.note_unsound(source);
    } else {
        const bool is_behind =
            std::ranges::any_of(box.early, [&](const Inbox::Early& early) { return early.source == source; });
        Receive* const receive = box.call != nullptr && !is_behind ? box.find_receive(source) : nullptr;
        if (receive == nullptr) keep(turn, box, source, head, data);
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

void Mailbox::keep(const engine::Turn& turn, Inbox& box, Node source, const CollectiveHeader& head, Bytes data) {
    if (peers_[source].kept >= kept_max) forget_one(turn, source, box);
    ++peers_[source].kept;
    auto& early = box.early.emplace_back(Inbox::Early{source, head, {}});
    if (head.kind == MessageKind::first) early.data.reserve(head.bytes);
    early.data.assign(data.begin(), data.end());
}

/// Drops the oldest message of `source` in some set: in a set that is not in use, if there is one.
void Mailbox::forget_one(const engine::Turn& turn, Node source, const Inbox& current) {
    for (const bool with_seats : {false, true})
        for (const auto& [key, box] : boxes_) {
            if ((box->seats != 0) != with_seats) continue;
            const auto found = std::ranges::find(box->early, source, &Inbox::Early::source);
            if (found == box->early.end()) continue;
            drop(turn, *box, source, take_early(turn, *box, found).head);
            if (box.get() != &current) leave(turn, *box);
            return;
        }
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
}

// ---- what is not wanted

bool Mailbox::knows(const engine::Turn&, std::uint64_t mismatch) const noexcept {
    return std::ranges::find(mismatches_, mismatch) != mismatches_.end();
}

void Mailbox::add_mismatch(const engine::Turn& turn, std::uint64_t mismatch) {
    if (knows(turn, mismatch)) return;
    if (mismatches_.size() >= mismatches_max) mismatches_.pop_front();
    mismatches_.push_back(mismatch);
}

Inbox::Early Mailbox::take_early(const engine::Turn&, Inbox& box, std::deque<Inbox::Early>::iterator early) {
    Inbox::Early taken = std::move(*early);
    box.early.erase(early);
    --peers_[taken.source].kept;
    return taken;
}

/// Drops messages of `source` that were not received yet.
void Mailbox::forget_if(const engine::Turn& turn, Inbox& box, Node source,
                        base::FunctionRef<bool(const CollectiveHeader&)> is_unwanted) {
    std::erase_if(box.early, [&](const Inbox::Early& early) {
        if (early.source != source || !is_unwanted(early.head)) return false;
        --peers_[source].kept;
        drop(turn, box, source, early.head);
        return true;
    });
}

/// The calls of `source` up to that serial are over: drops their messages.
void Mailbox::forget_up_to(const engine::Turn& turn, Inbox& box, Node source, std::uint32_t serial) {
    forget_if(turn, box, source,
              [&](const CollectiveHeader& head) { return static_cast<std::int32_t>(head.serial - serial) <= 0; });
}

bool Mailbox::is_skipped(Inbox& box, Node source, const CollectiveHeader& head) {
    for (auto skip = box.skips.begin(); skip != box.skips.end();) {
        if (skip->source != source) {
            ++skip;
            continue;
        }
        if (!skip->serial) skip->serial = head.serial;
        if (static_cast<std::int32_t>(head.serial - *skip->serial) <= 0) return true;
        skip = box.skips.erase(skip);
    }
    return false;
}

void Mailbox::add_skip(const engine::Turn& turn, Inbox& box, Node source, std::optional<std::uint32_t> serial) {
    box.skips.push_back({source, serial});
    skipping_.push_back(box.key);
    forget_if(turn, box, source, [&](const CollectiveHeader& head) { return is_skipped(box, source, head); });
    if (skipping_.size() <= skips_max) return;
    Inbox* const oldest = find(skipping_.front());
    skipping_.pop_front();
    if (oldest == nullptr || oldest == &box || oldest->skips.empty()) return;
    oldest->skips.erase(oldest->skips.begin());
    leave(turn, *oldest);
}

} // namespace kumi::group
