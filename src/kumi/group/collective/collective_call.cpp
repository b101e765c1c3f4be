#include "kumi/group/collective/collective_call.hpp"

#include "kumi/base/machine.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace kumi::group {
namespace {

constexpr std::size_t text_bytes_max = 500;
constexpr std::size_t chases_max_each = 16; // of a member that begins them; usually it begins one

// Two states in one field.
constexpr std::uint64_t both(Deadlock::State lower, Deadlock::State upper) noexcept {
    return lower | std::uint64_t{upper} << 32;
}
constexpr Deadlock::State lower_of(std::uint64_t both) noexcept { return static_cast<Deadlock::State>(both); }
constexpr Deadlock::State upper_of(std::uint64_t both) noexcept { return static_cast<Deadlock::State>(both >> 32); }

} // namespace

std::string_view name_of(Collective collective) noexcept {
    constexpr std::array<std::string_view, 14> names{
        "barrier",  "broadcast", "reduce",         "allreduce", "gather",   "scatter",    "allgather",
        "alltoall", "scan",      "exclusive scan", "gatherv",   "scatterv", "allgatherv", "alltoallv"};
    return static_cast<std::size_t>(collective) < names.size() ? names[static_cast<std::size_t>(collective)]
                                                               : "something else";
}

CollectiveCall::CollectiveCall(Membership& seat, const CallShape& shape, Instant deadline)
    : seat_(seat), mailbox_(seat.mailbox), core_(seat.mailbox.core()), box_(seat.box), shape_(shape),
      deadline_(deadline), piece_bytes_(mailbox_.chunk_bytes()) {
    if (shape.bytes_each != 0 && shape.bytes_each <= piece_bytes_) piece_bytes_ -= piece_bytes_ % shape.bytes_each;
    if (core_.in_handler()) {
        has_failed_ = true;
        why_ = "a handler must not wait";
        return;
    }
    const auto turn = core_.take_turn();
    if (box_.call != nullptr) {
        has_failed_ = true;
        why_ = "another thread is in a call on this set, and only one at a time can be";
        return;
    }
    has_begun_ = true;
    serial_ = ++mailbox_.serial_;
    box_.call = this;
    box_.heard.clear();
}

CollectiveCall::~CollectiveCall() {
    if (!has_begun_) return;
    const auto turn = core_.take_turn();
    box_.call = nullptr;
    box_.receives.clear();
    box_.sendings.clear();
}

void CollectiveCall::set_bytes(std::uint64_t bytes) noexcept {
    const auto turn = core_.take_turn();
    shape_.bytes = bytes;
}

CollectiveHeader CollectiveCall::head_of(MessageKind kind, std::uint16_t step, std::uint64_t bytes) const noexcept {
    return {box_.key, serial_, 0, bytes, shape_.bytes, shape_.root, step, static_cast<std::uint8_t>(shape_.collective),
            kind};
}

// ---- sending

bool CollectiveCall::send(Node rank, std::size_t step, Bytes data) {
    if (!has_begun_) return false;
    const auto turn = core_.take_turn();
    const Node to = seat_.members[rank];
    if (has_failed_) return tell(to), false;
    Sending sending{to, static_cast<std::uint16_t>(step), Sending::State::fresh, data, 0};
    const bool is_behind = std::ranges::any_of(box_.sendings, [&](const Sending& other) { return other.to == to; });
    if (!is_behind && advance(sending)) return true;
    box_.sendings.push_back(sending);
    return false;
}

/// True: all of it has gone.
bool CollectiveCall::advance(Sending& sending) {
    using State = Sending::State;
    if (sending.state == State::fresh) {
        if (sending.data.size() > Mailbox::eager_bytes_max || !mailbox_.has_window(sending.to, sending.data.size())) {
            if (mailbox_.try_post(sending.to, head_of(MessageKind::ready, sending.step, sending.data.size()), {}))
                sending.state = State::asked;
            return false;
        }
    }
    if (sending.state == State::asked) return false;
    do {
        const Bytes piece =
            sending.data.subspan(sending.gone, std::min<std::size_t>(sending.data.size() - sending.gone, piece_bytes_));
        const MessageKind kind = sending.state == State::fresh ? MessageKind::first : MessageKind::more;
        if (!mailbox_.try_post(sending.to, head_of(kind, sending.step, sending.data.size()), piece)) return false;
        if (sending.state == State::fresh) {
            mailbox_.peers_[sending.to].sent += Mailbox::cost_of(sending.data.size());
            sending.state = State::eager;
        }
        sending.gone += piece.size();
    } while (sending.gone < sending.data.size());
    return true;
}

