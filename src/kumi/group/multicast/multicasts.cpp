#include "kumi/group/multicast/multicasts.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/progress/borrowed_time.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <utility>

namespace kumi::group {
namespace {

/// For a thread that waits: notices that no multicast has ended for long. Time in which the thread did not look does
/// not count: the thread may have been stopped, or have run another function.
class Standstill {
public:
    /// To be called at each look, with the number of multicasts that have ended.
    bool is_over(std::uint64_t ended, Duration longest) noexcept {
        const Instant time = now();
        const Duration away_min = std::max<Duration>(longest / 2, std::chrono::seconds(2));
        if (ended != ended_ || time - looked_ > away_min) since_ = time;
        ended_ = ended;
        looked_ = time;
        return time - since_ >= longest;
    }

private:
    std::uint64_t ended_ = 0;
    Instant since_{};  // the last multicast ended, or the thread looked again
    Instant looked_{}; // for the first time: long ago
};

} // namespace

Multicasts::Multicasts(engine::Dispatcher& dispatcher, Topology topology, const Settings& settings, const Costs& usual)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)), topology_(std::move(topology)),
      queue_(dispatcher, port_), relays_(dispatcher, port_, topology_, queue_), deliveries_(dispatcher.node()),
      streams_(dispatcher, port_, topology_, queue_, relays_, deliveries_),
      probe_(dispatcher, port_, topology_, queue_, settings.costs, usual),
      held_(Groups::answers_bytes_max, dispatcher.message_bytes_max() / 2),
      fetches_(dispatcher, queue_, held_, Groups::answers_bytes_max),
      sender_(dispatcher, {topology_, queue_, relays_, streams_, probe_, fetches_}, settings.way) {}

std::size_t Multicasts::kept(const engine::Turn&) const {
    return relays_.size() + streams_.size() + deliveries_.size() + held_.size() + fetches_.size();
}

// ---- the program

void Multicasts::start(const Set& to, const Purpose& purpose, Bytes arguments, Bytes payload, Ended ended) {
    std::optional<Draft> waiting;
    const Pieces pieces(arguments, payload);
    if (pieces.size() <= drafted_in_turn_max) {
        const auto turn = dispatcher_.take_turn(); // once: the draft needs it, too
        waiting = start(turn, sender_.draft(to, purpose, pieces), ended);
    } else { // others go on while the content is copied
        auto draft = sender_.draft(to, purpose, pieces);
        waiting = start(dispatcher_.take_turn(), std::move(draft), ended);
    }
    if (waiting) wait_and_begin(*waiting, ended);
}

bool Multicasts::try_start(const engine::Turn& turn, const Set& to, const Purpose& purpose, const Pieces& content,
                           Ended& ended) {
    // Before the content is copied: what waits is tried again and again.
    if (!sender_.room_for(turn, to, content.size(), most_under_way(turn))) return false;
    auto draft = sender_.draft(to, purpose, content);
    if (!draft) return ended(draft.error()), true;
    return try_begin(turn, *draft, ended);
}

/// The draft, if it has to wait.
std::optional<Draft> Multicasts::start(const engine::Turn& turn, Result<Draft> draft, Ended& ended) {
    if (!draft) return ended(draft.error()), std::nullopt;
    const auto to = [&] { return draft->to.text(); };
    if (has_ended_) return ended(error(ErrorCode::ended, "multicast to {}: the job has ended", to())), std::nullopt;
    {
        const Busy busy(*this, turn);
        const bool was_ready = deliveries_.has_ready();
        const bool is_for_handler = draft->purpose.use == Use::handler;
        if (try_begin(turn, *draft, ended)) {
            // What is for this node too, if that is no code of the program: this thread may hold a mutex that a handler
            // takes, or the continuation of an earlier multicast.
            if (!is_for_handler && !was_ready && !turn.is_inner()) run_ready(turn);
            return {};
        }
    }
    if (!turn.is_inner() || turn.is_borrowed()) return *std::move(draft);
    ended(error(ErrorCode::misuse, "multicast to {} from a handler: {} are under way, and a handler must not wait",
                to(), sender_.under_way()));
    return {};
}

