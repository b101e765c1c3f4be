#include "kumi/group/multicast/relays.hpp"

#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace kumi::group {

std::optional<ReceivedAnswer> read_answer(Bytes bytes, Node nodes) {
    ReceivedAnswer answer;
    const Answer& head = answer.head;
    if (!take(bytes, answer.head) || head.name.master >= nodes || head.brings > Brings::resignation) return {};
    if (head.set_bytes > bytes.size() || head.text_bytes > bytes.size() - head.set_bytes ||
        head.text_bytes > 2 * Relays::trouble_bytes_max)
        return {};
    if (head.set_bytes != 0) {
        Bytes set_bytes = bytes.first(head.set_bytes);
        auto missing = Set::decode(set_bytes, nodes);
        if (!missing || !set_bytes.empty()) return {};
        answer.missing = *std::move(missing);
    }
    answer.trouble = kumi::text_of(bytes.subspan(head.set_bytes, head.text_bytes));
    answer.values = bytes.subspan(head.set_bytes + head.text_bytes);
    return answer;
}

Node choose_first(const engine::Dispatcher& dispatcher, const Topology& topology, const Set& set,
                  std::uint64_t sequence) {
    Set near = set;
    for (std::size_t level = 0; level < topology.levels(); ++level) {
        Set nearer;
        for (const Node node : near)
            if (topology.domain(level, node) == topology.domain(level, dispatcher.node())) nearer.add(node);
        if (nearer.empty()) break;
        near = std::move(nearer);
    }
    for (Node i = 0; i < near.size(); ++i)
        if (const Node node = near.at(static_cast<Node>((sequence + i) % near.size())); !dispatcher.is_lost(node))
            return node;
    return near.at(static_cast<Node>(sequence % near.size()));
}

Relays::Relays(engine::Dispatcher& dispatcher, const engine::Port& port, const Topology& topology, SendQueue& queue)
    : dispatcher_(dispatcher), port_(port), topology_(topology), queue_(queue), of_master_(dispatcher.nodes()) {}

// ---- coming and going

bool Relays::is_possible(const engine::Turn&, Node master, const Purpose& purpose) const {
    if (of_master_[master] >= of_one_master_max) return false;
    switch (purpose.use) {
    case Use::handler: return dispatcher_.messages().has(purpose.number);
    case Use::take:
    case Use::store: return true;
    case Use::gather: return dispatcher_.calls().has(purpose.number);
    case Use::reduce:
        return dispatcher_.calls().has(purpose.number) && purpose.tag <= ~0u &&
               dispatcher_.calls().has(static_cast<std::uint32_t>(purpose.tag));
    }
    return false;
}

Relay& Relays::add(const engine::Turn&, const Name& name, const Purpose& purpose) {
    const auto [id, relay] = relays_.add();
    relay.id = id;
    relay.name = name;
    relay.purpose = purpose;
    relay.is_masters = name.master == dispatcher_.node();
    if (!relay.is_masters) ++of_master_[name.master];
    return relay;
}

Relay* Relays::next_complete(const engine::Turn&) noexcept {
    while (next_complete_ < complete_.size())
        if (Relay* const relay = find(complete_[next_complete_++])) return relay;
    complete_.clear();
    next_complete_ = 0;
    return nullptr;
}

std::unique_ptr<Relay> Relays::remove(const engine::Turn&, Relay& relay) {
    if (!relay.is_masters) --of_master_[relay.name.master];
    return relays_.remove(relay.id);
}

base::Numbered<Relay, RelayId> Relays::take_all(const engine::Turn&) {
    complete_.clear();
    next_complete_ = 0;
    std::ranges::fill(of_master_, 0u);
    return std::exchange(relays_, {});
}

bool Relays::is_done(const engine::Turn&) const {
    bool is_done = true;
    relays_.for_each([&](const Relay& relay) {
        if (!relay.is_masters &&
            std::ranges::any_of(relay.children, [](const RelayChild& child) { return !child.has_answered; }))
            is_done = false;
    });
    return is_done;
}

// ---- children

void Relays::add_child(const engine::Turn& turn, Relay& relay, Child child) {
    ++relay.open;
    relay.children.push_back({child.to, std::move(child.part)});
    if (dispatcher_.is_lost(child.to)) return replace_child(turn, relay, relay.children.size() - 1);
    if (!try_cast(relay, relay.children.back())) queue_.add_cast(turn, child.to, relay.id);
}

void Relays::expect_child(const engine::Turn&, Relay& relay, Child child) {
    ++relay.open;
    relay.children.push_back({child.to, std::move(child.part)});
}

/// The child is lost: others get the content for the members that it was to care for. Does not complete the relay,
/// because the caller holds it open.
void Relays::replace_child(const engine::Turn& turn, Relay& relay, std::size_t index) {
    relay.children[index].has_answered = true;
    const Node lost = relay.children[index].to;
    relay.missing.add(lost);
    Set rest = relay.children[index].part;
    rest.remove(lost);
    if (!rest.empty()) {
        std::vector<Child> others;
        if (relay.is_masters && !rest.contains(dispatcher_.node()) && relay.children.size() == 1)
            others.push_back({choose_first(dispatcher_, topology_, rest, relay.name.sequence), rest});
        else others = children_of(rest, dispatcher_.node(), topology_, relay.pace);
        for (Child& other : others) add_child(turn, relay, std::move(other));
    }
    --relay.open;
}