void CollectiveCall::advance_all() {
    for (std::size_t i = 0; i < box_.sendings.size();) {
        const Node to = box_.sendings[i].to;
        const bool is_behind =
            std::any_of(box_.sendings.begin(), box_.sendings.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const Sending& other) { return other.to == to; });
        if (!is_behind && advance(box_.sendings[i]))
            box_.sendings.erase(box_.sendings.begin() + static_cast<std::ptrdiff_t>(i));
        else ++i;
    }
}

void CollectiveCall::on_cleared(Node source, bool is_wanted) {
    const auto found = std::ranges::find_if(box_.sendings, [&](const Sending& sending) {
        return sending.to == source && sending.state == Sending::State::asked;
    });
    if (found == box_.sendings.end()) return;
    deadlock_.move();
    found->state = Sending::State::cleared;
    if (!is_wanted || advance(*found)) box_.sendings.erase(found);
}

// ---- receiving

void CollectiveCall::receive(Node rank, std::size_t step, MutableBytes target) {
    add({.from = seat_.members[rank],
         .step = static_cast<std::uint16_t>(step),
         .target = target.data(),
         .bytes = target.size()});
}

void CollectiveCall::receive_into(Node rank, std::size_t step, MutableBytes target, Bytes mine, const Combine& combine,
                                  bool is_first) {
    // Values that are larger than messages are put together first.
    std::vector<std::byte>* const content = shape_.bytes_each > piece_bytes_ ? &contents_.emplace_back() : nullptr;
    add({.from = seat_.members[rank],
         .step = static_cast<std::uint16_t>(step),
         .target = target.data(),
         .bytes = target.size(),
         .content = content,
         .combine = &combine,
         .mine = mine.data(),
         .is_first = is_first});
}

void CollectiveCall::receive_any(Node rank, std::size_t step, std::vector<std::byte>& content) {
    add({.from = seat_.members[rank],
         .step = static_cast<std::uint16_t>(step),
         .target = nullptr,
         .bytes = 0,
         .content = &content});
}

void CollectiveCall::receive_fitting(Node rank, std::size_t step, MutableBytes target,
                                     std::vector<std::byte>& content) {
    add({.from = seat_.members[rank],
         .step = static_cast<std::uint16_t>(step),
         .target = target.data(),
         .bytes = target.size(),
         .content = &content,
         .may_fit = true});
}

void CollectiveCall::add(const Receive& receive) {
    if (!has_begun_) return;
    const auto turn = core_.take_turn();
    if (has_failed_) return skip(receive.from);
    box_.receives.push_back(receive);
    ++open_;
    if (!box_.early.empty()) find_early(box_.receives.size() - 1);
}

/// What has come already for a receive that was just added.
void CollectiveCall::find_early(std::size_t index) {
    const Node from = box_.receives[index].from;
    for (std::size_t i = 0; i < index; ++i)
        if (box_.receives[i].from == from && !box_.receives[i].is_done) return; // it is for that one
    while (!has_failed_ && !box_.receives[index].is_done) {
        const auto found = std::ranges::find(box_.early, from, &Inbox::Early::source);
        if (found == box_.early.end()) return;
        const bool is_trouble = found->head.kind == MessageKind::trouble || found->head.kind == MessageKind::mismatch;
        if (box_.receives[index].is_bound && !is_trouble) return;
        const Inbox::Early early = mailbox_.take_early(box_, found);
        if (early.head.kind == MessageKind::mismatch && mailbox_.knows(early.head.came_with)) continue;
        if (is_trouble) on_trouble(from, early.head, early.data);
        else bind(box_.receives[index], from, early.head, early.data);
    }
}

Receive* CollectiveCall::find_receive(Node source) noexcept {
    for (Receive& receive : box_.receives)
        if (receive.from == source && !receive.is_done) return &receive;
    return nullptr;
}

