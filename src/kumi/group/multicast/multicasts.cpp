#include "kumi/group/multicast/multicasts.hpp"

#include "kumi/base/machine.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace kumi::group {
namespace {

/// What members on one host read where the master has put it: it pays from so much on, and of more the heap would not
/// shrink again.
constexpr std::size_t placed_bytes_min = 2 << 10;
constexpr std::size_t placed_bytes_max = std::size_t{64} << 20;

} // namespace

Multicasts::Multicasts(engine::Core& core, Topology topology, const Settings& settings, const Costs& usual)
    : core_(core), port_(core.add_service(*this)), topology_(std::move(topology)),
      costs_(settings.costs.value_or(usual)), way_(settings.way) {
    if (settings.costs) return;
    probing_.emplace();
    typical_ = find_typical();
}

Choice Multicasts::choice(std::size_t bytes, Node members) const {
    const std::size_t at_once_max = core_.message_bytes_max() / 2; // leaves room for the lead
    Choice choice = choose(bytes, members, costs_, way_);
    if (bytes > at_once_max && !goes_in_blocks(choice.way)) choice = choose(bytes, members, costs_, Way::circulant);
    choice.block_bytes = std::min(choice.block_bytes, static_cast<std::uint32_t>(at_once_max));
    return choice;
}

