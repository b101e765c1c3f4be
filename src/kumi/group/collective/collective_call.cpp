#include "kumi/group/collective/collective_call.hpp"

#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <utility>

namespace kumi::group {

std::string_view name_of(Collective collective) noexcept {
    constexpr std::array<std::string_view, 21> names{"barrier",
                                                     "broadcast",
                                                     "reduce",
                                                     "allreduce",
                                                     "gather",
                                                     "scatter",
                                                     "allgather",
                                                     "alltoall",
                                                     "scan",
                                                     "exclusive scan",
                                                     "gatherv",
                                                     "scatterv",
                                                     "allgatherv",
                                                     "alltoallv",
                                                     "broadcast of an object",
                                                     "reduce of objects",
                                                     "allreduce of objects",
                                                     "gather of objects",
                                                     "scatter of objects",
                                                     "allgather of objects",
                                                     "alltoall of objects"};
    return static_cast<std::size_t>(collective) < names.size() ? names[static_cast<std::size_t>(collective)]
                                                               : "something else";
}

Error refusal(const Membership& seat, Collective collective, ErrorCode code, std::string_view why) {
    return error(code, "{} among {}: {}", name_of(collective), seat.set.text(), why);
}

Result<void> check_root(const Membership& seat, const CallShape& shape) {
    if (shape.root < seat.size()) return {};
    return refusal(seat, shape.collective, ErrorCode::not_found,
                   fmt::format("there is no rank {}, this set has ranks 0 to {}", shape.root, seat.size() - 1));
}

FrameStack& frames_of(CollectiveCall& call) noexcept { return call.box_.frames; }

CollectiveCall::CollectiveCall(Membership& seat, const CallShape& shape, Instant deadline, bool is_started)
    : seat_(seat), mailbox_(seat.mailbox), dispatcher_(seat.mailbox.dispatcher()), box_(seat.box), shape_(shape),
      deadline_(deadline), piece_bytes_(mailbox_.chunk_bytes()), is_started_(is_started), search_(seat),
      failure_(seat) {
    if (shape.bytes_each != 0 && shape.bytes_each <= piece_bytes_) piece_bytes_ -= piece_bytes_ % shape.bytes_each;
}

CollectiveCall::CollectiveCall(Membership& seat, const CallShape& shape, Instant deadline)
    : CollectiveCall(seat, shape, deadline, false) {
    if (auto entered = enter(); !entered) refused_ = entered.error();
}

/// Begins the call, or is behind others. An error: the call is not made.
Result<void> CollectiveCall::enter() {
    if (mailbox_.has_ended()) return refusal(seat_, shape_.collective, ErrorCode::ended, job_has_ended);
    if (auto good = check_root(seat_, shape_); !good) return good;
    if (dispatcher_.progress().in_handler())
        return refusal(seat_, shape_.collective, ErrorCode::misuse, no_wait_in_handler);
    const auto turn = dispatcher_.take_turn();
    is_behind_ = !box_.started.empty();
    if (is_behind_) return {};
    if (box_.call != nullptr) return refusal(seat_, shape_.collective, ErrorCode::misuse, another_thread);
    begin(turn);
    return {};
}

CollectiveCall::CollectiveCall(const engine::Turn& turn, Membership& seat, const CallShape& shape, Instant deadline,
                               bool is_late)
    : CollectiveCall(seat, shape, deadline, true) {
    begin(turn);
    is_late_ = is_late;
    if (is_late)
        fail(turn, ErrorCode::timed_out, std::string(late_behind_others),
             fmt::format("{} has given up: {}", dispatcher_.name_of(dispatcher_.node()), late_behind_others));
}

void CollectiveCall::begin(const engine::Turn& turn) {
    has_begun_ = true;
    serial_ = mailbox_.next_serial(turn);
    box_.call = this;
    box_.heard.clear();
}

CollectiveCall::~CollectiveCall() {
    if (!has_begun_) return;
    const auto turn = dispatcher_.take_turn();
    box_.call = nullptr;
    box_.receives.clear();
    box_.sendings.clear();
}

CollectiveHeader CollectiveCall::head_of(MessageKind kind, std::uint16_t step, std::uint64_t bytes) const noexcept {
    return {box_.key, serial_, 0, bytes, shape_.bytes, shape_.root, step, static_cast<std::uint8_t>(shape_.collective),
            kind};
}

void CollectiveCall::set_bytes(std::uint64_t bytes) noexcept {
    const auto turn = dispatcher_.take_turn();
    shape_.bytes = bytes;
}

// ---- sending

bool CollectiveCall::send(Node rank, std::size_t step, Bytes data) {
    if (!has_begun_) return false;
    const auto turn = dispatcher_.take_turn();
    const Node to = seat_.members[rank];
    if (failure_.has_failed()) return failure_.tell(turn, to, head_of(MessageKind::trouble, 0, 0)), false;
    Sending sending{to, static_cast<std::uint16_t>(step), Sending::State::fresh, data, 0};
    const bool is_behind = std::ranges::any_of(box_.sendings, [&](const Sending& other) { return other.to == to; });
    if (!is_behind && advance(turn, sending)) return true;
    box_.sendings.push_back(sending);
    return false;
}

/// True: all of it has gone.
bool CollectiveCall::advance(const engine::Turn& turn, Sending& sending) {
    using State = Sending::State;
    if (sending.state == State::fresh) {
        if (sending.data.size() > Mailbox::eager_bytes_max ||
            !mailbox_.has_window(turn, sending.to, sending.data.size())) {
            if (mailbox_.try_post(turn, sending.to, head_of(MessageKind::ready, sending.step, sending.data.size()), {}))
                sending.state = State::asked;
            return false;
        }
    }
    if (sending.state == State::asked) return false;
    do {
        const Bytes piece =
            sending.data.subspan(sending.gone, std::min<std::size_t>(sending.data.size() - sending.gone, piece_bytes_));
        const MessageKind kind = sending.state == State::fresh ? MessageKind::first : MessageKind::more;
        if (!mailbox_.try_post(turn, sending.to, head_of(kind, sending.step, sending.data.size()), piece)) return false;
        if (sending.state == State::fresh) {
            mailbox_.note_sent(turn, sending.to, sending.data.size());
            sending.state = State::eager;
        }
        sending.gone += piece.size();
    } while (sending.gone < sending.data.size());
    return true;
}

void CollectiveCall::advance_all(const engine::Turn& turn) {
    for (std::size_t i = 0; i < box_.sendings.size();) {
        const Node to = box_.sendings[i].to;
        const bool is_behind =
            std::any_of(box_.sendings.begin(), box_.sendings.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const Sending& other) { return other.to == to; });
        if (!is_behind && advance(turn, box_.sendings[i]))
            box_.sendings.erase(box_.sendings.begin() + static_cast<std::ptrdiff_t>(i));
        else ++i;
    }
}