/// `head` is what the receive is for. It may be gone afterwards.
void CollectiveCall::bind(Receive& receive, Node source, const CollectiveHeader& head, Bytes data) {
    deadlock_.move();
    receive.is_bound = true;
    receive.serial = head.serial;
    box_.heard.push_back({source, head.serial, false});
    heard_bytes_ = head.came_with;
    if (!check(source, head) || !make_room(receive, source, head)) return mailbox_.drop(box_, source, head);
    mailbox_.take(source, head);
    if (head.kind == MessageKind::ready)
        mailbox_.post(source, CollectiveHeader{.key = box_.key, .serial = head.serial, .kind = MessageKind::go});
    else feed(receive, data);
}

/// Whether it is of the same call.
bool CollectiveCall::check(Node source, const CollectiveHeader& head) {
    const auto fail_both = [&](auto&& text, std::uint64_t mismatch) {
        return fail(text("this node"), text(name(core_.node())), mismatch), false;
    };
    if (!has_same_name(head)) {
        const auto call = [](std::uint8_t collective, Node root) {
            return fmt::format("{} with root {}", name_of(static_cast<Collective>(collective)), root);
        };
        const auto text = [&](std::string_view self) {
            return fmt::format("{} has called {}, {} {}", name(source), call(head.collective, head.root), self,
                               call(static_cast<std::uint8_t>(shape_.collective), shape_.root));
        };
        return fail_both(text, std::uint64_t{core_.node()} << 32 | serial_);
    }
    if (!has_same_size(head))
        return fail_both(
            [&](std::string_view self) {
                return fmt::format("{} came with {} bytes, {} with {}", name(source), head.came_with, self,
                                   shape_.bytes);
            },
            0);
    return true;
}

bool CollectiveCall::make_room(Receive& receive, Node source, const CollectiveHeader& head) {
    const bool has_size = receive.content == nullptr || receive.combine != nullptr;
    if (head.step != receive.step || (has_size && head.bytes != receive.bytes))
        return fail(fmt::format("{} is at another step: the members' calls are not in the same order", name(source))),
               false;
    if (receive.may_fit && head.bytes == receive.bytes) receive.content = nullptr;
    if (receive.content == nullptr) return true;
    try {
        receive.content->resize(head.bytes);
    } catch (const std::exception& failure) {
        return fail(fmt::format("no memory for {} of {}: {}", base::readable_bytes(head.bytes), name(source),
                                failure.what())),
               false;
    }
    receive.bytes = head.bytes;
    return true;
}

void CollectiveCall::feed(Receive& receive, Bytes data) {
    const bool is_cut_wrong =
        receive.combine != nullptr && receive.content == nullptr && data.size() % shape_.bytes_each != 0;
    if (data.size() > receive.bytes - receive.arrived || is_cut_wrong)
        return fail(fmt::format("{} has sent what makes no sense", name(receive.from)));
    const bool is_last = receive.arrived + data.size() == receive.bytes;
    if (receive.content != nullptr) copy_bytes(receive.content->data() + receive.arrived, data);
    if (receive.combine == nullptr) {
        if (receive.content == nullptr) copy_bytes(receive.target + receive.arrived, data);
    } else if (receive.content == nullptr) {
        if (!apply(*receive.combine, receive.target + receive.arrived, receive.mine + receive.arrived, data,
                   receive.is_first))
            return;
    } else if (is_last) {
        if (!apply(*receive.combine, receive.target, receive.mine, *receive.content, receive.is_first)) return;
    }
    receive.arrived += data.size();
    if (!is_last) return;
    receive.is_done = true;
    --open_;
}

bool CollectiveCall::apply(const Combine& combine, std::byte* into, const std::byte* mine, Bytes data, bool is_first) {
    try {
        if (!data.empty()) combine(into, mine, data.data(), data.size(), is_first);
        return true;
    } catch (const std::exception& thrown) {
        fail(fmt::format("the operation threw on {}: {}", name(core_.node()), thrown.what()));
    } catch (...) {
        fail(fmt::format("the operation threw on {}", name(core_.node())));
    }
    return false;
}

void CollectiveCall::combine_here(MutableBytes into, Bytes other, const Combine& combine, bool other_is_first) {
    const auto turn = core_.take_turn();
    if (has_failed_) return;
    (void)apply(combine, into.data(), into.data(), other, other_is_first);
}

// ---- waiting

