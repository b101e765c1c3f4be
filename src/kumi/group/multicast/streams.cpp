#include "kumi/group/multicast/streams.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace kumi::group {
namespace {

/// The sender will not have the content: those below it are to be cared for by others.
std::vector<std::byte> resignation(const Name& name, const std::string& why) {
    std::vector<std::byte> nobody;
    Set{}.encode(nobody);
    auto message = message_of(Answer{Kind::answer, static_cast<std::uint32_t>(nobody.size()), name, no_relay,
                                     static_cast<std::uint32_t>(why.size()), Brings::resignation,
                                     static_cast<std::uint16_t>(ErrorCode::no_memory)});
    message.reserve(message.size() + nobody.size() + why.size());
    append(message, nobody);
    append(message, bytes_of(std::string_view(why)));
    return message;
}

} // namespace

Streams::Streams(engine::Dispatcher& dispatcher, const engine::Port& port, const Topology& topology, SendQueue& queue,
                 Relays& relays, Deliveries& deliveries)
    : dispatcher_(dispatcher), topology_(topology), queue_(queue), relays_(relays), deliveries_(deliveries),
      sender_(dispatcher, port) {}

Stream* Streams::find(const Name& name) noexcept {
    const auto found = streams_.find(name);
    return found == streams_.end() ? nullptr : found->second.get();
}

void Streams::forget_ended(const engine::Turn&) {
    std::erase_if(streams_, [&](const auto& entry) {
        const Stream& stream = *entry.second;
        if (stream.relay || !stream.flows.empty()) return false;
        early_.drop(entry.first);
        return true;
    });
}

// ---- beginning

void Streams::begin(const engine::Turn& turn, Relay& relay, StreamShape shape, SharedBytes content) {
    const Node root = shape.root;
    auto& stream = *(streams_[relay.name] = std::make_unique<Stream>(std::move(shape), std::move(content), true));
    if (root == dispatcher_.node()) {
        become_member(turn, stream, relay);
    } else {
        stream.relay = relay.id;
        relay.is_in_blocks = true;
        relays_.expect_child(turn, relay, {root, stream.shape.set});
        stream.push_to(root);
    }
    (void)sender_.go_on(turn, stream);
    if (dispatcher_.is_lost(root)) on_lost_in(turn, stream, root);
}

/// Passes blocks on, and waits for the answers of those below this node.
void Streams::become_member(const engine::Turn& turn, Stream& stream, Relay& relay) {
    stream.relay = relay.id;
    relay.is_in_blocks = true;
    stream.add_circles(dispatcher_.node(), topology_);
    const Set part = stream.part_of(dispatcher_.node(), topology_, [](Node) {});
    for (Child& child : children_of(part, dispatcher_.node(), topology_, stream.shape.pace))
        relays_.expect_child(turn, relay, std::move(child));
}

/// Whether an honest master has begun it: those of one master that have not come whole are no more than the master may
/// have under way.
bool Streams::is_possible(const Block& block) const noexcept {
    if (block.bytes > Groups::content_bytes_max || block.block_bytes < block_bytes_min ||
        block.block_bytes > dispatcher_.message_bytes_max() / 2 ||
        block.lead_bytes > dispatcher_.message_bytes_max() / 4)
        return false;
    if (block.way > Way::scatter_doubling || !goes_in_blocks(block.way)) return false;
    std::size_t bytes = block.bytes;
    std::size_t others = 0;
    for (auto at = streams_.lower_bound({block.name.master, 0});
         at != streams_.end() && at->first.master == block.name.master; ++at) {
        if (at->second->is_whole()) continue;
        bytes += at->second->content->size();
        ++others;
    }
    return others == 0 || (bytes <= under_way_bytes_max && others < Groups::under_way_max);
}

/// The first that this node hears of it. Null: it has no memory for the content, and has given it up.
Stream* Streams::join(const engine::Turn& turn, const Block& head, Lead lead) {
    std::uint64_t before = 0;
    for (const Before& other : lead.before)
        if (other.members.contains(dispatcher_.node())) before = std::max(before, other.sequence);
    auto content = try_make_bytes(head.bytes);
    const bool has_memory = content != nullptr;
    auto& added = streams_[head.name];
    added = std::make_unique<Stream>(StreamShape{.name = head.name,
                                                 .purpose = head.purpose,
                                                 .set = std::move(lead.set),
                                                 .before = std::move(lead.before),
                                                 .root = head.root,
                                                 .way = head.way,
                                                 .pace = {head.gap, 1},
                                                 .block_bytes = head.block_bytes},
                                     has_memory ? std::move(content) : try_make_bytes(0), false);
    Stream& stream = *added;
    if (!has_memory) {
        give_up(turn, head.name, before,
                fmt::format("{}: no memory for {}", dispatcher_.name_of(dispatcher_.node()),
                            base::readable_bytes(head.bytes)));
        return nullptr;
    }
    Relay& relay = relays_.add(turn, head.name, head.purpose);
    relay.open = 1; // until this node has the content
    become_member(turn, stream, relay);
    take_early_answers(turn, stream);
    for (const Node member : stream.shape.set)
        if (dispatcher_.is_lost(member)) on_lost_in(turn, stream, member);
    return &stream;
}

