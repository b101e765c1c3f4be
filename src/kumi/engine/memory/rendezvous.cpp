#include "kumi/engine/memory/rendezvous.hpp"

#include "kumi/base/sync/thread_number.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/memory/flags.hpp"
#include "kumi/engine/memory/memory_service.hpp"

#include <algorithm>
#include <set>

namespace kumi::engine {
namespace {

constexpr std::uint16_t want_kind = kind_in_service(Kind::want);
constexpr std::uint16_t withdraw_kind = kind_in_service(Kind::withdraw);
constexpr std::uint16_t withdrawn_kind = kind_in_service(Kind::withdrawn);

/// Resets a flag that a wait for `value` would find set already: the wait is for `value` or more, or for 0.
void clear(Flag* flag, Flag value) noexcept {
    if (flag == nullptr) return;
    if (value == 0) store_flag(*flag, 1);
    else if (load_flag(*flag) >= value) store_flag(*flag, 0);
}

} // namespace

Rendezvous::Rendezvous(Dispatcher& dispatcher, MemoryService& memory)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)), memory_(memory) {}

Result<OfferToken> Rendezvous::offer(std::uint64_t key, Node to, Bytes source, Flag* flag, Flag value) {
    if (auto known = dispatcher_.check_node("offering to", to); !known) return known.error();
    const Turn turn = dispatcher_.take_turn();
    if (dispatcher_.peers().is_gone(to))
        return error(ErrorCode::node_lost, "offer: {} has left, or is lost", dispatcher_.name_of(to));
    clear(flag, value);
    meet(turn, {key, to}, {source, flag, value, ++last_offer_, base::thread_number()});
    return OfferToken{key, to, last_offer_};
}

/// Gives an offer to the oldest accept that waits, or keeps it among the others, oldest first.
void Rendezvous::meet(const Turn& turn, const Meeting& meeting, const Offer& offer) {
    const auto wanted = wants_.find(meeting);
    if (wanted == wants_.end()) {
        auto& waiting = offers_[meeting];
        waiting.insert(std::ranges::lower_bound(waiting, offer.number, {}, &Offer::number), offer);
        return;
    }
    const Want want = wanted->second.front();
    wanted->second.pop_front();
    --wants_waiting_;
    if (wanted->second.empty()) wants_.erase(wanted);
    give(turn, meeting.second, want, offer);
}

Result<AcceptToken> Rendezvous::accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag, Flag value) {
    if (auto known = dispatcher_.check_node("accepting from", from); !known) return known.error();
    OperationId id;
    {
        const Turn turn = dispatcher_.take_turn();
        clear(flag, value);
        id = dispatcher_.operations().begin(turn, {.peer = from,
                                                   .what = "accept",
                                                   .target = target.data(),
                                                   .bytes = target.size(),
                                                   .flag = flag,
                                                   .flag_value = value,
                                                   .is_for_sync = false});
    }
    const Place landing{id.index | landing_bit, id.generation, 0};
    if (auto sent = port_.request(from, want_kind, Want{key, landing, target.size(), id}); !sent) {
        dispatcher_.operations().end(id);
        return sent.error();
    }
    return AcceptToken{key, from, id.index, id.generation};
}

// ---- withdrawing

Result<void> Rendezvous::cancel(const OfferToken& offered) {
    const Turn turn = dispatcher_.take_turn();
    if (const auto waiting = offers_.find({offered.key, offered.to}); waiting != offers_.end()) {
        const auto found = std::ranges::find(waiting->second, offered.number, &Offer::number);
        if (found != waiting->second.end()) {
            waiting->second.erase(found);
            if (waiting->second.empty()) offers_.erase(waiting);
            return {};
        }
    }
    const auto is_it = [&](const Transfer& transfer) {
        return transfer.offer != 0 && transfer.offer == offered.number;
    };
    if (const auto stopped = memory_.transfers().stop(turn, offered.to, is_it)) {
        dispatcher_.operations().refuse(
            turn, offered.to, stopped->want,
            error(ErrorCode::cancelled, "accept: the offer under key {} was withdrawn while it was sent", offered.key));
        return {};
    }
    return error(ErrorCode::not_found, "cancelling an offer under key {}: it was taken, has failed or was withdrawn",
                 offered.key);
}

/// The accept goes on until the other node answers: either data is complete before the answer, or none comes after it.
Result<void> Rendezvous::cancel(const AcceptToken& accepted, Instant deadline) {
    const OperationId id{accepted.index, accepted.generation};
    const Landing landing{accepted.from, id.index, id.generation};
    OperationService& operations = dispatcher_.operations();
    {
        const Turn turn = dispatcher_.take_turn();
        // In order with other requests: after the Want that this is about. If the node is lost, so is the accept.
        if (operations.find(turn, id) != nullptr && withdrawn_.insert(landing).second)
            (void)port_.queue(turn, accepted.from, withdraw_kind, Withdraw{accepted.key, id});
    }
    const auto is_over = [&](const Turn& turn) {
        return operations.find(turn, id) == nullptr || !withdrawn_.contains(landing);
    };
    if (!dispatcher_.progress().in_handler())
        dispatcher_.loop().serve_until(is_over, deadline, [&] {
            return fmt::format("cancelling an accept under key {}: no answer of {}", accepted.key,
                               dispatcher_.name_of(accepted.from));
        });
    const Turn turn = dispatcher_.take_turn();
    if (operations.find(turn, id) == nullptr)
        return error(ErrorCode::not_found,
                     "cancelling an accept under key {}: its data is there, or it has failed or was withdrawn",
                     accepted.key);
    operations.end(turn, id);
    if (!withdrawn_.contains(landing)) return {};
    return error(ErrorCode::timed_out,
                 "cancelling an accept under key {}: {} has not answered in time; nothing is written any more, but an "
                 "offer may be used up",
                 accepted.key, dispatcher_.name_of(accepted.from));
}