RelayChild* Relays::find_child(Relay& relay, Node node) noexcept {
    const auto child = std::ranges::find_if(relay.children,
                                            [&](const RelayChild& one) { return one.to == node && !one.has_answered; });
    return child == relay.children.end() ? nullptr : &*child;
}

bool Relays::try_cast(const Relay& relay, const RelayChild& child) {
    make_room_for<Cast>(message_);
    const std::size_t begin = message_.size();
    if (needs_lead(child.part, relay.before, relay.members))
        append_lead(message_, child.part, relay.before, relay.members);
    const auto lead_bytes = static_cast<std::uint32_t>(message_.size() - begin);
    put_head(message_, Cast{relay.place ? Kind::placed : Kind::cast, lead_bytes, relay.name, relay.purpose, relay.id,
                            relay.pace.gap / relay.pace.hop});
    return port_.try_send(child.to, only_kind, message_, relay.place ? bytes_of(*relay.place) : relay.content.bytes);
}

bool Relays::go_on(const engine::Turn& turn) {
    return queue_.go_on(turn, [&](RelayId id, Node to) {
        Relay* const relay = find(id);
        if (relay == nullptr) return true; // it has ended
        const RelayChild* const child = find_child(*relay, to);
        return child == nullptr || try_cast(*relay, *child);
    });
}

void Relays::on_lost(const engine::Turn& turn, Node node) {
    relays_.for_each([&](Relay& relay) {
        if (relay.is_in_blocks) return;
        ++relay.open; // it does not become complete while its children change
        for (std::size_t child = 0; child < relay.children.size(); ++child)
            if (relay.children[child].to == node && !relay.children[child].has_answered)
                replace_child(turn, relay, child);
        close_one(turn, relay);
    });
}

// ---- answers

bool Relays::take_answer(const engine::Turn& turn, Relay& relay, Node source, const ReceivedAnswer& answer) {
    RelayChild* const child = find_child(relay, source);
    if (child == nullptr) return false;
    child->has_answered = true;
    relay.missing |= answer.missing;
    if (relay.trouble.empty()) {
        relay.trouble = answer.trouble;
        relay.code = error_code_of(answer.head.code);
    }
    if (answer.head.brings == Brings::values)
        relay.values.emplace_back(child->part.first(),
                                  std::vector<std::byte>(answer.values.begin(), answer.values.end()));
    close_one(turn, relay);
    return true;
}

void Relays::end_own(const engine::Turn& turn, std::span<const RelayId> ids, const OwnAnswer& own) {
    for (const RelayId id : ids) {
        Relay* const relay = find(id);
        if (relay == nullptr) continue;
        if (own.is_missing) relay->missing.add(dispatcher_.node());
        if (relay->trouble.empty()) {
            relay->trouble = own.trouble;
            relay->code = own.code;
        }
        if (own.value) relay->values.emplace_back(dispatcher_.node(), *own.value);
        close_one(turn, *relay);
    }
}

std::optional<std::vector<std::byte>> Relays::combine(const engine::Turn&, Relay& relay) const {
    if (relay.values.empty()) return {};
    std::ranges::sort(relay.values, {}, [](const auto& value) { return value.first; });
    std::vector<std::byte> all = std::move(relay.values.front().second);
    for (std::size_t i = 1; i < relay.values.size() && relay.trouble.empty(); ++i) {
        append(all, relay.values[i].second);
        if (relay.purpose.use != Use::reduce) continue;
        auto both = dispatcher_.calls().run_now(static_cast<std::uint32_t>(relay.purpose.tag), all);
        if (both) all = *std::move(both);
        else
            relay.trouble = fmt::format("{}: {}", dispatcher_.name_of(dispatcher_.node()), both.error().text())
                                .substr(0, trouble_bytes_max);
    }
    if (all.size() > dispatcher_.message_bytes_max() / 2) {
        relay.trouble = fmt::format("the answers take {} and more; the most is {}", base::readable_bytes(all.size()),
                                    base::readable_bytes(dispatcher_.message_bytes_max() / 2));
        relay.code = ErrorCode::too_large;
    }
    if (!relay.trouble.empty()) return {};
    return all;
}

std::vector<std::byte>& Relays::answer_of(const engine::Turn& turn, Relay& relay, RelayId id) {
    const auto values = combine(turn, relay);
    make_answer(relay.name, id, relay.missing, relay.trouble, relay.code, values ? &*values : nullptr);
    return message_;
}

void Relays::make_answer(const Name& name, RelayId id, const Set& missing, std::string_view trouble, ErrorCode code,
                         const std::vector<std::byte>* values) {
    make_room_for<Answer>(message_);
    const std::size_t begin = message_.size();
    if (!missing.empty()) missing.encode(message_);
    const auto set_bytes = static_cast<std::uint32_t>(message_.size() - begin);
    put_head(message_, Answer{Kind::answer, set_bytes, name, id, static_cast<std::uint32_t>(trouble.size()),
                              values != nullptr ? Brings::values : Brings::nothing, static_cast<std::uint16_t>(code)});
    append(message_, bytes_of(trouble));
    if (values != nullptr) append(message_, *values);
}

void Relays::answer_parent(const engine::Turn& turn, Relay& relay) {
    queue_.send(turn, relay.parent, answer_of(turn, relay, relay.parents));
}

void Relays::answer_for_self(const engine::Turn& turn, Node to, const Cast& cast, const OwnAnswer& own) {
    make_answer(cast.name, cast.relay, {}, own.trouble, own.code, nullptr);
    queue_.send(turn, to, message_);
}

} // namespace kumi::group
