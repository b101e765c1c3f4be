#include "kumi/group/groups.hpp"

#include "kumi/base/text/fnv.hpp"
#include "kumi/group/gather.hpp"
#include "kumi/group/group.hpp"
#include "kumi/group/mail/mailbox.hpp"
#include "kumi/group/multicast/multicasts.hpp"
#include "kumi/group/source/remote_sources.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>

namespace kumi::group {

Groups::Groups(engine::Dispatcher& dispatcher, Topology topology, const Settings& settings, const Costs& usual)
    : multicasts_(std::make_unique<Multicasts>(dispatcher, std::move(topology), settings, usual)),
      mailbox_(std::make_shared<Mailbox>(dispatcher)),
      sources_(std::make_unique<RemoteSources>(dispatcher, *multicasts_)) {}
Groups::Groups(Groups&&) noexcept = default;
Groups::~Groups() = default;

Result<Arrival> Groups::next(Instant deadline) { return multicasts_->next(deadline); }

std::size_t Groups::kept() const {
    const auto turn = multicasts_->dispatcher().take_turn();
    return multicasts_->kept(turn);
}

Choice Groups::choice(std::size_t bytes, Node members) const {
    const auto turn = multicasts_->dispatcher().take_turn();
    return multicasts_->choice(turn, bytes, members);
}

Costs Groups::costs() const {
    const auto turn = multicasts_->dispatcher().take_turn();
    return multicasts_->costs(turn);
}

const Topology& Groups::topology() const noexcept { return multicasts_->topology(); }

Result<Group> Groups::group_of(const Arrival& arrival) {
    const std::array<std::uint64_t, 2> name{arrival.master, arrival.sequence};
    return group(arrival.members, base::fnv1a(kumi::text_of(std::as_bytes(std::span(name)))));
}

engine::Progress& Groups::progress() noexcept { return multicasts_->dispatcher().progress(); }

namespace {

/// Calls `begin(ended)`. The future is ready when `ended` has been called.
template <class Begin>
Future<Set> future_of(Multicasts& multicasts, const Begin& begin) {
    engine::Promise<Set> promise(&multicasts.dispatcher().progress());
    auto future = promise.future();
    begin([promise = std::move(promise)](Result<Outcome> outcome) mutable {
        if (outcome) promise.complete(std::move(outcome->missing));
        else promise.complete(outcome.error());
    });
    return future;
}

Future<Set> start(Multicasts& multicasts, const Set& to, const Purpose& purpose, Bytes arguments, Bytes payload) {
    return future_of(multicasts,
                     [&](Ended ended) { multicasts.start(to, purpose, arguments, payload, std::move(ended)); });
}

Future<Set> refused(Multicasts& multicasts, const Error& why) {
    engine::Promise<Set> promise(&multicasts.dispatcher().progress());
    promise.complete(why);
    return promise.future();
}

} // namespace

Future<Set> Groups::call(const Set& to, engine::Handle handler, Bytes arguments, Bytes payload) {
    const engine::ActiveMessages& messages = multicasts_->dispatcher().messages();
    if (auto known = messages.check_handle("the handler of a multicast", handler); !known)
        return refused(*multicasts_, known.error());
    return start(*multicasts_, to, {Use::handler, messages.number_of(handler.index), 0}, arguments, payload);
}

Future<Set> Groups::multicast(const Set& to, std::uint64_t tag, Bytes content) {
    return start(*multicasts_, to, {Use::take, 0, tag}, {}, content);
}

// ---- into memory

namespace {

constexpr const char* into_memory = "multicast into memory";

/// The places as they travel. An error: one of them is nowhere, or two are on one node.
Result<std::vector<StorePlace>> check_places(engine::Dispatcher& dispatcher,
                                             std::span<const global_ptr<std::byte>> places, std::size_t bytes) {
    std::vector<StorePlace> checked;
    for (const auto& place : places) {
        if (auto good = dispatcher.segments().check(into_memory, place, bytes); !good) return good.error();
        checked.push_back({place.node(), place.segment(), place.offset()});
    }
    std::ranges::sort(checked, {}, &StorePlace::node);
    const auto twice = std::ranges::adjacent_find(checked, {}, &StorePlace::node);
    if (twice == checked.end()) return checked;
    return error(ErrorCode::misuse, "{}: two of the places are on {}", into_memory, dispatcher.name_of(twice->node));
}

} // namespace

std::size_t Groups::bytes_of_values(const Values& values) noexcept {
    const Source* const remote = std::get_if<Source>(&values);
    return remote != nullptr ? remote->bytes : std::get<Bytes>(values).size();
}

Future<Set> Groups::store(const Set& to, global_ptr<std::byte> place, const Values& values, const Notice& notice) {
    engine::Dispatcher& dispatcher = multicasts_->dispatcher();
    if (auto good = dispatcher.memory().check_store(into_memory, place, bytes_of_values(values), notice); !good)
        return refused(*multicasts_, good.error());
    const StoreHead head{{place.segment(), 0, place.offset()}, notice};
    return store(to, 0, bytes_of(head), values);
}

Future<Set> Groups::store(ByteList places, const Values& values, const Notice& notice) {
    engine::Dispatcher& dispatcher = multicasts_->dispatcher();
    const auto checked = check_places(dispatcher, places, bytes_of_values(values));
    if (!checked) return refused(*multicasts_, checked.error());
    if (engine::is_exposed(notice.segment) || (notice.kind != Notice::Kind::none && notice.segment == 0))
        return refused(*multicasts_, error(ErrorCode::misuse,
                                           "{}: the flag of the notice must be in a segment, which "
                                           "is alike on all nodes",
                                           into_memory));
    Set to;
    for (const StorePlace& place : *checked) to.add(place.node);
    std::vector<std::byte> arguments;
    append(arguments, bytes_of(StoreHead{{}, notice}));
    append(arguments, std::as_bytes(std::span(*checked)));
    return store(to, static_cast<std::uint32_t>(checked->size()), arguments, values);
}

Future<Set> Groups::store(const Set& to, std::uint32_t places, Bytes arguments, const Values& values) {
    const Purpose purpose{Use::store, places, 0};
    if (const Bytes* const mine = std::get_if<Bytes>(&values))
        return start(*multicasts_, to, purpose, arguments, *mine);
    const Source& source = std::get<Source>(values);
    engine::Dispatcher& dispatcher = multicasts_->dispatcher();
    if (auto good = dispatcher.segments().check("multicast from memory", source.from, source.bytes); !good)
        return refused(*multicasts_, good.error());
    if (const std::byte* const here = dispatcher.segments().local(source.from, source.bytes); here != nullptr)
        return start(*multicasts_, to, purpose, arguments, {here, source.bytes});
    if (auto good = multicasts_->check(to, arguments.size() + source.bytes); !good)
        return refused(*multicasts_, good.error());
    return future_of(*multicasts_, [&](Ended ended) {
        sources_->ask(source.from, source.bytes, to, places, arguments, std::move(ended));
    });
}

void Groups::discard_stores(bool discards) noexcept { multicasts_->discard_stores(discards); }

void Groups::ask(const Set& to, engine::Handle function, std::optional<engine::Handle> operation,
                 const engine::ArgumentBytes& arguments, Ended ended) {
    engine::Dispatcher& dispatcher = multicasts_->dispatcher();
    for (const engine::Handle handle : {function, operation.value_or(function)})
        if (auto known = dispatcher.messages().check_handle("the function of a multicast", handle); !known)
            return ended(known.error());
    if (!arguments)
        return ended(error(arguments.error().code(), "function {} on {}: its arguments cannot be sent: {}",
                           dispatcher.messages().handlers().functions()[function.index].name, to.text(),
                           arguments.error().text()));
    // Small answers come together in one message; they fit it even if all members have so much to say.
    const std::size_t share = dispatcher.message_bytes_max() / 2 / std::max<std::size_t>(to.size(), 1);
    const std::uint64_t at_once_max = share - std::min(share, sizeof(ValueHead));
    const Purpose purpose{operation ? Use::reduce : Use::gather, dispatcher.calls().number_of(function.index),
                          operation ? dispatcher.calls().number_of(operation->index) : at_once_max};
    multicasts_->start(to, purpose, *arguments, {}, std::move(ended));
}

std::optional<std::pair<Node, Bytes>> take_value(Bytes& values) {
    ValueHead head;
    if (!read_value(values, head) || head.bytes > values.size() - sizeof head) return {};
    const Bytes value = values.subspan(sizeof head, head.bytes);
    values = values.subspan(sizeof head + head.bytes);
    return std::pair{Node{head.node}, value};
}

std::vector<std::pair<Node, Bytes>> values_by_node(const Outcome& outcome) {
    std::vector<std::pair<Node, Bytes>> all(outcome.fetched.begin(), outcome.fetched.end());
    Bytes values = outcome.values;
    while (const auto value = take_value(values)) all.push_back(*value);
    std::ranges::sort(all, {}, [](const auto& value) { return value.first; });
    return all;
}

Error nobody_answered(const Set& to) {
    return error(ErrorCode::node_lost, "reduce over {}: none of them answered", to.text());
}

Result<Group> Groups::group(const Set& set) {
    std::vector<std::byte> encoded;
    set.encode(encoded);
    return group(set, base::fnv1a(kumi::text_of(encoded)));
}

Result<Group> Groups::group(const Set& set, std::uint64_t id) {
    engine::Dispatcher& dispatcher = mailbox_->dispatcher();
    if (!set.contains(dispatcher.node()))
        return error(ErrorCode::misuse, "group of {}: {} is no member", set.empty() ? "nobody" : set.text(),
                     dispatcher.name_of(dispatcher.node()));
    if (set.last() >= dispatcher.nodes())
        return error(ErrorCode::not_found, "group of {}: there is no node {}, this job has nodes 0 to {}", set.text(),
                     set.last(), dispatcher.nodes() - 1);
    return Group(std::make_shared<Membership>(*mailbox_, set, id));
}

} // namespace kumi::group
