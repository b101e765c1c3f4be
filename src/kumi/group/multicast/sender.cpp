#include "kumi/group/multicast/sender.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <utility>

namespace kumi::group {
namespace {

/// Content that members on one host read where the master has put it: that pays from so many bytes on. With more than
/// the maximum the heap would not shrink again.
constexpr std::size_t placed_bytes_min = 2 << 10;
constexpr std::size_t placed_bytes_max = std::size_t{64} << 20;

} // namespace

Sender::Sender(engine::Dispatcher& dispatcher, const Siblings& siblings, std::optional<Way> way) noexcept
    : dispatcher_(dispatcher), siblings_(siblings), way_(way) {}

// ---- drafts

Choice Sender::choice(const engine::Turn& turn, std::size_t bytes, Node members) const {
    const std::size_t at_once_max = dispatcher_.message_bytes_max() / 2; // leaves room for the lead
    const Costs& costs = siblings_.probe.costs(turn);
    Choice choice = choose(bytes, members, costs, way_);
    if (bytes > at_once_max && !goes_in_blocks(choice.way)) choice = choose(bytes, members, costs, Way::circulant);
    choice.block_bytes = std::min(choice.block_bytes, static_cast<std::uint32_t>(at_once_max));
    return choice;
}

Result<void> Sender::check(const Set& to, std::size_t bytes) const {
    if (to.empty()) return error(ErrorCode::misuse, "multicast to an empty set: name at least one node");
    if (to.last() >= dispatcher_.nodes())
        return error(ErrorCode::not_found, "multicast to {}: there is no node {}, this job has nodes 0 to {}",
                     to.text(), to.last(), dispatcher_.nodes() - 1);
    if (bytes > Groups::content_bytes_max)
        return error(ErrorCode::too_large, "multicast of {} to {}: the largest is {}",
                     base::readable_bytes_beside(bytes, Groups::content_bytes_max), to.text(),
                     base::readable_bytes(Groups::content_bytes_max));
    return {};
}

bool Sender::is_on_host(const Set& to) const noexcept {
    return std::ranges::all_of(to, [&](Node node) { return dispatcher_.segments().map().reaches(node); });
}

Result<Draft> Sender::draft(const Set& to, const Purpose& purpose, const Pieces& pieces) {
    Draft draft{.to = to, .purpose = purpose, .bytes = pieces.size()};
    if (auto good = check(to, draft.bytes); !good) return good.error();
    if (!way_ && draft.bytes >= placed_bytes_min && draft.bytes <= placed_bytes_max && is_on_host(to))
        draft.exposed = Exposed::make(dispatcher_, pieces);
    {
        const auto turn = dispatcher_.take_turn(); // costs change while they are measured
        draft.choice = choice(turn, draft.exposed ? sizeof(Place) : draft.bytes, to.size());
    }
    draft.is_member = to.contains(dispatcher_.node());
    if (draft.exposed) {
        draft.content.bytes = draft.exposed->bytes();
    } else if (goes_in_blocks(draft.choice.way) && to.size() > (draft.is_member ? 1u : 0u)) {
        draft.streamed = try_make_bytes(draft.bytes);
        if (!draft.streamed)
            return error(ErrorCode::no_memory, "multicast to {}: no memory for {}", to.text(),
                         base::readable_bytes(draft.bytes));
        pieces.copy_to(draft.streamed->data());
        draft.content = {*draft.streamed, draft.streamed};
    } else {
        draft.content = Content::copy_of(pieces);
    }
    return draft;
}

std::optional<std::vector<Before>> Sender::room_for(const engine::Turn&, const Set& to, std::size_t bytes,
                                                    std::size_t most) const {
    if (under_way_.empty()) return std::vector<Before>();
    if (under_way_.size() >= most || is_too_much(bytes) || is_far_ahead()) return {};
    auto before = before_for(to);
    // A set takes no more than its bits and 12 bytes; only where many are under way it has to be known better.
    const std::size_t lead_bytes_max = 16 + (before.size() + 2) * (20 + dispatcher_.nodes() / 8);
    const std::size_t room = dispatcher_.message_bytes_max() / 4;
    if (lead_bytes_max > room && lead_of(to, before, to).size() > room) return {};
    return before;
}

/// Members could not tell whether they have seen the oldest multicast that a member may still have to get. One that
/// all members have had does not count: its functions may run for long, and begin many others meanwhile.
bool Sender::is_far_ahead() const noexcept {
    if (next_sequence_ - under_way_.front().sequence < Sequences::window / 2) [[likely]]
        return false;
    const auto oldest = std::ranges::find_if(under_way_, [](const UnderWay& one) { return !one.may_lack().empty(); });
    return oldest != under_way_.end() && next_sequence_ - oldest->sequence >= Sequences::window / 2;
}

/// The newest that each member may not have had yet; older ones come before that one.
std::vector<Before> Sender::before_for(const Set& to) const {
    std::vector<Before> before;
    Set rest = to;
    for (auto other = under_way_.rbegin(); other != under_way_.rend() && !rest.empty(); ++other) {
        Set both = other->to & rest;
        if (both.empty()) continue;
        rest -= both;
        before.push_back({other->sequence, std::move(both)});
    }
    return before;
}

// ---- beginning

Relay& Sender::begin(const engine::Turn& turn, Draft& draft, const std::vector<Before>& before, Ended ended) {
    const Name name{dispatcher_.node(), next_sequence_++};
    Relay& relay = siblings_.relays.add(turn, name, draft.purpose);
    relay.pace = {draft.choice.pace.gap / draft.choice.pace.hop, 1}; // as others get it: all must find the same tree
    relay.open = 1;
    relay.ended = std::move(ended);
    under_way_.push_back({name.sequence, draft.to, draft.bytes});
    under_way_bytes_ += draft.bytes;
    // sync() waits for it
    if (draft.purpose.use == Use::store) under_way_.back().held = dispatcher_.operations().hold(turn, "multicast");
    if (draft.streamed) begin_blocks(turn, draft, before, relay);
    else begin_whole(turn, draft, before, relay);
    return relay;
}

void Sender::begin_whole(const engine::Turn& turn, Draft& draft, const std::vector<Before>& before, Relay& relay) {
    if (draft.exposed) relay.place = Place{draft.exposed->offset(), draft.bytes};
    relay.exposed = std::move(draft.exposed);
    relay.before = before;
    if (draft.purpose.use == Use::take) relay.members = draft.to;
    std::vector<Child> children;
    if (draft.is_member) {
        children = children_of(draft.to, dispatcher_.node(), siblings_.topology, relay.pace);
        if (!children.empty()) relay.content = draft.content;
    } else {
        children.push_back({choose_first(dispatcher_, siblings_.topology, draft.to, relay.name.sequence), draft.to});
        relay.content = std::move(draft.content);
    }
    if (siblings_.probe.is_measuring()) siblings_.probe.probe(turn, children);
    for (Child& child : children) siblings_.relays.add_child(turn, relay, std::move(child));
}

void Sender::begin_blocks(const engine::Turn& turn, const Draft& draft, const std::vector<Before>& before,
                          Relay& relay) {
    const Node root = draft.is_member ? dispatcher_.node()
                                      : choose_first(dispatcher_, siblings_.topology, draft.to, relay.name.sequence);
    siblings_.streams.begin(turn, relay,
                            {.name = relay.name,
                             .purpose = draft.purpose,
                             .set = draft.to,
                             .before = before,
                             .root = root,
                             .way = draft.choice.way,
                             .pace = relay.pace,
                             .block_bytes = draft.choice.block_bytes},
                            draft.streamed);
}

// ---- ending

void Sender::end(const engine::Turn& turn, Relay& relay) {
    const auto found = std::ranges::find(under_way_, relay.name.sequence, &UnderWay::sequence);
    const Set to = std::move(found->to);
    if (found != under_way_.begin()) note_had(relay.name.sequence, to - relay.missing);
    under_way_bytes_ -= found->bytes;
    const engine::OperationId held = found->held;
    under_way_.erase(found);
    dispatcher_.operations().release(turn, held);
    if (!relay.missing.empty()) {
        relay.missing &= to;
        tell_missing(turn, relay);
    }
    auto values = siblings_.relays.combine(turn, relay);
    const bool is_gather = relay.purpose.use == Use::gather;
    if (!relay.trouble.empty()) {
        if (is_gather) siblings_.fetches.release(turn, relay.name.sequence, to);
        relay.ended(error(relay.code, "multicast to {}: {}", to.text(), relay.trouble));
    } else {
        Outcome outcome{std::move(relay.missing), values ? *std::move(values) : std::vector<std::byte>(), {}};
        const auto kept = is_gather ? take_held(outcome.values, to) : std::vector<HeldValue>();
        if (kept.empty()) relay.ended(std::move(outcome));
        else siblings_.fetches.begin(turn, relay.name.sequence, to, kept, std::move(outcome), std::move(relay.ended));
    }
    // the engine wakes threads that wait only after its own work, and this may be elsewhere
    dispatcher_.progress().wake();
}

/// The members have had that multicast, and so all earlier ones, of which some wait for functions to answer.
void Sender::note_had(std::uint64_t sequence, const Set& members) {
    for (auto other = under_way_.begin(); other->sequence != sequence; ++other) {
        if (!other->ahead) other->ahead = other->to;
        *other->ahead -= members;
    }
}

/// A member that others do not reach may still run. What comes after this multicast is not to wait for it,
/// but for what came before it.
void Sender::tell_missing(const engine::Turn& turn, const Relay& relay) {
    for (const Node node : relay.missing) {
        if (dispatcher_.is_lost(node)) continue;
        std::uint64_t before = 0;
        for (const UnderWay& other : under_way_)
            if (other.sequence < relay.name.sequence && other.to.contains(node)) before = other.sequence;
        siblings_.queue.send(turn, node, message_of(Over{Kind::over, 0, relay.name, before}));
    }
}

} // namespace kumi::group