void Multicasts::wait_and_begin(Draft& draft, Ended& ended) {
    const Duration longest = dispatcher_.loop().stuck_after();
    bool has_begun = false;
    std::string_view stuck; // why waiting is of no use
    engine::BorrowedTime borrowed;
    Standstill standstill;
    const auto is_over = [&](const engine::Turn& turn) {
        if (has_begun || has_ended_) return true;
        if (try_begin(turn, draft, ended)) return has_begun = true;
        const bool is_standing = standstill.is_over(sender_.ended(), longest);
        if (borrowed.is_over(turn, longest)) stuck = engine::BorrowedTime::advice;
        else if (is_standing && sender_.under_way() >= most_under_way(turn) && dispatcher_.calls().is_in_function(turn))
            stuck = "none of them ends while this function waits: do they wait for functions such as this one?";
        return !stuck.empty();
    };
    dispatcher_.loop().wait_for_room(is_over, [&] {
        return fmt::format("multicast to {}: {} are under way, which must end first", draft.to.text(),
                           sender_.under_way());
    });
    if (has_begun) return;
    if (stuck.empty()) return ended(error(ErrorCode::ended, "multicast to {}: the job has ended", draft.to.text()));
    ended(error(ErrorCode::misuse, "multicast to {}: too many are under way, and {}", draft.to.text(), stuck));
}

std::size_t Multicasts::most_under_way(const engine::Turn& turn) const noexcept {
    const bool is_in_handler = turn.is_inner() && !turn.is_borrowed();
    return is_in_handler || dispatcher_.calls().is_in_function(turn) ? Groups::under_way_max
                                                                     : Groups::under_way_max / 2;
}

/// Sends what can be sent at once; this node's own part is ready to be run. False: too much is under way.
bool Multicasts::try_begin(const engine::Turn& turn, Draft& draft, Ended& ended) {
    const auto before = sender_.room_for(turn, draft, most_under_way(turn));
    if (!before) return false;
    const Busy busy(*this, turn);
    is_called_ = false; // the background does not know of what this adds
    Relay& relay = sender_.begin(turn, draft, *before, std::move(ended));
    if (draft.is_member) deliver(turn, relay, draft.to, *before, std::move(draft.content));
    else relays_.close_one(turn, relay);
    end_complete(turn);
    if (draft.is_member && draft.purpose.use == Use::take) dispatcher_.progress().wake(); // threads that wait in next()
    return true;
}

Result<Arrival> Multicasts::next(Instant deadline) {
    if (dispatcher_.progress().in_handler())
        return error(ErrorCode::misuse, "waiting for a multicast: a handler must not wait");
    std::optional<Arrival> taken;
    Content content;
    const auto take_one = [&] {
        if (taken) return true;
        const Delivery* const delivery = deliveries_.next_arrival();
        if (delivery == nullptr) return false;
        content = delivery->content;
        taken = Arrival{delivery->name.master, delivery->purpose.tag, {}, delivery->members, delivery->name.sequence};
        return true;
    };
    if (!dispatcher_.progress().wait_until(take_one, deadline, "waiting for a multicast: none has come"))
        return error(ErrorCode::timed_out, "no multicast came within the time given");
    // Others may go on meanwhile; the content stays until the delivery ends.
    const Name name{taken->master, taken->sequence};
    bool has_memory = true;
    try {
        taken->content.assign(content.bytes.begin(), content.bytes.end());
    } catch (const std::bad_alloc&) {
        has_memory = false;
    }
    const auto turn = dispatcher_.take_turn();
    const Busy busy(*this, turn);
    if (!has_memory) {
        deliveries_.put_back(name);
        return error(ErrorCode::no_memory, "taking a multicast of {}: no memory for {}",
                     dispatcher_.name_of(name.master), base::readable_bytes(content.bytes.size()));
    }
    end_delivery_soon(turn, name, std::vector<std::byte>());
    return *std::move(taken);
}

// ---- what comes

