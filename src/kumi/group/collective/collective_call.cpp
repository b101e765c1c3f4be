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
    constexpr std::array<std::string_view, 22> names{"barrier",
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
                                                     "alltoall of objects",
                                                     "sendrecv"};
    return static_cast<std::size_t>(collective) < names.size() ? names[static_cast<std::size_t>(collective)]
                                                               : "something else";
}

std::string describe_call(std::uint8_t number, std::uint32_t root) {
    const auto collective = static_cast<Collective>(number);
    if (!has_root(collective) && root == 0) return std::string(name_of(collective));
    return fmt::format("{} with root {}", name_of(collective), root);
}

bool has_root(Collective collective) noexcept {
    switch (collective) {
    case Collective::barrier:
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::scan:
    case Collective::exclusive_scan:
    case Collective::allgatherv:
    case Collective::alltoallv:
    case Collective::allreduce_objects:
    case Collective::allgather_objects:
    case Collective::alltoall_objects:
    case Collective::sendrecv: return false;
    default: return true;
    }
}

Error refusal(const Membership& seat, Collective collective, ErrorCode code, std::string_view why) {
    return error(code, "{} among {}: {}", name_of(collective), seat.set.text(), why);
}

Result<void> check_rank(const Membership& seat, Collective collective, Node rank) {
    if (rank < seat.size()) return {};
    return refusal(seat, collective, ErrorCode::not_found,
                   fmt::format("there is no rank {}, this set has ranks 0 to {}", rank, seat.size() - 1));
}

namespace {

/// Makes room for a message of `source`, if it is the one that is awaited.
Result<void> make_room(const engine::Dispatcher& dispatcher, Receive& receive, Node source,
                       const CollectiveHeader& head) {
    if (head.step != receive.step)
        return error(ErrorCode::misuse, "{} is at another step: the members' calls are not in the same order",
                     dispatcher.name_of(source));
    if (!receive.is_meant(head.step, head.bytes))
        return error(ErrorCode::misuse, "{} sends {} bytes, and the array here has {} bytes",
                     dispatcher.name_of(source), head.bytes, receive.bytes);
    try {
        receive.make_room(head.bytes);
        return {};
    } catch (const std::exception& failure) {
        return error(ErrorCode::no_memory, "no memory for {} of {}: {}", base::readable_bytes(head.bytes),
                     dispatcher.name_of(source), failure.what());
    }
}

/// What the operation of the program threw on this node. Called while the exception is handled.
Error error_of_operation(const engine::Dispatcher& dispatcher) {
    const Error thrown = error_of_thrown(ErrorCode::refused);
    return error(thrown.code(), "the operation threw on {}: {}", dispatcher.name_of(dispatcher.node()), thrown.text());
}

} // namespace

FrameStack& frames_of(CollectiveCall& call) noexcept { return call.seat().box.frames; }

CollectiveCall::CollectiveCall(const engine::Turn& turn, Membership& seat, const CallShape& shape, Instant deadline,
                               Form form)
    : seat_(seat), mailbox_(seat.mailbox), dispatcher_(seat.mailbox.dispatcher()), box_(seat.box), shape_(shape),
      deadline_(deadline), form_(form), serial_(mailbox_.next_serial(turn)), sender_(seat, shape.bytes_each),
      search_(seat), barrier_(seat, search_), failure_(seat) {
    box_.call = this;
    box_.heard.clear();
    if (form == Form::late)
        fail(turn, ErrorCode::timed_out, std::string(late_behind_others),
             fmt::format("{} has given up: {}", dispatcher_.name_of(dispatcher_.node()), late_behind_others));
}

CollectiveCall::~CollectiveCall() {
    const auto turn = dispatcher_.take_turn();
    barrier_.leave(turn);
    box_.call = nullptr;
    // A barrier has no messages that could be mistaken for those of another call.
    if (shape_.collective != Collective::barrier)
        box_.ended = {static_cast<std::uint8_t>(shape_.collective), shape_.root};
    box_.receives.clear();
    box_.sendings.clear();
}

CollectiveHeader CollectiveCall::own() const noexcept {
    return {.key = box_.key,
            .serial = serial_,
            .taken = 0,
            .bytes = 0,
            .came_with = shape_.bytes,
            .root = shape_.root,
            .step = 0,
            .collective = static_cast<std::uint8_t>(shape_.collective),
            .kind = MessageKind::first};
}

void CollectiveCall::set_bytes(std::uint64_t bytes) noexcept {
    const auto turn = dispatcher_.take_turn();
    shape_.bytes = bytes;
}

// ---- sending

bool CollectiveCall::send(Node rank, std::size_t step, Bytes data) {
    const auto turn = dispatcher_.take_turn();
    const Node to = seat_.members[rank];
    if (failure_.has_failed()) return failure_.tell(turn, to, own()), false;
    return sender_.send(turn, own(), to, static_cast<std::uint16_t>(step), data);
}

