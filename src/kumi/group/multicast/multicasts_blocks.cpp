// Multicasts in blocks: each member passes blocks round in circles, as their way has it, and answers climb the tree
// that the set makes.

#include "kumi/group/multicast/multicasts.hpp"

#include "kumi/base/machine.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <utility>

namespace kumi::group {

Multicasts::Stream* Multicasts::find_stream(const Name& name) noexcept {
    const auto found = streams_.find(name);
    return found == streams_.end() ? nullptr : found->second.get();
}

Multicasts::Stream& Multicasts::add_stream(const Name& name, const Purpose& purpose, Lead lead, Node root, Way way,
                                           const Pace& pace, std::shared_ptr<std::vector<std::byte>> content,
                                           std::uint32_t block_bytes) {
    auto& slot = streams_[name];
    slot = std::make_unique<Stream>();
    Stream& stream = *slot;
    stream.name = name;
    stream.purpose = purpose;
    stream.set = std::move(lead.set);
    stream.before = std::move(lead.before);
    stream.root = root;
    stream.way = way;
    stream.pace = pace;
    stream.content = std::move(content);
    stream.block_bytes = block_bytes;
    stream.blocks =
        static_cast<std::uint32_t>(std::max<std::size_t>(1, (stream.content->size() + block_bytes - 1) / block_bytes));
    stream.has = base::Bitmap(stream.blocks);
    if (name.master == core_.node()) { // it has all
        stream.has.set_range(0, stream.blocks);
        stream.arrived = stream.blocks;
    }
    return stream;
}

/// Passes blocks on, and waits for the answers of those below it.
void Multicasts::make_member(Stream& stream) {
    const Node self = core_.node();
    for (Circle& circle : circles_of(stream.set, stream.root, self, topology_)) {
        Schedule schedule(stream.way, static_cast<Node>(circle.members.size()), circle.rank, stream.blocks);
        stream.flows.push_back({.members = std::move(circle.members), .schedule = std::move(schedule)});
    }
    Node at = stream.root;
    Set part = stream.set;
    while (true) {
        auto children = children_of(part, at, topology_, stream.pace);
        if (at == self) {
            Relay& relay = *relays_.find(*stream.relay);
            for (Child& child : children) {
                relay.children.push_back({child.to, std::move(child.part)});
                ++relay.open;
            }
            return;
        }
        const auto next = std::ranges::find_if(children, [&](const Child& child) { return child.part.contains(self); });
        at = next->to;
        part = std::move(next->part);
    }
}

void Multicasts::add_direct_flow(Stream& stream, Node to) {
    stream.pushed.add(to);
    stream.flows.push_back({.members = {to}, .is_refused = true}); // it is to be begun
}

/// As start() makes them: of what a master has under way, those that have not come whole are no more than all.
bool Multicasts::is_possible(const Block& block) const noexcept {
    if (block.bytes > Groups::content_bytes_max || block.block_bytes < block_bytes_min ||
        block.block_bytes > core_.message_bytes_max() / 2 || block.lead_bytes > core_.message_bytes_max() / 4)
        return false;
    if (block.way > Way::scatter_doubling || !goes_in_blocks(block.way)) return false;
    std::size_t bytes = block.bytes;
    std::size_t others = 0;
    for (auto at = streams_.lower_bound({block.name.master, 0});
         at != streams_.end() && at->first.master == block.name.master; ++at) {
        if (at->second->arrived == at->second->blocks) continue;
        bytes += at->second->content->size();
        ++others;
    }
    return others == 0 || (bytes <= under_way_bytes_max && others < Groups::under_way_max);
}

bool Multicasts::on_block(Node source, Bytes bytes) {
    Block head;
    if (!read_value(bytes, head) || head.name.master >= core_.nodes()) return false;
    bytes = bytes.subspan(sizeof head);
    if (head.lead_bytes > bytes.size()) return false;
    const Bytes lead_bytes = bytes.first(head.lead_bytes);
    const Bytes data = bytes.subspan(head.lead_bytes);
    Stream* stream = find_stream(head.name);
    if (stream == nullptr) {
        // over: who has to know was told
        if (head.name.master == core_.node()) return head.name.sequence < next_sequence_;
        Source& origin = sources_[head.name.master];
        if (origin.sequences.was_seen(head.name.sequence)) { // somebody sends it again: after a loss
            if (head.wants_answer != 0 && !lead_bytes.empty()) answer_again(head.name, source);
            else if (head.index == no_block) send(source, message_of(Over{Kind::over, 0, head.name, 0}));
            return true;
        }
        if (!is_possible(origin, head.purpose) || !is_possible(head)) return false;
        auto lead = read_lead(lead_bytes);
        if (!lead || !lead->set.contains(core_.node()) || !lead->set.contains(head.root)) return false;
        auto content = try_make_content(head.bytes);
        const bool has_room = content != nullptr;
        if (!has_room) content = try_make_content(0);
        stream = &add_stream(head.name, head.purpose, *std::move(lead), head.root, head.way, {head.gap, 1},
                             std::move(content), head.block_bytes);
        if (!has_room) {
            std::uint64_t before = 0;
            for (const Before& other : stream->before)
                if (other.members.contains(core_.node())) before = std::max(before, other.sequence);
            return give_up(head.name, before,
                           fmt::format("{}: no memory for {}", core_.name_of(core_.node()),
                                       base::readable_bytes(head.bytes))),
                   true;
        }
        Relay& relay = add_relay(head.name, head.purpose);
        ++origin.relays;
        relay.open = 1; // until this node has it
        relay.stream = stream;
        stream->relay = relay.id;
        make_member(*stream);
        take_early_answers(*stream);
        for (const Node member : stream->set)
            if (core_.is_lost(member)) on_lost_in(*stream, member);
    }
    if (head.wants_answer != 0 && !lead_bytes.empty() && head.name.master != core_.node()) {
        if (stream->relay) stream->asked.add(source);
        else answer_again(head.name, source); // it still passes it on
    }
    if (head.index == no_block) return head.wants_answer != 0 || push_to(*stream, source);
    const std::size_t count = std::max<std::size_t>(1, (data.size() + stream->block_bytes - 1) / stream->block_bytes);
    if (head.index >= stream->blocks || count > stream->blocks - head.index) return false;
    const std::uint32_t end = head.index + static_cast<std::uint32_t>(count);
    if (data.size() != bytes_in(*stream, head.index, end).size()) return false;
    if (stream->has.next_clear(head.index) >= end) return true;
    sources_[head.name.master].quiet_looks = 0;
    copy_bytes(stream->content->data() + std::size_t{head.index} * stream->block_bytes, data);
    for (std::uint32_t block = head.index; block < end; ++block)
        if (!stream->has.test(block)) stream->has.set(block), ++stream->arrived;
    (void)go_on(*stream);
    if (stream->arrived == stream->blocks && stream->relay)
        deliver(*relays_.find(*stream->relay), stream->set, stream->before, {*stream->content, stream->content});
    return true;
}

/// It misses some, and nobody knows why. False: it is no member.
bool Multicasts::push_to(Stream& stream, Node to) {
    if (!stream.set.contains(to)) return false;
    if (stream.pushed.contains(to)) return true;
    add_direct_flow(stream, to);
    (void)go_on(stream);
    return true;
}

/// For its blocks, or for its answer. Who has never heard of it hears of it now, and asks further up for the blocks. If
/// there is no room it is asked the next time.
void Multicasts::ask(const Stream& stream, Node node, bool for_answer) {
    const auto lead = lead_of(stream.set, stream.before, {});
    auto message = message_of(head_of(stream, lead.size(), no_block, for_answer));
    append(message, lead);
    (void)port_.try_send(node, only_kind, message);
}

/// Sends what it can; true if it sent something.
bool Multicasts::go_on(Stream& stream) {
    bool any = false;
    for (auto flow = stream.flows.begin(); flow != stream.flows.end();) {
        any |= go_on(stream, *flow);
        const std::uint32_t steps = flow->schedule ? flow->schedule->steps() : stream.blocks;
        if (flow->next >= steps) flow = stream.flows.erase(flow);
        else ++flow;
    }
    return any;
}

bool Multicasts::go_on(Stream& stream, Flow& flow) {
    bool any = false;
    const std::uint32_t steps = flow.schedule ? flow.schedule->steps() : stream.blocks;
    const auto at_once =
        std::max<std::uint32_t>(1, static_cast<std::uint32_t>(core_.message_bytes_max() / 2 / stream.block_bytes));
    flow.is_refused = false;
    for (; flow.next < steps; ++flow.next, flow.sent = 0) {
        const auto step = flow.schedule ? flow.schedule->step(flow.next) : Passing{0, flow.next, flow.next + 1};
        if (!step || core_.is_lost(flow.members[step->to])) continue;
        for (std::uint32_t begin = step->begin + flow.sent; begin < step->end; begin = step->begin + flow.sent) {
            const std::uint32_t end = begin + std::min(at_once, step->end - begin);
            if (stream.has.next_clear(begin) < end) return any;
            if ((flow.is_refused = !send_blocks(stream, flow, flow.members[step->to], begin, end))) return any;
            flow.sent += end - begin;
            any = true;
        }
    }
    return any;
}

Block Multicasts::head_of(const Stream& stream, std::size_t lead_bytes, std::uint32_t index,
                          bool wants_answer) noexcept {
    return {Kind::block,
            static_cast<std::uint32_t>(lead_bytes),
            stream.name,
            stream.purpose,
            stream.content->size(),
            stream.block_bytes,
            index,
            stream.root,
            stream.way,
            wants_answer ? 1u : 0u,
            0,
            stream.pace.gap / stream.pace.hop};
}

bool Multicasts::send_blocks(Stream& stream, Flow& flow, Node to, std::uint32_t begin, std::uint32_t end) {
    if (core_.under_way(to) >= blocks_under_way_max) return false;
    std::vector<std::byte> lead;
    if (!flow.opened.contains(to)) lead = lead_of(stream.set, stream.before, {});
    auto message = message_of(head_of(stream, lead.size(), begin, !flow.schedule));
    append(message, lead);
    if (!port_.try_send(to, only_kind, message, bytes_in(stream, begin, end))) return false;
    if (!lead.empty()) flow.opened.add(to);
    return true;
}

/// The bytes of blocks; the last block may be a short one.
Bytes Multicasts::bytes_in(const Stream& stream, std::uint32_t begin, std::uint32_t end) noexcept {
    const std::size_t first = std::size_t{begin} * stream.block_bytes;
    return Bytes(*stream.content)
        .subspan(first, std::min(std::size_t{end} * stream.block_bytes, stream.content->size()) - first);
}

// ---- answers and losses

/// Whom this node answers, and asks: the nearest above it in the tree that is not lost; nobody, if there is none.
std::optional<Node> Multicasts::parent_in(const Stream& stream) const {
    const Node self = core_.node();
    std::optional<Node> parent;
    const auto is_there = [&](Node node) { return !core_.is_lost(node) && !stream.out.contains(node); };
    if (stream.name.master != self && is_there(stream.name.master)) parent = stream.name.master;
    Node at = stream.root;
    Set part = stream.set;
    while (at != self) {
        if (is_there(at)) parent = at;
        const auto children = children_of(part, at, topology_, stream.pace);
        const auto next = std::ranges::find_if(children, [&](const Child& child) { return child.part.contains(self); });
        at = next->to;
        part = next->part;
    }
    return parent;
}

void Multicasts::answer_for(Stream& stream, Relay& relay) {
    auto answer = answer_of(relay, no_relay);
    answered_.put(stream.name, answer);
    if (const auto parent = parent_in(stream)) stream.asked.add(*parent);
    for (const Node to : stream.asked) send(to, answer);
}

/// Somebody who has taken over from one that is lost asks for it.
void Multicasts::answer_again(const Name& name, Node to) {
    if (auto* const answer = answered_.find(name)) return send(to, *answer);
    if (sources_[name.master].sequences.was_missed(name.sequence)) return send(to, resignation(name, {}));
    Relay forgotten;
    forgotten.name = name;
    forgotten.trouble = fmt::format("{} has forgotten what it answered", core_.name_of(core_.node()));
    send(to, answer_of(forgotten, no_relay));
}

void Multicasts::take_early_answers(Stream& stream) {
    const auto early = early_.find(stream.name);
    if (early == early_.end()) return;
    for (auto answer = early->second.begin(); answer != early->second.end() && stream.relay;) {
        Relay& relay = *relays_.find(*stream.relay);
        if (find_child(relay, answer->first) != nullptr) {
            (void)take_answer(relay, answer->first, *read_answer(answer->second));
            early_bytes_ -= answer->second.size();
            early->second.erase(answer);
            answer = early->second.begin(); // there may be others to wait for now
        } else {
            ++answer;
        }
    }
}

/// This node will not have it: who cares for it is to care for those below it.
void Multicasts::resign(const Stream& stream, const std::string& why) {
    Set told = stream.asked;
    if (const auto parent = parent_in(stream)) told.add(*parent);
    for (const Node to : told) send(to, resignation(stream.name, why));
}

std::vector<std::byte> Multicasts::resignation(const Name& name, const std::string& why) {
    std::vector<std::byte> nobody;
    Set{}.encode(nobody);
    auto message = message_of(Answer{Kind::answer, static_cast<std::uint32_t>(nobody.size()), name, no_relay,
                                     static_cast<std::uint32_t>(why.size()), Brings::resignation});
    message.reserve(message.size() + nobody.size() + why.size());
    append(message, nobody);
    append(message, bytes_of(std::string_view(why)));
    return message;
}

/// One below this node will not have it, or cannot tell: those below that one are this node's to care for.
void Multicasts::adopt(Stream& stream, const Link& out) {
    Relay& relay = *relays_.find(*stream.relay);
    relay.missing.add(out.to);
    for (Child& child : children_of(out.part, out.to, topology_, stream.pace)) {
        if (!core_.is_lost(child.to) && !stream.pushed.contains(child.to)) add_direct_flow(stream, child.to);
        relay.children.push_back({child.to, std::move(child.part)});
        ++relay.open;
    }
}

/// A member is lost: its parent takes over its children. And since others may have waited for blocks from it, or have
/// never heard of any, each parent sends all of them to those of its children that have not answered.
void Multicasts::on_lost_in(Stream& stream, Node node) {
    if (!stream.relay || !stream.set.contains(node)) return;
    Relay& relay = *relays_.find(*stream.relay);
    ++relay.open; // it does not end while its children change
    for (std::size_t i = 0; i < relay.children.size(); ++i) {
        if (relay.children[i].has_answered || !core_.is_lost(relay.children[i].to)) continue;
        relay.children[i].has_answered = true;
        adopt(stream, Link(relay.children[i]));
        --relay.open;
    }
    take_early_answers(stream);
    for (const Link& child : relay.children)
        if (!child.has_answered && !stream.pushed.contains(child.to)) add_direct_flow(stream, child.to);
    close_one(relay);
}

void Multicasts::forget_streams() {
    std::erase_if(streams_, [&](const auto& entry) {
        const Stream& stream = *entry.second;
        if (stream.relay || !stream.flows.empty()) return false;
        drop_early(entry.first);
        return true;
    });
}

} // namespace kumi::group
