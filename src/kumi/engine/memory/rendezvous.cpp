#include "kumi/engine/memory/rendezvous.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/memory/flags.hpp"
#include "kumi/engine/memory/memory_service.hpp"

namespace kumi::engine {

Rendezvous::Rendezvous(Dispatcher& dispatcher, MemoryService& memory)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)), memory_(memory) {}

Result<void> Rendezvous::offer(std::uint64_t key, Node to, Bytes source, Flag* flag, Flag value) {
    if (auto known = dispatcher_.check_node("offering to", to); !known) return known;
    const Turn turn = dispatcher_.take_turn();
    if (flag != nullptr && load_flag(*flag) == value) store_flag(*flag, value == 0 ? 1 : 0);
    const Meeting meeting{key, to};
    const Offer offered{source, flag, value};
    const auto wanted = wants_.find(meeting);
    if (wanted == wants_.end()) {
        offers_[meeting].push_back(offered);
        return {};
    }
    const Want want = wanted->second.front();
    wanted->second.pop_front();
    --wants_waiting_;
    if (wanted->second.empty()) wants_.erase(wanted);
    give(turn, to, want, offered);
    return {};
}

Result<void> Rendezvous::accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag, Flag value) {
    if (auto known = dispatcher_.check_node("accepting from", from); !known) return known;
    OperationId id;
    {
        const Turn turn = dispatcher_.take_turn();
        if (flag != nullptr && load_flag(*flag) == value) store_flag(*flag, value == 0 ? 1 : 0);
        id = dispatcher_.operations().begin(turn, {.peer = from,
                                                   .what = "accept",
                                                   .target = target.data(),
                                                   .bytes = target.size(),
                                                   .flag = flag,
                                                   .flag_value = value,
                                                   .is_for_sync = false});
    }
    const Place landing{id.index | landing_bit, id.generation, 0};
    auto sent = port_.request(from, kind_in_service(Kind::want), Want{key, landing, target.size(), id});
    if (!sent) dispatcher_.operations().end(id);
    return sent;
}

Handled Rendezvous::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    if (kind != kind_in_service(Kind::want)) return Handled::no;
    return handled_if(on_want(turn, source, body));
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
                                          offer.source.size(), want.key, dispatcher_.name_of(to), want.bytes));
        return;
    }
    Transfer transfer{.node = to,
                      .place = want.to,
                      .source = offer.source.data(),
                      .bytes = offer.source.size(),
                      .want = want.operation,
                      .flag = offer.flag,
                      .flag_value = offer.value};
    transfer.has_gone = transfer.bytes == 0;
    memory_.transfers().start(transfer);
}

void Rendezvous::on_lost(const Turn& turn, Node node) noexcept {
    if (std::erase_if(offers_, [&](const auto& offer) { return offer.first.second == node; }) != 0)
        dispatcher_.operations().note_error(
            turn, error(ErrorCode::node_lost, "offer: {} has left, or is lost", dispatcher_.name_of(node)));
    std::erase_if(wants_, [&](const auto& want) {
        if (want.first.second != node) return false;
        wants_waiting_ -= want.second.size();
        return true;
    });
}

} // namespace kumi::engine