void CollectiveCall::on_cleared(const engine::Turn& turn, Node source, std::uint32_t serial, bool is_wanted) {
    if (serial == serial_ && sender_.on_cleared(turn, own(), source, is_wanted)) search_.move(turn);
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
    const bool is_cut = shape_.bytes_each > sender_.piece_bytes();
    std::vector<std::byte>* const content = is_cut ? &contents_.emplace_back() : nullptr;
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
        const Inbox::Early early = mailbox_.inboxes(turn).take(box_, found);
        const bool is_mismatch = early.head.kind == MessageKind::mismatch;
        if (is_mismatch && mailbox_.mismatches(turn).contains(early.head.came_with)) continue;
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
    bool is_good = check(turn, source, head);
    if (is_good)
        if (const auto made = make_room(dispatcher_, receive, source, head); !made) {
            fail(turn, made.error().code(), made.error().text());
            is_good = false;
        }
    if (!is_good) return mailbox_.drop(turn, box_, source, head);
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
        // The root of a broadcast does not wait: two members that are both root notice it in their next call.
        const bool is_wrong_root = box_.ended && box_.ended->collective == head.collective &&
                                   box_.ended->root != head.root &&
                                   shape_.collective != static_cast<Collective>(head.collective);
        const auto text = [&](std::string_view self) {
            const std::string before = is_wrong_root
                                           ? fmt::format("; the call of {} before was {}: one of the roots "
                                                         "is wrong, or one of the two has made a call more",
                                                         self, describe_call(box_.ended->collective, box_.ended->root))
                                           : "";
            return fmt::format("{} has called {}, {} {}{}", dispatcher_.name_of(source),
                               describe_call(head.collective, head.root), self,
                               describe_call(static_cast<std::uint8_t>(shape_.collective), shape_.root), before);
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

void CollectiveCall::feed(const engine::Turn& turn, Receive& receive, Bytes data) {
    if (!receive.fits(data, shape_.bytes_each))
        return fail(turn, ErrorCode::misuse,
                    fmt::format("{} has sent what makes no sense", dispatcher_.name_of(receive.from)));
    try {
        receive.take(data);
    } catch (...) {
        const Error thrown = error_of_operation(dispatcher_);
        return fail(turn, thrown.code(), thrown.text());
    }
    if (receive.is_done) --open_;
}

// Not inlined: clang 14 does not tell AddressSanitizer what a coroutine has on the stack.
[[gnu::noinline]] void CollectiveCall::combine_here(MutableBytes into, Bytes other, const Combine& combine,
                                                    bool other_is_first) {
    (void)run([&]() -> Result<void> {
        if (!other.empty()) combine(into.data(), into.data(), other.data(), other.size(), other_is_first);
        return {};
    });
}

bool CollectiveCall::run(base::FunctionRef<Result<void>()> code) {
    const auto turn = dispatcher_.take_turn();
    if (failure_.has_failed()) return false;
    try {
        const Result<void> done = code();
        if (!done) fail(turn, done.error().code(), done.error().text());
        return done.has_value();
    } catch (...) {
        const Error thrown = error_of_operation(dispatcher_);
        fail(turn, thrown.code(), thrown.text());
    }
    return false;
}

void CollectiveCall::copy(MutableBytes to, Bytes from) const noexcept {
    if (form_ == Form::late || to.data() == from.data() || from.empty()) return;
    std::memmove(to.data(), from.data(), from.size());
}

void CollectiveCall::copy(std::vector<std::byte>& to, Bytes from) const {
    to.resize(from.size());
    copy(MutableBytes(to), from);
}

void CollectiveCall::arrive() {
    const auto turn = dispatcher_.take_turn();
    if (auto arrived = barrier_.arrive(turn); !arrived)
        return fail(turn, arrived.error().code(), arrived.error().text());
    if (failure_.has_failed()) return barrier_.leave(turn); // the call was late before it began
    if (const auto told = search_.take_mismatch(turn)) on_trouble(turn, told->source, told->head, told->data);
}

// ---- waiting

bool CollectiveCall::Waiting::await_ready() {
    if (call_.form_ == Form::blocking) {
        call_.has_failed_ = !wait_here();
        return true;
    }
    const auto turn = call_.dispatcher_.take_turn();
    return call_.is_done(turn, for_sends_);
}

bool CollectiveCall::Waiting::await_resume() noexcept {
    // Steps that were suspended are resumed with the turn.
    if (call_.form_ != Form::blocking) call_.has_failed_ = call_.failure_.has_failed();
    return !call_.has_failed_;
}

/// The thread waits. False: the call has failed.
bool CollectiveCall::Waiting::wait_here() {
    bool has_all = false; // looked at with the turn: what comes later may make the call fail meanwhile
    const auto is_over = [&](const engine::Turn& turn) {
        return has_all || (call_.is_done(turn, for_sends_) && ((has_all = !call_.failure_.has_failed()), true));
    };
    const bool in_time =
        call_.dispatcher_.loop().serve_until(is_over, call_.deadline_, [&] { return call_.describe(); });
    if (has_all) return true;
    const auto turn = call_.dispatcher_.take_turn();
    // What was missing at the deadline may have come since, handled by another thread.
    if (!in_time && !is_over(turn)) call_.on_late(turn);
    return has_all;
}

void CollectiveCall::on_late(const engine::Turn& turn) {
    if (failure_.has_failed() || (open_ == 0 && box_.sendings.empty() && !barrier_.is_open(turn))) return;
    barrier_.look(turn);
    const auto late = awaited();
    const std::string why = late ? fmt::format("{} has not come within the time given", dispatcher_.name_of(*late))
                                 : "not all have come within the time given";
    fail(turn, ErrorCode::timed_out, why,
         fmt::format("{} has given up: {}", dispatcher_.name_of(dispatcher_.node()), why));
}

std::optional<Node> CollectiveCall::awaited() const {
    const auto late = std::ranges::find(box_.receives, false, &Receive::is_done);
    if (late != box_.receives.end()) return late->from;
    if (!box_.sendings.empty()) return box_.sendings.front().to;
    if (!box_.barrier_awaits.empty()) return box_.barrier_awaits.front();
    return {};
}

std::string CollectiveCall::describe() const {
    const auto who = awaited();
    const std::string why = who ? fmt::format("{} has not come", dispatcher_.name_of(*who)) : "not all have come";
    return refusal(seat_, shape_.collective, ErrorCode::timed_out, why).text();
}

bool CollectiveCall::go_on(const engine::Turn& turn) {
    if (!is_done(turn, waits_for_sends_)) return false;
    std::exchange(suspended_, nullptr).resume();
    return true;
}

bool CollectiveCall::is_done(const engine::Turn& turn, bool for_sends) {
    if (failure_.has_failed()) return true;
    if (!box_.sendings.empty()) sender_.go_on(turn, own());
    if (open_ == 0 && (!for_sends || box_.sendings.empty()) && !barrier_.is_open(turn)) {
        box_.receives.clear();
        return true;
    }
    if (const auto lost = barrier_.lost(turn))
        return fail(turn, ErrorCode::node_lost, fmt::format("{} has left, or is lost", dispatcher_.name_of(*lost))),
               true;
    if (const auto gone = box_.find_needed([&](Node node) { return dispatcher_.peers().is_gone(node); }))
        return fail(turn, ErrorCode::node_lost, fmt::format("{} has left, or is lost", dispatcher_.name_of(*gone))),
               true;
    if (search_.is_due(turn)) {
        barrier_.look(turn);
        if (const auto told = search_.take_mismatch(turn)) on_trouble(turn, told->source, told->head, told->data);
        else search_.ask(turn, own());
    }
    return failure_.has_failed(); // a mismatch may have been found
}

void CollectiveCall::on_waiting(const engine::Turn& turn, Node source, const CollectiveHeader& head) {
    barrier_.look(turn); // what that member did before is known by now
    const auto other = search_.on_message(turn, source, head, shape_, own());
    if (other) (void)check(turn, other->first, other->second);
}

Result<void> CollectiveCall::outcome() {
    if (!has_failed_) return {};
    const auto turn = dispatcher_.take_turn();
    return refusal(seat_, shape_.collective, failure_.code(turn), failure_.why(turn));
}

// ---- failing

void CollectiveCall::refuse(const std::string& why) {
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
    failure_.tell_all(turn, own(), barrier_.number(turn));
}

void CollectiveCall::on_trouble(const engine::Turn& turn, Node source, const CollectiveHeader& head, Bytes text) {
    box_.heard.push_back({source, head.serial, head.kind == MessageKind::trouble});
    const std::string why(kumi::text_of(text.first(std::min(text.size(), CallFailure::text_bytes_max))));
    fail(turn, error_code_of(head.step), why, why, head.came_with);
}

void CollectiveCall::fail(const engine::Turn& turn, ErrorCode code, const std::string& why, const std::string& told,
                          std::uint64_t mismatch) {
    if (failure_.has_failed()) return;
    mailbox_.note_failed(turn);
    failure_.begin(turn, code, why, told.empty() ? why : told, mismatch);
    search_.move(turn);
    const CollectiveHeader head = own();
    const std::uint32_t barrier = mismatch == 0 ? 0 : barrier_.number(turn);
    for (const Sending& sending : box_.sendings) failure_.tell(turn, sending.to, head);
    for (const Receive& receive : box_.receives)
        if (!receive.is_done) failure_.skip(turn, receive.from);
    box_.sendings.clear();
    box_.receives.clear();
    open_ = 0;
    barrier_.leave(turn);
    failure_.tell_all(turn, head, barrier);
}

} // namespace kumi::group