void CollectiveCall::on_cleared(const engine::Turn& turn, Node source, std::uint32_t serial, bool is_wanted) {
    if (serial != serial_) return;
    const auto found = std::ranges::find_if(box_.sendings, [&](const Sending& sending) {
        return sending.to == source && sending.state == Sending::State::asked;
    });
    if (found == box_.sendings.end()) return;
    search_.move(turn);
    found->state = Sending::State::cleared;
    if (!is_wanted || advance(turn, *found)) box_.sendings.erase(found);
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
    const auto turn = dispatcher_.take_turn();
    if (failure_.has_failed()) return failure_.skip(turn, receive.from);
    box_.receives.push_back(receive);
    ++open_;
    if (!box_.early.empty()) find_early(turn, box_.receives.size() - 1);
}

/// What has come already for a receive that was just added.
void CollectiveCall::find_early(const engine::Turn& turn, std::size_t index) {
    const Node from = box_.receives[index].from;
    for (std::size_t i = 0; i < index; ++i)
        if (box_.receives[i].from == from && !box_.receives[i].is_done) return; // it is for that one
    while (!failure_.has_failed() && !box_.receives[index].is_done) {
        const auto found = std::ranges::find(box_.early, from, &Inbox::Early::source);
        if (found == box_.early.end()) return;
        const bool is_trouble = found->head.kind == MessageKind::trouble || found->head.kind == MessageKind::mismatch;
        if (box_.receives[index].is_bound && !is_trouble) return;
        const Inbox::Early early = mailbox_.take_early(turn, box_, found);
        if (early.head.kind == MessageKind::mismatch && mailbox_.knows(turn, early.head.came_with)) continue;
        if (is_trouble) on_trouble(turn, from, early.head, early.data);
        else bind(turn, box_.receives[index], from, early.head, early.data);
    }
}

