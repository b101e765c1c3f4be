// Multicasts in blocks: each member passes blocks round in circles, as their way has it, and answers climb the tree that the set makes.

#include "kumi/group/casts.hpp"

#include "kumi/engine/parameters.hpp"

#include <algorithm>
#include <utility>

namespace kumi::group {

Casts::Stream* Casts::find_stream(const Name& name) noexcept {
    const auto found = streams_.find(name);
    return found == streams_.end() ? nullptr : found->second.get();
}

Casts::Stream& Casts::add_stream(const Name& name, const Purpose& purpose, Lead lead, Node root, Way way, const Pace& pace,
                                 std::shared_ptr<std::vector<std::byte>> content, std::uint32_t block_bytes) {
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
    stream.blocks = static_cast<std::uint32_t>(std::max<std::size_t>(1, (stream.content->size() + block_bytes - 1) / block_bytes));
    stream.has = base::Bitmap(stream.blocks);
    if (name.master == core_->node()) { // it has all
        stream.has.set_range(0, stream.blocks);
        stream.arrived = stream.blocks;
    }
    return stream;
}

/// Passes blocks on, and waits for the answers of those below it.
void Casts::make_member(Stream& stream) {
    const Node self = core_->node();
    for (Circle& circle : circles_of(stream.set, stream.root, self, topology_)) {
        Schedule schedule(stream.way, static_cast<Node>(circle.members.size()), circle.rank, stream.blocks);
        stream.flows.push_back({.members = std::move(circle.members), .schedule = std::move(schedule)});
    }
    Node at = stream.root;
    Set part = stream.set;
    while (true) {
        auto children = children_of(part, at, topology_, stream.pace);
        if (at == self) {
            Relay& relay = *find(*stream.relay);
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

void Casts::add_direct_flow(Stream& stream, Node to) {
    stream.pushed.add(to);
    stream.flows.push_back({.members = {to}, .is_refused = true}); // it is to be begun
}

/// As start() makes them: of what a master has under way, those that have not come whole are no more than all.
bool Casts::is_possible(const Block& block) const noexcept {
    if (block.bytes > Groups::content_bytes_max || block.block_bytes < block_bytes_min || block.block_bytes > core_->message_bytes_max()) return false;
    if (block.way > Way::scatter_doubling || !goes_in_blocks(block.way)) return false;
    std::size_t bytes = block.bytes;
    std::size_t others = 0;
    for (auto at = streams_.lower_bound({block.name.master, 0}); at != streams_.end() && at->first.master == block.name.master; ++at) {
        if (at->second->arrived == at->second->blocks) continue;
        bytes += at->second->content->size();
        ++others;
    }
    return others == 0 || (bytes <= under_way_bytes_max && others < Groups::under_way_max);
}

bool Casts::on_block(Node source, Bytes bytes) {
    Block head;
    if (!read_value(bytes, head) || head.name.master >= core_->nodes()) return false;
    bytes = bytes.subspan(sizeof head);
    if (head.lead_bytes > bytes.size()) return false;
    const Bytes lead_bytes = bytes.first(head.lead_bytes);
    const Bytes data = bytes.subspan(head.lead_bytes);
    Stream* stream = find_stream(head.name);
    if (stream == nullptr) {
        if (was_seen(sources_[head.name.master], head.name.sequence)) { // somebody sends it again: after a loss, and may wait for the answer
            if (!lead_bytes.empty()) answer_again(head.name, source);
            return true;
        }
        if (!is_possible(head.name, head.purpose) || !is_possible(head)) return false;
        auto lead = read_lead(lead_bytes);
        if (!lead || !lead->set.contains(core_->node()) || !lead->set.contains(head.root)) return false;
        auto content = std::make_shared<std::vector<std::byte>>(head.bytes);
        stream = &add_stream(head.name, head.purpose, *std::move(lead), head.root, head.way, {head.gap, 1}, std::move(content), head.block_bytes);
        Relay& relay = add_relay(head.name, head.purpose);
        relay.open = 1; // until this node has it
        relay.stream = stream;
        stream->relay = relay.id;
        make_member(*stream);
        take_early_answers(*stream);
        for (const Node member : stream->set)
            if (core_->is_lost(member)) on_lost_in(*stream, member);
    }
    if (!stream->relay && !lead_bytes.empty() && head.name.master != core_->node()) answer_again(head.name, source); // it still passes it on
    const std::size_t count = std::max<std::size_t>(1, (data.size() + stream->block_bytes - 1) / stream->block_bytes);
    if (head.index >= stream->blocks || count > stream->blocks - head.index) return false;
    const std::uint32_t end = head.index + static_cast<std::uint32_t>(count);
    if (data.size() != bytes_in(*stream, head.index, end).size()) return false;
    if (stream->has.next_clear(head.index) >= end) return true;
    copy_bytes(stream->content->data() + std::size_t{head.index} * stream->block_bytes, data);
    for (std::uint32_t block = head.index; block < end; ++block)
        if (!stream->has.test(block)) stream->has.set(block), ++stream->arrived;
    (void)go_on(*stream);
    if (stream->arrived == stream->blocks) deliver(*find(*stream->relay), stream->set, stream->before, {*stream->content, stream->content});
    return true;
}

/// Sends what it can; true if it sent something.
bool Casts::go_on(Stream& stream) {
    bool any = false;
    for (auto flow = stream.flows.begin(); flow != stream.flows.end();) {
        any |= go_on(stream, *flow);
        const std::uint32_t steps = flow->schedule ? flow->schedule->steps() : stream.blocks;
        if (flow->next >= steps) flow = stream.flows.erase(flow);
        else ++flow;
    }
    return any;
}

bool Casts::go_on(Stream& stream, Flow& flow) {
    bool any = false;
    const std::uint32_t steps = flow.schedule ? flow.schedule->steps() : stream.blocks;
    const auto at_once = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(core_->message_bytes_max() / 2 / stream.block_bytes));
    flow.is_refused = false;
    for (; flow.next < steps; ++flow.next, flow.sent = 0) {
        const auto step = flow.schedule ? flow.schedule->step(flow.next) : Passing{0, flow.next, flow.next + 1};
        if (!step || core_->is_lost(flow.members[step->to])) continue;
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

bool Casts::send_blocks(Stream& stream, Flow& flow, Node to, std::uint32_t begin, std::uint32_t end) {
    if (core_->under_way(to) >= blocks_under_way_max) return false;
    std::vector<std::byte> lead;
    if (!flow.opened.contains(to)) lead = lead_of(stream.set, stream.before, {});
    const Block head{Kind::block, static_cast<std::uint32_t>(lead.size()), stream.name, stream.purpose, stream.content->size(), stream.block_bytes, begin,
                     stream.root, stream.way, stream.pace.gap / stream.pace.hop};
    std::vector<std::byte> message(engine::header_room + sizeof head + lead.size());
    copy_bytes(message.data() + engine::header_room, bytes_of(head));
    copy_bytes(message.data() + engine::header_room + sizeof head, lead);
    if (!core_->try_send(to, handler_, message, bytes_in(stream, begin, end))) return false;
    if (!lead.empty()) flow.opened.add(to);
    return true;
}

/// The bytes of blocks; the last block may be a short one.
Bytes Casts::bytes_in(const Stream& stream, std::uint32_t begin, std::uint32_t end) noexcept {
    const std::size_t first = std::size_t{begin} * stream.block_bytes;
    return Bytes(*stream.content).subspan(first, std::min(std::size_t{end} * stream.block_bytes, stream.content->size()) - first);
}

// ---- answers and losses

/// Whom this node answers, and asks: the nearest above it in the tree that is not lost; nobody, if there is none.
std::optional<Node> Casts::parent_in(const Stream& stream) const {
    const Node self = core_->node();
    std::optional<Node> parent;
    if (stream.name.master != self && !core_->is_lost(stream.name.master)) parent = stream.name.master;
    Node at = stream.root;
    Set part = stream.set;
    while (at != self) {
        if (!core_->is_lost(at)) parent = at;
        const auto children = children_of(part, at, topology_, stream.pace);
        const auto next = std::ranges::find_if(children, [&](const Child& child) { return child.part.contains(self); });
        at = next->to;
        part = next->part;
    }
    return parent;
}

void Casts::answer_for(Stream& stream, Relay& relay) {
    if (answered_in_order_.size() >= answered_max) {
        answered_.erase(answered_in_order_.front());
        answered_in_order_.pop_front();
    }
    auto& answer = answered_[stream.name] = answer_of(relay, no_relay);
    answered_in_order_.push_back(stream.name);
    if (const auto parent = parent_in(stream)) send(*parent, answer);
}

/// Somebody who has taken over from one that is lost asks for it.
void Casts::answer_again(const Name& name, Node to) {
    if (const auto answer = answered_.find(name); answer != answered_.end()) send(to, answer->second);
}

bool Casts::take_early_answers(Stream& stream) {
    bool any = false;
    const auto early = early_.find(stream.name);
    if (early == early_.end()) return false;
    for (auto answer = early->second.begin(); answer != early->second.end() && stream.relay;) {
        if (take_answer(*find(*stream.relay), answer->first, answer->second)) {
            answer = early->second.erase(answer);
            any = true;
        } else {
            ++answer;
        }
    }
    return any;
}

/// A member is lost: its parent takes over its children. And since others may have waited for blocks from it, or have never heard
/// of any, each parent sends all of them to those of its children that have not answered.
void Casts::on_lost_in(Stream& stream, Node node) {
    if (!stream.relay || !stream.set.contains(node)) return;
    Relay& relay = *find(*stream.relay);
    ++relay.open; // it does not end while its children change
    for (std::size_t i = 0; i < relay.children.size(); ++i) {
        if (relay.children[i].has_answered || !core_->is_lost(relay.children[i].to)) continue;
        relay.children[i].has_answered = true;
        const Link lost = relay.children[i];
        relay.missing.add(lost.to);
        for (Child& child : children_of(lost.part, lost.to, topology_, stream.pace)) {
            relay.children.push_back({child.to, std::move(child.part)});
            ++relay.open;
        }
        --relay.open;
    }
    take_early_answers(stream);
    for (const Link& child : relay.children)
        if (!child.has_answered && !stream.pushed.contains(child.to)) add_direct_flow(stream, child.to);
    close_one(relay);
}

void Casts::forget_streams() {
    std::erase_if(streams_, [&](const auto& entry) {
        const Stream& stream = *entry.second;
        if (stream.relay || !stream.flows.empty()) return false;
        early_.erase(entry.first);
        return true;
    });
}

} // namespace kumi::group