// ---- blocks

Streams::BlockTaken Streams::on_block(const engine::Turn& turn, Node source, const Block& head, Bytes lead_bytes,
                                      Bytes data) {
    const bool wants_answer = head.wants_answer != 0;
    const bool has_lead = !lead_bytes.empty();
    Stream* stream = find(head.name);
    if (stream == nullptr) {
        if (deliveries_.was_seen(head.name)) return answer_latecomer(turn, source, head, has_lead), BlockTaken::sound;
        if (!deliveries_.has_room(head.name.master) || !relays_.is_possible(turn, head.name.master, head.purpose) ||
            !is_possible(head))
            return BlockTaken::unsound;
        auto lead = read_lead(lead_bytes, dispatcher_.nodes());
        if (!lead || !lead->set.contains(dispatcher_.node()) || !lead->set.contains(head.root))
            return BlockTaken::unsound;
        stream = join(turn, head, *std::move(lead));
        if (stream == nullptr) return BlockTaken::sound;
    }
    if (wants_answer && has_lead && head.name.master != dispatcher_.node()) {
        if (stream->relay) stream->asked.add(source);
        else answer_again(turn, head.name, source); // it still passes blocks on
    }
    if (head.index == no_block) {
        if (wants_answer) return BlockTaken::sound;
        // The source lacks blocks, for whatever reason.
        if (!stream->shape.set.contains(source)) return BlockTaken::unsound;
        if (stream->pushed.contains(source)) return BlockTaken::sound;
        stream->push_to(source);
        (void)sender_.go_on(turn, *stream);
        return BlockTaken::sound;
    }
    const Stream::Taken taken = stream->take(head.index, data);
    if (taken == Stream::Taken::unsound) return BlockTaken::unsound;
    if (taken == Stream::Taken::known) return BlockTaken::sound;
    deliveries_.note_heard(head.name.master);
    (void)sender_.go_on(turn, *stream);
    return stream->is_whole() && stream->relay ? BlockTaken::complete : BlockTaken::sound;
}

/// The stream is over here. After a loss another node sends it again, or asks for it.
void Streams::answer_latecomer(const engine::Turn& turn, Node source, const Block& head, bool has_lead) {
    if (head.wants_answer != 0 && has_lead) answer_again(turn, head.name, source);
    else if (head.index == no_block) queue_.send(turn, source, message_of(Over{Kind::over, 0, head.name, 0}));
}

bool Streams::go_on(const engine::Turn& turn) {
    bool any = false;
    for (auto& [name, stream] : streams_) any |= sender_.go_on(turn, *stream);
    return any;
}

bool Streams::is_refused(const engine::Turn&) const {
    return std::ranges::any_of(streams_, [](const auto& stream) {
        return std::ranges::any_of(stream.second->flows, &Stream::Flow::is_refused);
    });
}

bool Streams::is_done(const engine::Turn&) const {
    return std::ranges::all_of(streams_, [](const auto& stream) { return stream.second->flows.empty(); });
}

// ---- answers

/// The node that this node answers and asks: the nearest above it in the tree that is not lost. Nothing: there is none.
std::optional<Node> Streams::parent_in(const Stream& stream) const {
    const Node self = dispatcher_.node();
    const Node master = stream.name().master;
    std::optional<Node> parent;
    const auto is_there = [&](Node node) { return !dispatcher_.is_lost(node) && !stream.out.contains(node); };
    if (master != self && is_there(master)) parent = master;
    (void)stream.part_of(self, topology_, [&](Node above) {
        if (is_there(above)) parent = above;
    });
    return parent;
}

void Streams::on_answer(const engine::Turn& turn, Node source, const ReceivedAnswer& answer, Bytes bytes) {
    const Name& name = answer.head.name;
    Stream* const stream = find(name);
    if (stream != nullptr && stream->relay && take_answer(turn, relay_of(*stream), source, answer)) return;
    if (stream == nullptr && name.master == dispatcher_.node()) return; // over
    if (stream == nullptr && deliveries_.was_seen(name)) return;
    early_.add(name, source, bytes);
}

bool Streams::take_answer(const engine::Turn& turn, Relay& relay, Node source, const ReceivedAnswer& answer) {
    const RelayChild* const child = Relays::find_child(relay, source);
    if (child == nullptr) return false;
    Stream& stream = *find(relay.name);
    stream.stop_pushing_to(source); // it has all blocks, and so have those below it; or it wants none
    if (answer.head.brings == Brings::resignation) adopt(turn, stream, relay, source, Set(child->part));
    return relays_.take_answer(turn, relay, source, answer);
}

void Streams::take_early_answers(const engine::Turn& turn, Stream& stream) {
    while (stream.relay) {
        Relay& relay = relay_of(stream);
        const auto early =
            early_.take(stream.name(), [&](Node node) { return Relays::find_child(relay, node) != nullptr; });
        if (!early) return;
        (void)take_answer(turn, relay, early->first, *read_answer(early->second, dispatcher_.nodes()));
    }
}