engine::Handled Multicasts::on_message(const engine::Turn& turn, Node source, std::uint16_t wire_kind, Bytes bytes) {
    if (wire_kind != only_kind) return engine::Handled::no;
    const Busy busy(*this, turn);
    std::uint32_t kind = ~0u;
    (void)read_value(bytes, kind);
    bool is_sound = false;
    switch (static_cast<Kind>(kind)) {
    case Kind::cast: is_sound = on_cast(turn, source, bytes, false); break;
    case Kind::placed: is_sound = on_cast(turn, source, bytes, true); break;
    case Kind::block: is_sound = on_block(turn, source, bytes); break;
    case Kind::answer: is_sound = on_answer(turn, source, bytes); break;
    case Kind::probe: is_sound = probe_.on_probe(turn, source, bytes); break;
    case Kind::probed: is_sound = probe_.on_probed(turn, source, bytes); break;
    case Kind::over: is_sound = on_over(turn, source, bytes); break;
    case Kind::fetch: is_sound = on_fetch(turn, source, bytes); break;
    case Kind::fetched: is_sound = fetches_.on_fetched(turn, source, bytes); break;
    }
    if (!is_sound) dispatcher_.note_unsound(source);
    end_complete(turn);
    run_ready(turn);
    return engine::Handled::yes;
}

bool Multicasts::on_cast(const engine::Turn& turn, Node source, Bytes bytes, bool is_placed) {
    Cast head;
    if (!take(bytes, head) || head.lead_bytes > bytes.size() || head.name.master >= dispatcher_.nodes() ||
        head.name.master == dispatcher_.node())
        return false;
    if (!deliveries_.has_room(head.name.master) || !relays_.is_possible(turn, head.name.master, head.purpose))
        return false;
    const Bytes lead_bytes = bytes.first(head.lead_bytes);
    bytes = bytes.subspan(head.lead_bytes);
    Content content{bytes, nullptr};
    Place place{};
    if (is_placed) {
        const std::byte* const begin =
            take(bytes, place) ? dispatcher_.segments().mapped({head.name.master, 0, place.offset}, place.bytes)
                               : nullptr;
        if (begin == nullptr) return false;
        content.bytes = {begin, place.bytes};
    }
    std::optional<Lead> lead;
    if (lead_bytes.empty()) { // for this node alone
        if (head.purpose.use == Use::take) return false;
        if (try_run_at_once(turn, source, head, content.bytes)) return true;
        lead.emplace();
        lead->set.add(dispatcher_.node());
    } else {
        lead = read_lead(lead_bytes, dispatcher_.nodes());
        if (!lead || !lead->set.contains(dispatcher_.node())) return false;
    }
    Relay& relay = relays_.add(turn, head.name, head.purpose);
    if (is_placed) relay.place = place;
    relay.parent = source;
    relay.parents = head.relay;
    relay.pace = {head.gap, 1};
    relay.open = 1; // until this node has had it
    relay.members = std::move(lead->members);
    auto children = children_of(lead->set, dispatcher_.node(), topology_, relay.pace);
    if (children.empty()) return deliver(turn, relay, relay.members, lead->before, std::move(content)), true;
    if (!is_placed) content = Content::copy_of(bytes);
    relay.content = content;
    relay.before = std::move(lead->before);
    for (Child& child : children) relays_.add_child(turn, relay, std::move(child));
    deliver(turn, relay, relay.members, relay.before, std::move(content));
    return true;
}

/// Runs the handler of a Cast for this node alone, and answers it, without a relay. False: the Cast needs one.
bool Multicasts::try_run_at_once(const engine::Turn& turn, Node source, const Cast& head, Bytes content) {
    if (is_running_ || !deliveries_.try_run_now(head.name, head.purpose)) return false;
    const OwnAnswer own = own_answer(head.name, head.purpose, run_handler(turn, head.name, head.purpose, content));
    deliveries_.release_after(head.name);
    relays_.answer_for_self(turn, source, head, own);
    return true;
}