bool Rendezvous::is_withdrawn(const Turn&, Node source, const Place& place) const noexcept {
    return (place.segment & landing_bit) != 0 &&
           withdrawn_.contains({source, place.segment & ~landing_bit, place.generation});
}

/// An accept of another node is withdrawn, which may wait here, may be given data or may have been given all of it.
bool Rendezvous::on_withdraw(const Turn& turn, Node source, Bytes body) {
    Withdraw what;
    if (!read_value(body, what)) return false;
    const Meeting meeting{what.key, source};
    if (const auto waiting = wants_.find(meeting); waiting != wants_.end()) {
        const auto is_its = [&](const Want& want) { return want.operation == what.operation; };
        wants_waiting_ -= std::erase_if(waiting->second, is_its);
        if (waiting->second.empty()) wants_.erase(waiting);
    }
    const auto is_it = [&](const Transfer& transfer) {
        return transfer.offer != 0 && transfer.want == what.operation;
    };
    const auto stopped = memory_.transfers().stop(turn, source, is_it);
    port_.reply(turn, source, withdrawn_kind, what);
    if (stopped)
        meet(turn, meeting,
             {{stopped->source, stopped->bytes}, stopped->flag, stopped->flag_value, stopped->offer, stopped->thread});
    return true;
}

bool Rendezvous::on_withdrawn(Node source, Bytes body) {
    Withdraw what;
    return read_value(body, what) && withdrawn_.erase({source, what.operation.index, what.operation.generation}) != 0;
}

// ---- meeting

Handled Rendezvous::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    switch (kind) {
    case want_kind: return handled_if(on_want(turn, source, body));
    case withdraw_kind: return handled_if(on_withdraw(turn, source, body));
    case withdrawn_kind: return handled_if(on_withdrawn(source, body));
    default: return Handled::no;
    }
}

bool Rendezvous::on_want(const Turn& turn, Node source, Bytes body) {
    Want want;
    if (!read_value(body, want) || (want.to.segment & landing_bit) == 0) return false;
    const Meeting meeting{want.key, source};
    const auto offered = offers_.find(meeting);
    if (offered == offers_.end()) {
        if (wants_waiting_ >= wants_max) {
            const Error why(ErrorCode::no_memory, "accept: too much is waited for here already");
            dispatcher_.operations().refuse(turn, source, want.operation, why);
            return true;
        }
        ++wants_waiting_;
        wants_[meeting].push_back(want);
        return true;
    }
    const Offer offer = offered->second.front();
    offered->second.pop_front();
    if (offered->second.empty()) offers_.erase(offered);
    give(turn, source, want, offer);
    return true;
}

/// An offer and an accept have met.
void Rendezvous::give(const Turn& turn, Node to, const Want& want, const Offer& offer) {
    if (offer.source.size() > want.bytes) {
        OperationService& operations = dispatcher_.operations();
        operations.refuse(turn, to, want.operation,
                          error(ErrorCode::too_large,
                                "accept: {} bytes are offered under key {}, and there is room for {}",
                                offer.source.size(), want.key, want.bytes));
        operations.note_error(turn, error(ErrorCode::too_large, "offer of {} bytes under key {}: {} has room for {}",
                                          offer.source.size(), want.key, dispatcher_.name_of(to), want.bytes),
                              operations.thread_to_tell(turn, offer.thread));
        return;
    }
    Transfer transfer{.node = to,
                      .place = want.to,
                      .source = offer.source.data(),
                      .bytes = offer.source.size(),
                      .want = want.operation,
                      .flag = offer.flag,
                      .flag_value = offer.value,
                      .thread = offer.thread,
                      .offer = offer.number};
    transfer.has_gone = transfer.bytes == 0;
    memory_.transfers().start(transfer);
}

void Rendezvous::on_lost(const Turn& turn, Node node) noexcept {
    OperationService& operations = dispatcher_.operations();
    std::set<std::uint32_t> threads; // each is told once
    std::erase_if(offers_, [&](const auto& waiting) {
        if (waiting.first.second != node) return false;
        for (const Offer& offer : waiting.second) threads.insert(operations.thread_to_tell(turn, offer.thread));
        return true;
    });
    for (const std::uint32_t thread : threads)
        operations.note_error(
            turn, error(ErrorCode::node_lost, "offer: {} has left, or is lost", dispatcher_.name_of(node)), thread);
    std::erase_if(wants_, [&](const auto& want) {
        if (want.first.second != node) return false;
        wants_waiting_ -= want.second.size();
        return true;
    });
    std::erase_if(withdrawn_, [&](const Landing& landing) { return std::get<0>(landing) == node; });
}

} // namespace kumi::engine