void Streams::end_relay(const engine::Turn& turn, Relay& relay) {
    Stream& stream = *find(relay.name);
    stream.relay.reset();
    if (relay.is_masters) return;
    auto answer = relays_.answer_of(turn, relay, no_relay);
    answered_.put(relay.name, answer);
    if (const auto parent = parent_in(stream)) stream.asked.add(*parent);
    for (const Node to : stream.asked) queue_.send(turn, to, answer);
}

/// A node that has taken over from a lost node asks for the answer.
void Streams::answer_again(const engine::Turn& turn, const Name& name, Node to) {
    if (auto* const answer = answered_.find(name)) return queue_.send(turn, to, *answer);
    if (deliveries_.was_missed(name)) return queue_.send(turn, to, resignation(name, {}));
    Relay forgotten;
    forgotten.name = name;
    forgotten.trouble = fmt::format("{} has forgotten what it answered", dispatcher_.name_of(dispatcher_.node()));
    queue_.send(turn, to, relays_.answer_of(turn, forgotten, no_relay));
}

void Streams::note_out(const engine::Turn&, const Name& name, Node node) {
    if (Stream* const stream = find(name)) stream->out.add(node);
}

// ---- losses

/// `out`, a child of this node's, is lost or has resigned: those below it are this node's to care for.
void Streams::adopt(const engine::Turn& turn, Stream& stream, Relay& relay, Node out, const Set& part) {
    relay.missing.add(out);
    for (Child& child : children_of(part, out, topology_, stream.shape.pace)) {
        if (!dispatcher_.is_lost(child.to)) stream.push_to(child.to);
        relays_.expect_child(turn, relay, std::move(child));
    }
}

void Streams::on_lost(const engine::Turn& turn, Node node) {
    for (auto& [name, stream] : streams_) on_lost_in(turn, *stream, node);
}

/// A member is lost: its parent takes over its children. Others may have waited for blocks from it, or may never have
/// heard of any, so each parent sends all blocks to those of its children that have not answered.
void Streams::on_lost_in(const engine::Turn& turn, Stream& stream, Node node) {
    if (!stream.relay || !stream.shape.set.contains(node)) return;
    Relay& relay = relay_of(stream);
    ++relay.open; // it does not become complete while its children change
    for (std::size_t i = 0; i < relay.children.size(); ++i) {
        if (relay.children[i].has_answered || !dispatcher_.is_lost(relay.children[i].to)) continue;
        relay.children[i].has_answered = true;
        adopt(turn, stream, relay, relay.children[i].to, Set(relay.children[i].part));
        --relay.open;
    }
    take_early_answers(turn, stream);
    for (const RelayChild& child : relay.children)
        if (!child.has_answered) stream.push_to(child.to);
    relays_.close_one(turn, relay);
}

void Streams::ask_for_answer(const engine::Turn& turn, const Name& name, Node child) {
    sender_.ask(turn, *find(name), child, true);
}

void Streams::ask_for_blocks(const engine::Turn& turn, Set& masters) {
    for (const auto& [name, stream] : streams_) {
        if (stream->is_whole()) continue;
        masters.add(name.master);
        const bool is_stuck = stream->is_stuck();
        if (const auto parent = parent_in(*stream); parent && is_stuck) sender_.ask(turn, *stream, *parent, false);
    }
    early_.each_name([&](const Name& name) { masters.add(name.master); });
}

// ---- what will not come

void Streams::give_up(const engine::Turn& turn, const Name& name, std::uint64_t before, const std::string& why) {
    Stream* const stream = find(name);
    if (stream == nullptr) early_.drop(name);
    if (stream != nullptr && !stream->is_whole()) {
        resign(turn, *stream, why);
        if (stream->relay) relays_.give_back(turn, relays_.remove(turn, relay_of(*stream)));
        stream->relay.reset();
        stream->flows.clear();
    }
    deliveries_.give_up(name, before);
}

/// This node will not have the content: its parent is to care for those below it.
void Streams::resign(const engine::Turn& turn, const Stream& stream, const std::string& why) {
    Set told = stream.asked;
    if (const auto parent = parent_in(stream)) told.add(*parent);
    for (const Node to : told) queue_.send(turn, to, resignation(stream.name(), why));
}

void Streams::give_up_rest_of(const engine::Turn& turn, Node master) {
    std::set<std::uint64_t> absent;
    for (auto at = streams_.lower_bound({master, 0}); at != streams_.end() && at->first.master == master; ++at)
        if (!at->second->is_whole() && !parent_in(*at->second)) absent.insert(at->first.sequence);
    deliveries_.add_absent(master, absent);
    for (const std::uint64_t sequence : absent)
        give_up(turn, {master, sequence}, deliveries_.last_before({master, sequence}));
    for (const Name& name : early_.names_of(master))
        if (find(name) == nullptr) early_.drop(name);
}

} // namespace kumi::group