bool Multicasts::on_block(const engine::Turn& turn, Node source, Bytes bytes) {
    Block head;
    if (!take(bytes, head) || head.name.master >= dispatcher_.nodes() || head.lead_bytes > bytes.size()) return false;
    // One of this node's own multicasts that is over: the members that have to know were told.
    if (head.name.master == dispatcher_.node() && streams_.find(head.name) == nullptr)
        return sender_.has_begun(head.name.sequence);
    switch (streams_.on_block(turn, source, head, bytes.first(head.lead_bytes), bytes.subspan(head.lead_bytes))) {
    case Streams::BlockTaken::unsound: return false;
    case Streams::BlockTaken::sound: return true;
    case Streams::BlockTaken::complete: break;
    }
    const Stream& stream = *streams_.find(head.name);
    deliver(turn, *relays_.find(*stream.relay), stream.shape.set, stream.shape.before,
            {*stream.content, stream.content});
    return true;
}

bool Multicasts::on_answer(const engine::Turn& turn, Node source, Bytes bytes) {
    const auto answer = read_answer(bytes, dispatcher_.nodes());
    if (!answer) return false;
    const Answer& head = answer->head;
    if (head.relay.index == no_relay.index) return streams_.on_answer(turn, source, *answer, bytes), true;
    Relay* const relay = relays_.find(head.relay);
    if (relay == nullptr || relay->name != head.name) return true; // over, or taken over by others
    (void)(relay->is_in_blocks ? streams_.take_answer(turn, *relay, source, *answer)
                               : relays_.take_answer(turn, *relay, source, *answer));
    return true;
}

bool Multicasts::on_over(const engine::Turn& turn, Node source, Bytes bytes) {
    Over head;
    if (!take(bytes, head) || head.name.master >= dispatcher_.nodes() || head.name.master == dispatcher_.node())
        return false;
    if (source == head.name.master) {
        streams_.give_up(turn, head.name, head.before);
        held_.drop(head.name); // the master has not heard of it
    } else streams_.note_out(turn, head.name, source);
    return true;
}

bool Multicasts::on_fetch(const engine::Turn& turn, Node source, Bytes bytes) {
    Fetch head;
    if (!take(bytes, head) || head.name.master != source) return false;
    if (head.is_unwanted != 0) return held_.drop(head.name), true;
    switch (held_.ask(head.name, head.offset)) {
    case HeldAnswers::Asked::unsound: return false;
    case HeldAnswers::Asked::gone:
        queue_.send(turn, source, message_of(Fetched{Kind::fetched, 1, head.name, head.offset}));
        break;
    case HeldAnswers::Asked::sound: (void)send_parts(turn); break;
    }
    return true;
}

/// Sends the parts of answers that masters have asked for, where there is room.
bool Multicasts::send_parts(const engine::Turn&) {
    return held_.send([&](const Name& name, std::uint64_t offset, Bytes part) {
        auto message = message_of(Fetched{Kind::fetched, 0, name, offset});
        return port_.try_send(name.master, only_kind, message, part);
    });
}

// ---- what this node has itself

/// This node's part of a relay, which is held open for it.
void Multicasts::deliver(const engine::Turn& turn, Relay& relay, const Set& members, const std::vector<Before>& before,
                         Content content) {
    const Name name = relay.name;
    const Purpose purpose = relay.purpose;
    const RelayId id = relay.id;
    const auto admission = deliveries_.admit({.name = name,
                                              .purpose = purpose,
                                              .relay = id,
                                              .members = members,
                                              .before = before,
                                              .is_lasting = content.memory || relay.place,
                                              // not while another handler runs, nor in the call that sends it
                                              .may_run_now = !is_running_ && !relay.is_masters},
                                             content);
    if (admission.next == Deliveries::Next::waits) return;
    OwnAnswer own;
    if (admission.next == Deliveries::Next::run_now) {
        own = own_answer(name, purpose, run_handler(turn, name, purpose, content.bytes));
        deliveries_.release_after(name);
    } else {
        if (admission.value != nullptr) own.value = *admission.value;
        own.is_missing = admission.is_missing;
    }
    relays_.end_own(turn, {&id, 1}, own);
}