/// `head` is what the receive is for. It may be gone afterwards.
void CollectiveCall::bind(const engine::Turn& turn, Receive& receive, Node source, const CollectiveHeader& head,
                          Bytes data) {
    search_.move(turn);
    receive.is_bound = true;
    receive.serial = head.serial;
    box_.heard.push_back({source, head.serial, false});
    heard_bytes_ = head.came_with;
    if (!check(turn, source, head) || !make_room(turn, receive, source, head))
        return mailbox_.drop(turn, box_, source, head);
    mailbox_.take(turn, source, head);
    if (head.kind == MessageKind::ready)
        mailbox_.post(turn, source, CollectiveHeader{.key = box_.key, .serial = head.serial, .kind = MessageKind::go});
    else feed(turn, receive, data);
}

/// Whether it is of the same call.
bool CollectiveCall::check(const engine::Turn& turn, Node source, const CollectiveHeader& head) {
    const auto fail_both = [&](auto&& text, std::uint64_t mismatch) {
        return fail(turn, ErrorCode::misuse, text("this node"), text(dispatcher_.name_of(dispatcher_.node())),
                    mismatch),
               false;
    };
    if (!shape_.has_same_name(head)) {
        const auto call = [](std::uint8_t collective, Node root) {
            return fmt::format("{} with root {}", name_of(static_cast<Collective>(collective)), root);
        };
        const auto text = [&](std::string_view self) {
            return fmt::format("{} has called {}, {} {}", dispatcher_.name_of(source), call(head.collective, head.root),
                               self, call(static_cast<std::uint8_t>(shape_.collective), shape_.root));
        };
        return fail_both(text, std::uint64_t{dispatcher_.node()} << 32 | serial_);
    }
    if (!shape_.has_same_size(head))
        return fail_both(
            [&](std::string_view self) {
                return fmt::format("{} came with {} bytes, {} with {}", dispatcher_.name_of(source), head.came_with,
                                   self, shape_.bytes);
            },
            0);
    return true;
}

bool CollectiveCall::make_room(const engine::Turn& turn, Receive& receive, Node source, const CollectiveHeader& head) {
    const bool has_size = receive.content == nullptr || receive.combine != nullptr;
    if (head.step != receive.step || (has_size && head.bytes != receive.bytes))
        return fail(turn, ErrorCode::misuse,
                    fmt::format("{} is at another step: the members' calls are not in the same order",
                                dispatcher_.name_of(source))),
               false;
    if (receive.may_fit && head.bytes == receive.bytes) receive.content = nullptr;
    if (receive.content == nullptr) return true;
    try {
        receive.content->resize(head.bytes);
    } catch (const std::exception& failure) {
        return fail(turn, ErrorCode::no_memory,
                    fmt::format("no memory for {} of {}: {}", base::readable_bytes(head.bytes),
                                dispatcher_.name_of(source), failure.what())),
               false;
    }
    receive.bytes = head.bytes;
    return true;
}

void CollectiveCall::feed(const engine::Turn& turn, Receive& receive, Bytes data) {
    const bool is_cut_wrong =
        receive.combine != nullptr && receive.content == nullptr && data.size() % shape_.bytes_each != 0;
    if (data.size() > receive.bytes - receive.arrived || is_cut_wrong)
        return fail(turn, ErrorCode::misuse,
                    fmt::format("{} has sent what makes no sense", dispatcher_.name_of(receive.from)));
    const bool is_last = receive.arrived + data.size() == receive.bytes;
    if (receive.content != nullptr) copy_bytes(receive.content->data() + receive.arrived, data);
    if (receive.combine == nullptr) {
        if (receive.content == nullptr) copy_bytes(receive.target + receive.arrived, data);
    } else if (receive.content == nullptr) {
        if (!apply(turn, *receive.combine, receive.target + receive.arrived, receive.mine + receive.arrived, data,
                   receive.is_first))
            return;
    } else if (is_last) {
        if (!apply(turn, *receive.combine, receive.target, receive.mine, *receive.content, receive.is_first)) return;
    }
    receive.arrived += data.size();
    if (!is_last) return;
    receive.is_done = true;
    --open_;
}