bool CollectiveCall::wait(bool for_sends) {
    if (!has_begun_) return false;
    bool has_all = false; // looked at with the turn: what comes later may make the call fail meanwhile
    const auto is_over = [&] { return has_all || (is_done(for_sends) && ((has_all = !has_failed_), true)); };
    const bool in_time = core_.wait_until(is_over, deadline_);
    if (has_all) return true;
    const auto turn = core_.take_turn();
    if (!in_time && !has_failed_) {
        const auto late = std::ranges::find(box_.receives, false, &Receive::is_done);
        const Node who = late != box_.receives.end() ? late->from : box_.sendings.front().to;
        const std::string why = fmt::format("{} has not come within the time given", name(who));
        fail(why, fmt::format("{} has given up: {}", name(core_.node()), why));
    }
    box_.receives.clear();
    return false;
}

bool CollectiveCall::is_done(bool for_sends) {
    if (has_failed_) return true;
    if (!box_.sendings.empty()) advance_all();
    if (open_ == 0 && (!for_sends || box_.sendings.empty())) {
        box_.receives.clear();
        return true;
    }
    if (find_gone()) return true;
    check_silent_peers();
    return has_failed_; // a mismatch may have been found
}

/// Members that are waited for for long are asked. A network learns by it whether they are still there, and members
/// that wait for each other in different calls find out (deadlock.hpp).
void CollectiveCall::check_silent_peers() {
    if (looks_.value_or(core_.looks()) != core_.looks() && !find_mismatch()) {
        if (deadlock_.state() == 0 && is_blocked()) {
            deadlock_.block(++mailbox_.states_);
            others_.clear();
        }
        for (const Node node : seat_.members)
            if (is_waiting_for(node)) mailbox_.post(node, head_of(MessageKind::ask, 0, deadlock_.state()));
    }
    looks_ = core_.looks();
}

/// The first message that is to go to that node: the others wait behind it.
const Sending* CollectiveCall::find_sending(Node to) const noexcept {
    const auto found = std::ranges::find(box_.sendings, to, &Sending::to);
    return found == box_.sendings.end() ? nullptr : &*found;
}

/// Nothing happens between the two before something comes from it.
bool CollectiveCall::is_waiting_for(Node node) const noexcept {
    if (const Sending* const sending = find_sending(node)) return sending->state == Sending::State::asked;
    return std::ranges::any_of(box_.receives,
                               [&](const Receive& receive) { return receive.from == node && !receive.is_bound; });
}

/// Nothing goes on in this call before a message begins to come, or one is allowed to go.
bool CollectiveCall::is_blocked() const noexcept {
    if (!std::ranges::all_of(box_.sendings, [&](const Sending& sending) {
            return find_sending(sending.to)->state == Sending::State::asked;
        }))
        return false;
    return !box_.sendings.empty() ||
           std::ranges::any_of(box_.receives, [](const Receive& receive) { return !receive.is_bound; });
}

bool CollectiveCall::has_same_name(const CollectiveHeader& head) const noexcept {
    return head.collective == static_cast<std::uint8_t>(shape_.collective) && head.root == shape_.root;
}

bool CollectiveCall::has_same_size(const CollectiveHeader& head) const noexcept {
    return shape_.takes_any_size || head.came_with == shape_.bytes;
}

/// `ask`, `stuck` or `chase`, of a member that has waited for long. They say nothing to a call that is not blocked.
void CollectiveCall::on_waiting(Node source, const CollectiveHeader& head) {
    if (deadlock_.state() == 0) return;
    if (head.kind == MessageKind::ask)
        mailbox_.post(source, head_of(MessageKind::stuck, 0, both(lower_of(head.bytes), deadlock_.state())));
    else if (head.kind == MessageKind::stuck) on_stuck(source, head);
    else on_chased(head);
}

void CollectiveCall::on_stuck(Node source, const CollectiveHeader& head) {
    const Deadlock::Member wait{source, upper_of(head.bytes)};
    if (!is_waiting_for(source) || !deadlock_.add_wait(lower_of(head.bytes), wait)) return;
    for (const Deadlock::Chase& chase : deadlock_.chases()) pass_on(chase, wait);
    if (has_same_name(head) && has_same_size(head)) return;
    others_.emplace_back(source, head);
    pass_on({{core_.node(), deadlock_.state()}, source}, wait);
}

void CollectiveCall::on_chased(const CollectiveHeader& head) {
    const Deadlock::Chase chase{{static_cast<Node>(head.came_with), lower_of(head.bytes)}, head.root};
    if (!deadlock_.add_chase(upper_of(head.bytes), chase, chases_max_each * seat_.members.size())) return;
    if (chase.beginner != Deadlock::Member{core_.node(), deadlock_.state()}) {
        for (const Deadlock::Member& wait : deadlock_.waits()) pass_on(chase, wait);
        return;
    }
    const auto other = std::ranges::find(others_, chase.first, &std::pair<Node, CollectiveHeader>::first);
    if (other != others_.end()) (void)check(other->first, other->second);
}