void Multicasts::run_ready(const engine::Turn& turn) {
    while (!is_running_) {
        const Delivery* const next = deliveries_.next_ready();
        if (next == nullptr) return;
        const Name name = next->name;
        const Purpose purpose = next->purpose;
        if (next->is_given_up) { // its place in the order is reached
            const Delivery* const ended = deliveries_.end(name);
            relays_.end_own(turn, ended->relays, {.is_missing = true});
            end_complete(turn);
        } else if (purpose.use == Use::handler || purpose.use == Use::store) {
            end_delivery(turn, name, run_handler(turn, name, purpose, next->content.bytes));
        } else {
            dispatcher_.calls().run_later(turn, purpose.number, next->content.bytes,
                                    [this, name](Result<std::vector<std::byte>> value) {
                                        const auto later = dispatcher_.take_turn();
                                        const Busy busy(*this, later);
                                        end_delivery_soon(later, name, std::move(value));
                                    });
        }
    }
}

Result<std::vector<std::byte>> Multicasts::run_handler(const engine::Turn& turn, const Name& name,
                                                       const Purpose& purpose, Bytes content) {
    if (purpose.use == Use::store) {
        if (auto stored = store(turn, purpose.number, content); !stored) return stored.error();
        return std::vector<std::byte>();
    }
    is_running_ = true;
    const auto trouble = dispatcher_.messages().run_here(turn, purpose.number, name.master, content);
    is_running_ = false;
    if (trouble) return Error(ErrorCode::refused, *trouble);
    return std::vector<std::byte>();
}

Result<void> Multicasts::store(const engine::Turn& turn, std::uint32_t places, Bytes content) {
    if (discards_stores_.load(std::memory_order_relaxed)) return {}; // no partner: a setting, and no data depends on it
    StoreHead head;
    bool is_said = take(content, head) && places <= content.size() / sizeof(StorePlace);
    if (is_said && places != 0) {
        is_said = false;
        for (StorePlace place; places != 0 && take(content, place); --places) {
            if (place.node != dispatcher_.node()) continue;
            head.to = {place.segment, 0, place.offset};
            is_said = true;
        }
    }
    if (!is_said) return error(ErrorCode::misuse, "a multicast into memory does not say where it goes");
    return dispatcher_.memory().store(turn, head.to, content, head.notice);
}

/// This node has had it.
void Multicasts::end_delivery(const engine::Turn& turn, const Name& name, Result<std::vector<std::byte>> value) {
    const Delivery* const ended = deliveries_.end(name);
    if (ended == nullptr) return; // the engine has ended
    // If it came more than once, the parents of the earlier relays are lost.
    relays_.end_own(turn, ended->relays, own_answer(name, ended->purpose, std::move(value)));
    end_complete(turn);
}

/// The same for a thread that may have borrowed the turn. Such a thread must not run code of the program: while a
/// continuation waits for a mutex, the thread that holds the mutex could not borrow the turn.
void Multicasts::end_delivery_soon(const engine::Turn& turn, const Name& name, Result<std::vector<std::byte>> value) {
    if (!turn.is_inner()) return end_delivery(turn, name, std::move(value));
    had_.emplace_back(name, std::move(value));
}

/// What this node answers about a multicast that it has had, as it travels to the master.
OwnAnswer Multicasts::own_answer(const Name& name, const Purpose& purpose, Result<std::vector<std::byte>> value) {
    OwnAnswer own;
    const auto note_trouble = [&](ErrorCode code, std::string_view why) {
        own.code = code;
        own.trouble = fmt::format("{}: {}", dispatcher_.name_of(dispatcher_.node()), why)
                          .substr(0, Relays::trouble_bytes_max);
    };
    if (!value) {
        note_trouble(value.error().code(), value.error().text());
    } else if (purpose.use == Use::gather) {
        const std::size_t size = value->size();
        const bool is_held = size > purpose.tag;
        if (is_held && !held_.add(name, *std::move(value))) {
            note_trouble(ErrorCode::too_large,
                         fmt::format("an answer of {} is too large beside the others that wait to be fetched: they may "
                                     "take {}",
                                     base::readable_bytes(size), base::readable_bytes(Groups::answers_bytes_max)));
            return own;
        }
        std::vector<std::byte>& bytes = own.value.emplace();
        append(bytes, bytes_of(ValueHead{dispatcher_.node(),
                                         static_cast<std::uint32_t>(size) | (is_held ? held_flag : 0)}));
        if (!is_held) append(bytes, *value);
        deliveries_.keep_value(name, bytes);
    } else if (purpose.use == Use::reduce) {
        own.value = *std::move(value);
        deliveries_.keep_value(name, *own.value);
    }
    return own;
}