bool CollectiveCall::apply(const engine::Turn& turn, const Combine& combine, std::byte* into, const std::byte* mine,
                           Bytes data, bool is_first) {
    try {
        if (!data.empty()) combine(into, mine, data.data(), data.size(), is_first);
        return true;
    } catch (...) {
        on_operation_threw(turn);
    }
    return false;
}

/// Called while an exception is handled.
void CollectiveCall::on_operation_threw(const engine::Turn& turn) {
    const std::string here = dispatcher_.name_of(dispatcher_.node());
    try {
        throw;
    } catch (const std::exception& thrown) {
        fail(turn, ErrorCode::refused, fmt::format("the operation threw on {}: {}", here, thrown.what()));
    } catch (...) {
        fail(turn, ErrorCode::refused, fmt::format("the operation threw on {}", here));
    }
}

void CollectiveCall::combine_here(MutableBytes into, Bytes other, const Combine& combine, bool other_is_first) {
    const auto turn = dispatcher_.take_turn();
    if (failure_.has_failed()) return;
    (void)apply(turn, combine, into.data(), into.data(), other, other_is_first);
}

bool CollectiveCall::run(base::FunctionRef<Result<void>()> code) {
    const auto turn = dispatcher_.take_turn();
    if (failure_.has_failed()) return false;
    try {
        const Result<void> done = code();
        if (!done) fail(turn, done.error().code(), done.error().text());
        return done.has_value();
    } catch (...) {
        on_operation_threw(turn);
    }
    return false;
}

void CollectiveCall::copy(MutableBytes to, Bytes from) const noexcept {
    if (is_late_ || to.data() == from.data() || from.empty()) return;
    std::memmove(to.data(), from.data(), from.size());
}

void CollectiveCall::copy(std::vector<std::byte>& to, Bytes from) const {
    to.resize(from.size());
    copy(MutableBytes(to), from);
}

// ---- waiting

bool CollectiveCall::Waiting::await_ready() {
    if (!call_.is_started_) {
        call_.has_failed_ = !call_.wait_here(for_sends_);
        return true;
    }
    const auto turn = call_.dispatcher_.take_turn();
    return call_.is_done(turn, for_sends_);
}

bool CollectiveCall::Waiting::await_resume() noexcept {
    if (call_.is_started_) call_.has_failed_ = call_.failure_.has_failed(); // steps are resumed with the turn
    return !call_.has_failed_;
}

bool CollectiveCall::wait_here(bool for_sends) {
    bool has_all = false; // looked at with the turn: what comes later may make the call fail meanwhile
    const auto is_over = [&](const engine::Turn& turn) {
        return has_all || (is_done(turn, for_sends) && ((has_all = !failure_.has_failed()), true));
    };
    const bool in_time = dispatcher_.loop().serve_until(is_over, deadline_);
    if (has_all) return true;
    const auto turn = dispatcher_.take_turn();
    if (!in_time) on_late(turn);
    return false;
}

void CollectiveCall::on_late(const engine::Turn& turn) {
    if (failure_.has_failed() || (open_ == 0 && box_.sendings.empty())) return;
    const auto late = std::ranges::find(box_.receives, false, &Receive::is_done);
    const Node who = late != box_.receives.end() ? late->from : box_.sendings.front().to;
    const std::string why = fmt::format("{} has not come within the time given", dispatcher_.name_of(who));
    fail(turn, ErrorCode::timed_out, why,
         fmt::format("{} has given up: {}", dispatcher_.name_of(dispatcher_.node()), why));
}

bool CollectiveCall::go_on(const engine::Turn& turn) {
    if (!is_done(turn, waits_for_sends_)) return false;
    std::exchange(suspended_, nullptr).resume();
    return true;
}

bool CollectiveCall::is_done(const engine::Turn& turn, bool for_sends) {
    if (failure_.has_failed()) return true;
    if (!box_.sendings.empty()) advance_all(turn);
    if (open_ == 0 && (!for_sends || box_.sendings.empty())) {
        box_.receives.clear();
        return true;
    }
    if (find_gone(turn)) return true;
    check_silent_peers(turn);
    return failure_.has_failed(); // a mismatch may have been found
}

/// Asks members that the call has waited for long. The network learns by that whether they are still there, and members
/// that wait for each other in different calls find out.
void CollectiveCall::check_silent_peers(const engine::Turn& turn) {
    if (looks_.value_or(dispatcher_.peers().looks()) != dispatcher_.peers().looks() && !find_mismatch(turn))
        search_.ask(turn, head_of(MessageKind::ask, 0, 0));
    looks_ = dispatcher_.peers().looks();
}