void CollectiveCall::pass_on(const Deadlock::Chase& chase, const Deadlock::Member& to) {
    CollectiveHeader head = head_of(MessageKind::chase, 0, both(chase.beginner.state, to.state));
    head.came_with = chase.beginner.node;
    head.root = chase.first;
    mailbox_.post(to.node, head);
}

bool CollectiveCall::find_gone() {
    const auto check = [&](Node node) {
        if (!core_.is_gone(node)) return false;
        return fail(fmt::format("{} has left, or is lost", name(node))), true;
    };
    for (const Receive& receive : box_.receives)
        if (!receive.is_done && check(receive.from)) return true;
    for (const Sending& sending : box_.sendings)
        if (check(sending.to)) return true;
    return false;
}

/// Fails the call if a member that it waits for has told of a mismatch, before the call began to wait for that member.
bool CollectiveCall::find_mismatch() {
    const auto found = std::ranges::find_if(box_.early, [&](const Inbox::Early& early) {
        return early.head.kind == MessageKind::mismatch && !mailbox_.knows(early.head.came_with) &&
               is_waiting_for(early.source);
    });
    if (found == box_.early.end()) return false;
    const Inbox::Early early = mailbox_.take_early(box_, found);
    return on_trouble(early.source, early.head, early.data), true;
}

Result<void> CollectiveCall::end() {
    if (wait()) return {};
    const auto turn = core_.take_turn();
    return error("{} among {}: {}", name_of(shape_.collective), seat_.set.text(), why_);
}

// ---- failing

void CollectiveCall::refuse(std::string why) {
    if (!has_begun_) return;
    const auto turn = core_.take_turn();
    std::string told = fmt::format("{}: {}", name(core_.node()), why);
    fail(std::move(why), std::move(told));
}

void CollectiveCall::on_trouble(Node source, const CollectiveHeader& head, Bytes text) {
    box_.heard.push_back({source, head.serial, head.kind == MessageKind::trouble});
    const std::string why(kumi::text_of(text.first(std::min(text.size(), text_bytes_max))));
    fail(why, why, head.came_with);
}

void CollectiveCall::fail(std::string why, std::string told, std::uint64_t mismatch) {
    if (has_failed_) return;
    has_failed_ = true;
    mismatch_ = mismatch;
    deadlock_.move();
    why_ = std::move(why);
    told_ = std::move(told);
    told_.resize(std::min(told_.size(), text_bytes_max));
    for (const Sending& sending : box_.sendings) tell(sending.to);
    for (const Receive& receive : box_.receives)
        if (!receive.is_done) skip(receive.from);
    box_.sendings.clear();
    box_.receives.clear();
    open_ = 0;
    if (mismatch_ != 0) tell_all();
}

/// It waits for what this member will not send.
void CollectiveCall::tell(Node to) {
    if (std::ranges::find(told_to_, to) != told_to_.end()) return;
    told_to_.push_back(to);
    tell(to, MessageKind::trouble);
}

void CollectiveCall::tell(Node to, MessageKind kind) {
    CollectiveHeader head = head_of(kind, 0, told_.size());
    head.came_with = mismatch_;
    mailbox_.post(to, head, bytes_of(std::string_view(told_)));
}

/// Members in different calls may wait for this member, though it owes them nothing.
void CollectiveCall::tell_all() {
    mailbox_.add_mismatch(mismatch_);
    for (const Node member : seat_.members)
        if (member != core_.node()) tell(member, MessageKind::mismatch);
}

/// It may still send what this member does not wait for.
void CollectiveCall::skip(Node from) {
    if (std::ranges::find(skipped_, from) != skipped_.end()) return;
    skipped_.push_back(from);
    const auto heard = std::find_if(box_.heard.rbegin(), box_.heard.rend(),
                                    [&](const Inbox::Heard& one) { return one.source == from; });
    if (heard == box_.heard.rend()) return mailbox_.add_skip(box_, from, {});
    if (!heard->is_over) mailbox_.add_skip(box_, from, heard->serial);
}

} // namespace kumi::group