/// Ends relays that have become complete: answers their parents, or tells the program.
void Multicasts::end_complete(const engine::Turn& turn) {
    while (Relay* const relay = relays_.next_complete(turn)) {
        if (relay->is_in_blocks) streams_.end_relay(turn, *relay);
        else if (!relay->is_masters) relays_.answer_parent(turn, *relay);
        auto ended = relays_.remove(turn, *relay);
        if (ended->is_masters) sender_.end(turn, *ended);
        relays_.give_back(turn, std::move(ended));
    }
}

// ---- going on

bool Multicasts::go_on(const engine::Turn& turn) noexcept {
    const Busy busy(*this, turn);
    bool any = deliveries_.has_ready() || !had_.empty();
    while (!had_.empty()) {
        auto [name, value] = std::move(had_.front());
        had_.pop_front();
        end_delivery(turn, name, std::move(value));
    }
    run_ready(turn);
    any |= relays_.go_on(turn);
    any |= streams_.go_on(turn);
    if (held_.has_asked()) any |= send_parts(turn);
    return any;
}

void Multicasts::on_lost(const engine::Turn& turn, Node node) noexcept {
    const Busy busy(*this, turn);
    queue_.drop(turn, node);
    relays_.on_lost(turn, node);
    end_complete(turn);
    streams_.on_lost(turn, node);
    end_complete(turn);
    held_.drop_all_of(node);
    fetches_.on_lost(turn, node);
    if (go_on(turn)) dispatcher_.progress().wake(); // the thread that noticed the loss is about to sleep
}

void Multicasts::check_silent_peers(const engine::Turn& turn) noexcept {
    const Busy busy(*this, turn);
    Set awaited;
    relays_.for_each(turn, [&](const Relay& relay) {
        for (const RelayChild& child : relay.children) {
            if (child.has_answered) continue;
            if (relay.is_in_blocks) streams_.ask_for_answer(turn, relay.name, child.to);
            else awaited.add(child.to);
        }
    });
    streams_.ask_for_blocks(turn, awaited);
    deliveries_.add_awaited(awaited);
    fetches_.add_awaited(turn, awaited);
    for (const Node master : deliveries_.look_for_quiet([&](Node node) { return dispatcher_.peers().is_gone(node); }))
        streams_.give_up_rest_of(turn, master);
    for (const Node node : awaited) dispatcher_.send_keepalive(node);
    (void)go_on(turn); // the thread that looks is about to sleep
}

bool Multicasts::is_done(const engine::Turn& turn) const noexcept {
    return streams_.is_done(turn) && relays_.is_done(turn) && held_.size() == 0;
}

void Multicasts::on_end(const engine::Turn& turn) noexcept {
    has_ended_ = true;
    const auto relays = relays_.take_all(turn); // with the callbacks, at the end of this
    const auto fetches = fetches_.take_all(turn);
    streams_.clear(turn);
    queue_.clear(turn);
    deliveries_.drop_ready();
    had_.clear();
}

/// Lets go of what is over, and has the rest gone on with.
void Multicasts::settle(const engine::Turn& turn) noexcept {
    streams_.forget_ended(turn);
    // What waits for blocks goes on when they come; what was refused, when there is room.
    const bool has_more = !queue_.empty() || streams_.is_refused(turn) || held_.has_asked();
    const bool has_ready = deliveries_.has_ready() || !had_.empty();
    port_.want_progress(turn, has_more || has_ready);
    // The background is called once. What is ready waits for no message, so nothing else would wake a thread for it.
    const bool is_called = std::exchange(is_called_, has_more);
    if (has_more && !is_called) dispatcher_.loop().call(turn);
    // In most cases this thread waits next, and does it: a background that only naps is left alone.
    else if (has_ready) dispatcher_.loop().call_soon(turn);
}

} // namespace kumi::group