void CollectiveCall::on_waiting(const engine::Turn& turn, Node source, const CollectiveHeader& head) {
    const auto other = search_.on_message(turn, source, head, shape_, head_of(MessageKind::ask, 0, 0));
    if (other) (void)check(turn, other->first, other->second);
}

bool CollectiveCall::find_gone(const engine::Turn& turn) {
    const auto check = [&](Node node) {
        if (!dispatcher_.peers().is_gone(node)) return false;
        return fail(turn, ErrorCode::node_lost, fmt::format("{} has left, or is lost", dispatcher_.name_of(node))),
               true;
    };
    for (const Receive& receive : box_.receives)
        if (!receive.is_done && check(receive.from)) return true;
    for (const Sending& sending : box_.sendings)
        if (check(sending.to)) return true;
    return false;
}

/// Fails the call if a member that it waits for has told of a mismatch, before the call began to wait for that member.
bool CollectiveCall::find_mismatch(const engine::Turn& turn) {
    const auto found = std::ranges::find_if(box_.early, [&](const Inbox::Early& early) {
        return early.head.kind == MessageKind::mismatch && !mailbox_.knows(turn, early.head.came_with) &&
               box_.is_waiting_for(early.source);
    });
    if (found == box_.early.end()) return false;
    const Inbox::Early early = mailbox_.take_early(turn, box_, found);
    return on_trouble(turn, early.source, early.head, early.data), true;
}

Result<void> CollectiveCall::outcome() {
    if (refused_) return *refused_;
    if (!has_failed_) return {};
    const auto turn = dispatcher_.take_turn();
    return refusal(seat_, shape_.collective, failure_.code(turn), failure_.why(turn));
}

// ---- failing

void CollectiveCall::refuse(const std::string& why) {
    if (!has_begun_) return;
    const auto turn = dispatcher_.take_turn();
    const std::string told = fmt::format("{}: {}", dispatcher_.name_of(dispatcher_.node()), why);
    fail(turn, ErrorCode::misuse, why, told);
}

void CollectiveCall::give_up(ErrorCode code, const std::string& why) {
    const auto turn = dispatcher_.take_turn();
    has_failed_ = true;
    if (!failure_.has_failed()) failure_.refuse(code, why);
}

void CollectiveCall::on_thrown(const std::exception_ptr& thrown) {
    const auto turn = dispatcher_.take_turn();
    has_failed_ = true;
    std::string why = fmt::format("{} has no memory for the call", dispatcher_.name_of(dispatcher_.node()));
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& failure) {
        why += fmt::format(": {}", failure.what());
    }
    // The steps that would tell the members that wait are not made. So all members are told, as of a mismatch.
    const std::uint64_t mismatch = std::uint64_t{dispatcher_.node()} << 32 | serial_;
    if (!failure_.has_failed()) return fail(turn, ErrorCode::no_memory, why, {}, mismatch);
    failure_.begin(turn, ErrorCode::no_memory, why, why, mismatch);
    failure_.tell_all(turn, head_of(MessageKind::trouble, 0, 0));
}

void CollectiveCall::on_trouble(const engine::Turn& turn, Node source, const CollectiveHeader& head, Bytes text) {
    box_.heard.push_back({source, head.serial, head.kind == MessageKind::trouble});
    const std::string why(kumi::text_of(text.first(std::min(text.size(), CallFailure::text_bytes_max))));
    fail(turn, error_code_of(head.step), why, why, head.came_with);
}

void CollectiveCall::fail(const engine::Turn& turn, ErrorCode code, const std::string& why, const std::string& told,
                          std::uint64_t mismatch) {
    if (failure_.has_failed()) return;
    failure_.begin(turn, code, why, told.empty() ? why : told, mismatch);
    search_.move(turn);
    const CollectiveHeader own = head_of(MessageKind::trouble, 0, 0);
    for (const Sending& sending : box_.sendings) failure_.tell(turn, sending.to, own);
    for (const Receive& receive : box_.receives)
        if (!receive.is_done) failure_.skip(turn, receive.from);
    box_.sendings.clear();
    box_.receives.clear();
    open_ = 0;
    failure_.tell_all(turn, own);
}

} // namespace kumi::group