std::shared_ptr<std::vector<std::byte>> Multicasts::try_make_content(std::size_t bytes) {
    try {
        return std::make_shared<std::vector<std::byte>>(bytes);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

std::size_t Multicasts::kept() {
    const auto turn = core_.take_turn();
    std::size_t count = relays_.size() + streams_.size() + early_.size();
    for (const auto& [master, source] : sources_) count += source.deliveries.size();
    return count;
}

// ---- the master

Result<void> Multicasts::check(const Set& to, std::size_t bytes) const {
    if (to.empty()) return error("multicast to an empty set: it is for somebody");
    if (to.last() >= core_.nodes())
        return error("multicast to {}: there is no node {}, this job has nodes 0 to {}", to.text(), to.last(),
                     core_.nodes() - 1);
    if (bytes > Groups::content_bytes_max)
        return error("multicast of {} to {}: the largest is {}", base::readable_bytes(bytes), to.text(),
                     base::readable_bytes(Groups::content_bytes_max));
    return {};
}

bool Multicasts::is_on_host(const Set& to) const noexcept {
    return std::ranges::all_of(to, [&](Node node) { return core_.reaches(node); });
}

/// All that can be done before it is its turn: finds its way, and brings its content to where it stays.
Result<Multicasts::Draft> Multicasts::draft_of(const Set& to, const Purpose& purpose, const Pieces& pieces) {
    Draft draft{.to = to, .purpose = purpose, .bytes = pieces.size()};
    if (auto good = check(to, draft.bytes); !good) return good.error();
    if (!way_ && draft.bytes >= placed_bytes_min && draft.bytes <= placed_bytes_max && is_on_host(to))
        draft.exposed = Exposed::make(core_, pieces);
    {
        const auto turn = core_.take_turn(); // costs change while they are measured
        draft.choice = choice(draft.exposed ? sizeof(Place) : draft.bytes, to.size());
    }
    draft.is_member = to.contains(core_.node());
    if (draft.exposed) {
        draft.content.bytes = draft.exposed->bytes();
    } else if (goes_in_blocks(draft.choice.way) && to.size() > (draft.is_member ? 1u : 0u)) {
        draft.streamed = try_make_content(draft.bytes);
        if (!draft.streamed)
            return error("multicast to {}: no memory for {}", to.text(), base::readable_bytes(draft.bytes));
        pieces.copy_to(draft.streamed->data());
        draft.content = {*draft.streamed, draft.streamed};
    } else {
        draft.content = Content::copy_of(pieces);
    }
    return draft;
}

void Multicasts::start(const Set& to, const Purpose& purpose, Bytes arguments, Bytes payload, Ended ended) {
    auto draft = draft_of(to, purpose, {arguments, payload});
    if (!draft) return ended(draft.error());
    bool has_begun = false;
    const auto try_begin = [&] {
        if (has_begun) return true;
        const auto before = room_for(*draft);
        if (!before) return false;
        has_begun = true;
        begin(*draft, *before, std::move(ended));
        return true;
    };
    {
        const auto turn = core_.take_turn();
        if (has_ended_) return ended(error("multicast to {}: the job has ended", to.text()));
        {
            const Busy busy(*this);
            if (try_begin()) {
                if (!turn.is_inner()) run_ready(turn); // what is for this node too
                return;
            }
        }
        if (turn.is_inner())
            return ended(error("multicast to {} from a handler: {} are under way, and a handler must not wait",
                               to.text(), under_way_.size()));
    }
    core_.wait_until(try_begin, never);
}

/// What its members must have had before; nothing: too much is under way.
std::optional<std::vector<Multicasts::Before>> Multicasts::room_for(const Draft& draft) const {
    if (under_way_.empty()) return std::vector<Before>();
    if (under_way_.size() >= Groups::under_way_max || under_way_bytes_ + draft.bytes > under_way_bytes_max ||
        next_sequence_ - under_way_.front().sequence >= Sequences::window / 2)
        return {};
    auto before = before_for(draft.to);
    // A set takes no more than its bits and 12 bytes; only where many are under way it has to be known better.
    const std::size_t lead_bytes_max = 16 + (before.size() + 2) * (20 + core_.nodes() / 8);
    const std::size_t room = core_.message_bytes_max() / 4;
    if (lead_bytes_max > room && lead_of(draft.to, before, draft.to).size() > room) return {};
    return before;
}

/// Sends what can be sent at once; this node's own part is ready to be run.
void Multicasts::begin(Draft& draft, const std::vector<Before>& before, Ended ended) {
    const Busy busy(*this);
    is_called_ = false; // of what this adds nobody knows
    const Name name{core_.node(), next_sequence_++};
    Relay& relay = add_relay(name, draft.purpose);
    relay.is_masters = true;
    relay.ended = std::move(ended);
    relay.pace = {draft.choice.pace.gap / draft.choice.pace.hop, 1}; // as others get it: all must find the same tree
    under_way_.push_back({name.sequence, draft.to, draft.bytes});
    under_way_bytes_ += draft.bytes;
    relay.open = 1; // until all is begun; and if this is a member, until it has it
    if (draft.streamed) begin_blocks(draft, before, relay);
    else begin_whole(draft, before, relay);
    if (!draft.is_member) return close_one(relay);
    deliver(relay, draft.to, before, std::move(draft.content));
    if (draft.purpose.use == Use::take) core_.wake(); // who waits for it here
}

void Multicasts::begin_whole(Draft& draft, const std::vector<Before>& before, Relay& relay) {
    if (draft.exposed) relay.place = Place{draft.exposed->offset(), draft.bytes};
    relay.content = draft.content;
    relay.exposed = std::move(draft.exposed);
    relay.before = before;
    if (draft.purpose.use == Use::take) relay.members = draft.to;
    std::vector<Child> children;
    if (draft.is_member) children = children_of(draft.to, core_.node(), topology_, relay.pace);
    else children.push_back({choose_first(draft.to, relay.name.sequence), draft.to});
    if (probing_) probe(children);
    for (Child& child : children) add_child(relay, std::move(child));
}

void Multicasts::begin_blocks(const Draft& draft, const std::vector<Before>& before, Relay& relay) {
    const Node root = draft.is_member ? core_.node() : choose_first(draft.to, relay.name.sequence);
    Stream& stream = add_stream(relay.name, draft.purpose, {draft.to, before, {}}, root, draft.choice.way, relay.pace,
                                draft.streamed, draft.choice.block_bytes);
    stream.relay = relay.id;
    relay.stream = &stream;
    if (draft.is_member) {
        make_member(stream);
    } else {
        relay.children.push_back({root, draft.to});
        ++relay.open;
        add_direct_flow(stream, root);
    }
    (void)go_on(stream);
    if (core_.is_lost(root)) on_lost_in(stream, root);
}

/// The newest that each member may not have had yet; older ones come before that one.
std::vector<Multicasts::Before> Multicasts::before_for(const Set& to) const {
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

/// One near the master, and another one each time.
Node Multicasts::choose_first(const Set& set, std::uint64_t sequence) const {
    Set near = set;
    for (std::size_t level = 0; level < topology_.levels(); ++level) {
        Set nearer;
        for (const Node node : near)
            if (topology_.domain(level, node) == topology_.domain(level, core_.node())) nearer.add(node);
        if (nearer.empty()) break;
        near = std::move(nearer);
    }
    for (Node i = 0; i < near.size(); ++i)
        if (const Node node = near.at(static_cast<Node>((sequence + i) % near.size())); !core_.is_lost(node))
            return node;
    return near.at(static_cast<Node>(sequence % near.size()));
}

// ---- relays

Multicasts::Relay& Multicasts::add_relay(const Name& name, const Purpose& purpose) {
    const auto [id, relay] = relays_.add();
    relay.id = id;
    relay.name = name;
    relay.purpose = purpose;
    return relay;
}

void Multicasts::add_child(Relay& relay, Child child) {
    ++relay.open;
    relay.children.push_back({child.to, std::move(child.part)});
    if (core_.is_lost(child.to)) return replace_child(relay, relay.children.size() - 1);
    if (!try_cast(relay, relay.children.back())) unsent_.push_back({child.to, relay.id, {}});
}

/// That child is lost: others get what it was to care for. Does not end the relay, for its caller holds it open.
void Multicasts::replace_child(Relay& relay, std::size_t index) {
    relay.children[index].has_answered = true;
    const Node lost = relay.children[index].to;
    relay.missing.add(lost);
    Set rest = relay.children[index].part;
    rest.remove(lost);
    if (!rest.empty()) {
        std::vector<Child> others;
        if (relay.is_masters && !rest.contains(core_.node()) && relay.children.size() == 1)
            others.push_back({choose_first(rest, relay.name.sequence), rest});
        else others = children_of(rest, core_.node(), topology_, relay.pace);
        for (Child& other : others) add_child(relay, std::move(other));
    }
    --relay.open;
}

/// The child that is waited for; null: it is none.
Multicasts::Link* Multicasts::find_child(Relay& relay, Node node) noexcept {
    const auto child =
        std::ranges::find_if(relay.children, [&](const Link& link) { return link.to == node && !link.has_answered; });
    return child == relay.children.end() ? nullptr : &*child;
}

/// False: it is not from a child that is waited for.
bool Multicasts::take_answer(Relay& relay, Node source, const Told& told) {
    Link* const child = find_child(relay, source);
    if (child == nullptr) return false;
    const Node first = child->part.first();
    child->has_answered = true;
    // It has all blocks, and so have those below it; or it wants none.
    if (relay.stream != nullptr)
        relay.stream->flows.remove_if(
            [&](const Flow& flow) { return !flow.schedule && flow.members.front() == source; });
    if (told.head.brings == Brings::resignation && relay.stream != nullptr) adopt(*relay.stream, Link(*child));
    relay.missing |= told.missing;
    if (relay.trouble.empty()) relay.trouble = told.trouble;
    if (told.head.brings == Brings::values)
        relay.values.emplace_back(first, std::vector<std::byte>(told.values.begin(), told.values.end()));
    close_one(relay);
    return true;
}

/// What this node and those below it answered, as one; nothing if nobody did, or if it does not work.
std::optional<std::vector<std::byte>> Multicasts::combine(Relay& relay) const {
    if (relay.values.empty()) return {};
    std::ranges::sort(relay.values, {}, [](const auto& value) { return value.first; });
    std::vector<std::byte> all = std::move(relay.values.front().second);
    for (std::size_t i = 1; i < relay.values.size() && relay.trouble.empty(); ++i) {
        append(all, relay.values[i].second);
        if (relay.purpose.use != Use::reduce) continue;
        auto both = core_.calls().run_now(static_cast<std::uint32_t>(relay.purpose.tag), all);
        if (both) all = *std::move(both);
        else
            relay.trouble =
                fmt::format("{}: {}", core_.name_of(core_.node()), both.error().text()).substr(0, trouble_bytes_max);
    }
    if (all.size() > core_.message_bytes_max() / 2)
        relay.trouble = fmt::format("the answers take {} and more; the most is {}", base::readable_bytes(all.size()),
                                    base::readable_bytes(core_.message_bytes_max() / 2));
    if (!relay.trouble.empty()) return {};
    return all;
}

/// One thing less to wait for; the relay may be gone afterwards.
void Multicasts::close_one(Relay& relay) {
    if (--relay.open == 0) finish(relay);
}

void Multicasts::finish(Relay& relay) {
    if (relay.stream != nullptr) relay.stream->relay.reset();
    if (!relay.is_masters && relay.stream != nullptr) answer_for(*relay.stream, relay);
    else if (!relay.is_masters) send(relay.parent, answer_of(relay, relay.parents));
    std::unique_ptr<Relay> ended = remove(relay);
    if (!ended->is_masters) return relays_.give_back(std::move(ended));
    const auto mine = std::ranges::find(under_way_, ended->name.sequence, &UnderWay::sequence);
    const Set to = std::move(mine->to);
    under_way_bytes_ -= mine->bytes;
    under_way_.erase(mine);
    ended->missing &= to;
    tell_missing(*ended);
    auto values = combine(*ended);
    if (ended->trouble.empty())
        ended->ended(Outcome{std::move(ended->missing), values ? *std::move(values) : std::vector<std::byte>()});
    else ended->ended(error("multicast to {}: {}", to.text(), ended->trouble));
    core_.wake(); // not always in what the engine does, after which it wakes those who wait
    relays_.give_back(std::move(ended));
}

std::unique_ptr<Multicasts::Relay> Multicasts::remove(Relay& relay) {
    if (!relay.is_masters) --sources_[relay.name.master].relays;
    return relays_.remove(relay.id);
}

/// Nothing: it makes no sense.
std::optional<Multicasts::Told> Multicasts::read_answer(Bytes bytes) const {
    Told told;
    const Answer& head = told.head;
    if (!take(bytes, told.head) || head.name.master >= core_.nodes() || head.brings > Brings::resignation) return {};
    if (head.set_bytes > bytes.size() || head.text_bytes > bytes.size() - head.set_bytes ||
        head.text_bytes > 2 * trouble_bytes_max)
        return {};
    Bytes set_bytes = bytes.first(head.set_bytes);
    auto missing = Set::decode(set_bytes, core_.nodes());
    if (!missing || !set_bytes.empty()) return {};
    told.missing = *std::move(missing);
    told.trouble = kumi::text_of(bytes.subspan(head.set_bytes, head.text_bytes));
    told.values = bytes.subspan(head.set_bytes + head.text_bytes);
    return told;
}

bool Multicasts::on_answer(Node source, Bytes bytes) {
    const auto told = read_answer(bytes);
    if (!told) return false;
    const Answer& head = told->head;
    if (head.relay.index != no_relay.index) {
        Relay* const relay = relays_.find(head.relay);
        if (relay == nullptr || relay->name != head.name) return true; // over, or taken over by others
        (void)take_answer(*relay, source, *told);
        return true;
    }
    Stream* const stream = find_stream(head.name);
    if (stream != nullptr && stream->relay && take_answer(*relays_.find(*stream->relay), source, *told)) return true;
    if (stream == nullptr && head.name.master == core_.node()) return true; // over
    if (stream == nullptr && sources_[head.name.master].sequences.was_seen(head.name.sequence)) return true;
    if (early_bytes_ + bytes.size() > early_bytes_max) return true; // too many: it is asked for again
    const auto [early, is_new] = early_[head.name].try_emplace(source, bytes.begin(), bytes.end());
    if (is_new) early_bytes_ += bytes.size();
    return true;
}

// ---- whole messages

bool Multicasts::on_cast(Node source, Bytes bytes, bool is_placed) {
    Cast head;
    if (!take(bytes, head) || head.lead_bytes > bytes.size() || head.name.master >= core_.nodes() ||
        head.name.master == core_.node())
        return false;
    Source& origin = sources_[head.name.master];
    if (!is_possible(origin, head.purpose)) return false;
    auto lead = read_lead(bytes.first(head.lead_bytes));
    if (!lead || !lead->set.contains(core_.node())) return false;
    bytes = bytes.subspan(head.lead_bytes);
    Content content{bytes, nullptr};
    Place place{};
    if (is_placed) {
        const std::byte* const begin =
            take(bytes, place) ? core_.local({head.name.master, 0, place.offset}, place.bytes) : nullptr;
        if (begin == nullptr) return false;
        content.bytes = {begin, place.bytes};
    }
    origin.quiet_looks = 0;
    Relay& relay = add_relay(head.name, head.purpose);
    ++origin.relays;
    if (is_placed) relay.place = place;
    relay.parent = source;
    relay.parents = head.relay;
    relay.pace = {head.gap, 1};
    relay.open = 1; // until this node has it
    relay.members = std::move(lead->members);
    auto children = children_of(lead->set, core_.node(), topology_, relay.pace);
    if (!children.empty()) {
        if (!is_placed) content = Content::copy_of(bytes);
        relay.content = content;
        relay.before = std::move(lead->before);
        for (Child& child : children) add_child(relay, std::move(child));
        deliver(relay, relay.members, relay.before, std::move(content));
    } else {
        deliver(relay, relay.members, lead->before, std::move(content));
    }
    return true;
}

bool Multicasts::try_cast(const Relay& relay, const Link& child) {
    make_room_for<Cast>(message_);
    const std::size_t begin = message_.size();
    append_lead(message_, child.part, relay.before, relay.members);
    const auto lead_bytes = static_cast<std::uint32_t>(message_.size() - begin);
    put_head(message_, Cast{relay.place ? Kind::placed : Kind::cast, lead_bytes, relay.name, relay.purpose, relay.id,
                            relay.pace.gap / relay.pace.hop});
    return port_.try_send(child.to, only_kind, message_, relay.place ? bytes_of(*relay.place) : relay.content.bytes);
}

// ---- what comes, and goes on

engine::Handled Multicasts::on_message(const engine::Turn& turn, Node source, std::uint16_t wire_kind, Bytes bytes) {
    if (wire_kind != only_kind) return engine::Handled::no;
    const Busy busy(*this);
    std::uint32_t kind = ~0u;
    (void)read_value(bytes, kind);
    bool is_sound = false;
    switch (static_cast<Kind>(kind)) {
    case Kind::cast: is_sound = on_cast(source, bytes, false); break;
    case Kind::placed: is_sound = on_cast(source, bytes, true); break;
    case Kind::block: is_sound = on_block(source, bytes); break;
    case Kind::answer: is_sound = on_answer(source, bytes); break;
    case Kind::probe: is_sound = on_probe(source, bytes); break;
    case Kind::probed: is_sound = on_probed(source, bytes); break;
    case Kind::over: is_sound = on_over(source, bytes); break;
    }
    if (!is_sound) core_.note_unsound(source);
    run_ready(turn);
    return engine::Handled::yes;
}

bool Multicasts::go_on(const engine::Turn& turn) noexcept {
    const Busy busy(*this);
    bool any = !ready_.empty();
    run_ready(turn);
    Set refused; // what is for one node stays in order
    for (std::size_t i = 0, count = unsent_.size(); i < count; ++i) {
        Unsent next = std::move(unsent_.front());
        unsent_.pop_front();
        if (core_.is_lost(next.to)) continue; // on_lost() takes care
        bool was_sent = false;
        if (!refused.contains(next.to)) {
            if (next.relay.index == no_relay.index) {
                was_sent = port_.try_send(next.to, only_kind, next.message);
            } else if (Relay* const relay = relays_.find(next.relay)) {
                const Link* const child = find_child(*relay, next.to);
                was_sent = child == nullptr || try_cast(*relay, *child);
            } else {
                was_sent = true; // over
            }
        }
        if (was_sent) any = true;
        else refused.add(next.to), unsent_.push_back(std::move(next));
    }
    for (auto& [name, stream] : streams_) any |= go_on(*stream);
    return any;
}

void Multicasts::on_lost(const engine::Turn& turn, Node node) noexcept {
    const Busy busy(*this);
    std::erase_if(unsent_, [&](const Unsent& unsent) { return unsent.to == node; });
    relays_.for_each([&](Relay& relay) {
        if (relay.stream != nullptr) return;
        ++relay.open; // it does not end while its children change
        for (std::size_t child = 0; child < relay.children.size(); ++child)
            if (relay.children[child].to == node && !relay.children[child].has_answered) replace_child(relay, child);
        close_one(relay);
    });
    for (auto& [name, stream] : streams_) on_lost_in(*stream, node);
    if (go_on(turn)) core_.wake(); // who asked is about to sleep
}

bool Multicasts::is_done(const engine::Turn&) const noexcept {
    bool is_done = std::ranges::all_of(streams_, [](const auto& stream) { return stream.second->flows.empty(); });
    relays_.for_each([&](const Relay& relay) {
        if (!relay.is_masters &&
            std::ranges::any_of(relay.children, [](const Link& child) { return !child.has_answered; }))
            is_done = false;
    });
    return is_done;
}

void Multicasts::on_end(const engine::Turn&) noexcept {
    has_ended_ = true;
    const auto relays = std::exchange(relays_, {}); // with the promises: those who hear of it may want to begin others
    streams_.clear();
    unsent_.clear();
    ready_.clear();
}

/// Afterwards: what is over is let go of, and what is not is gone on with.
void Multicasts::settle(const engine::Turn& turn) noexcept {
    forget_streams();
    // What waits for blocks goes on when they come; what was refused, when there is room.
    const auto is_refused = [](const auto& stream) {
        return std::ranges::any_of(stream.second->flows, &Flow::is_refused);
    };
    const bool has_more = !unsent_.empty() || !ready_.empty() || std::ranges::any_of(streams_, is_refused);
    port_.want_progress(turn, has_more);
    // Once: whoever goes on with it knows. What is ready waits for nothing that comes.
    const bool is_called = std::exchange(is_called_, has_more);
    if ((has_more && !is_called) || !ready_.empty()) core_.call_background(turn);
}

// ---- going out

void Multicasts::append_lead(std::vector<std::byte>& message, const Set& set, const std::vector<Before>& before,
                             const Set& all) {
    const std::size_t begin = message.size();
    set.encode(message);
    const std::size_t count_at = message.size();
    std::uint32_t count = 0;
    append(message, bytes_of(count));
    for (const Before& other : before) {
        const Set members = other.members & set;
        if (members.empty()) continue;
        ++count;
        append(message, bytes_of(other.sequence));
        members.encode(message);
    }
    copy_bytes(message.data() + count_at, bytes_of(count));
    all.encode(message);
    message.resize(begin + (message.size() - begin + 7) / 8 * 8);
}

std::vector<std::byte> Multicasts::lead_of(const Set& set, const std::vector<Before>& before, const Set& all) {
    std::vector<std::byte> lead;
    append_lead(lead, set, before, all);
    return lead;
}

std::optional<Multicasts::Lead> Multicasts::read_lead(Bytes bytes) const {
    const bool is_whole = bytes.size() % 8 == 0; // the content behind it is aligned
    auto set = Set::decode(bytes, core_.nodes());
    std::uint32_t count = 0;
    if (!is_whole || !set || !take(bytes, count) || count > Groups::under_way_max) return {};
    Lead lead{*std::move(set), {}, {}};
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint64_t sequence = 0;
        if (!take(bytes, sequence)) return {};
        auto members = Set::decode(bytes, core_.nodes());
        if (!members) return {};
        lead.before.push_back({sequence, *std::move(members)});
    }
    auto all = Set::decode(bytes, core_.nodes());
    if (!all) return {};
    lead.members = *std::move(all);
    if (bytes.size() >= 8) return {};
    return lead;
}

std::vector<std::byte>& Multicasts::answer_of(Relay& relay, RelayId id) {
    const auto values = combine(relay);
    make_room_for<Answer>(message_);
    const std::size_t begin = message_.size();
    relay.missing.encode(message_);
    const auto set_bytes = static_cast<std::uint32_t>(message_.size() - begin);
    put_head(message_, Answer{Kind::answer, set_bytes, relay.name, id, static_cast<std::uint32_t>(relay.trouble.size()),
                              values ? Brings::values : Brings::nothing});
    append(message_, bytes_of(std::string_view(relay.trouble)));
    if (values) append(message_, *values);
    return message_;
}

/// Masters have no more under way than they may.
bool Multicasts::is_possible(const Source& source, const Purpose& purpose) const noexcept {
    if (source.deliveries.size() >= 2 * Groups::under_way_max || source.relays >= relays_max) return false;
    switch (purpose.use) {
    case Use::handler: return core_.has_handler(purpose.number);
    case Use::take: return true;
    case Use::gather: return core_.calls().has(purpose.number);
    case Use::reduce:
        return core_.calls().has(purpose.number) && purpose.tag <= ~0u &&
               core_.calls().has(static_cast<std::uint32_t>(purpose.tag));
    }
    return false;
}

void Multicasts::send(Node to, std::vector<std::byte>& message) {
    if (core_.is_lost(to) || port_.try_send(to, only_kind, message)) return;
    unsent_.push_back({to, no_relay, message});
}

} // namespace kumi::group
