#include "kumi/group/multicast/stream.hpp"

#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <utility>

namespace kumi::group {

Stream::Stream(StreamShape of, SharedBytes bytes, bool has_all)
    : shape(std::move(of)), content(std::move(bytes)),
      blocks_(static_cast<std::uint32_t>(
          std::max<std::size_t>(1, (content->size() + shape.block_bytes - 1) / shape.block_bytes))),
      has_(blocks_) {
    if (!has_all) return;
    has_.set_range(0, blocks_);
    arrived_ = blocks_;
}

Bytes Stream::bytes_in(std::uint32_t begin, std::uint32_t end) const noexcept {
    const std::size_t first = std::size_t{begin} * shape.block_bytes;
    return Bytes(*content).subspan(first, std::min(std::size_t{end} * shape.block_bytes, content->size()) - first);
}

Stream::Taken Stream::take(std::uint32_t index, Bytes data) {
    const std::size_t count = std::max<std::size_t>(1, (data.size() + shape.block_bytes - 1) / shape.block_bytes);
    if (index >= blocks_ || count > blocks_ - index) return Taken::unsound;
    const std::uint32_t end = index + static_cast<std::uint32_t>(count);
    if (data.size() != bytes_in(index, end).size()) return Taken::unsound;
    if (has(index, end)) return Taken::known;
    copy_bytes(content->data() + std::size_t{index} * shape.block_bytes, data);
    for (std::uint32_t block = index; block < end; ++block)
        if (!has_.test(block)) has_.set(block), ++arrived_;
    return Taken::fresh;
}

bool Stream::is_stuck() noexcept { return std::exchange(arrived_at_look_, arrived_) == arrived_; }

Block Stream::head(std::size_t lead_bytes, std::uint32_t index, bool wants_answer) const noexcept {
    return {Kind::block,
            static_cast<std::uint32_t>(lead_bytes),
            shape.name,
            shape.purpose,
            content->size(),
            shape.block_bytes,
            index,
            shape.root,
            shape.way,
            wants_answer ? 1u : 0u,
            0,
            shape.pace.gap / shape.pace.hop};
}

void Stream::add_circles(Node self, const Topology& topology) {
    for (Circle& circle : circles_of(shape.set, shape.root, self, topology)) {
        Schedule schedule(shape.way, static_cast<Node>(circle.members.size()), circle.rank, blocks_);
        flows.push_back({.members = std::move(circle.members), .schedule = std::move(schedule)});
    }
}

void Stream::push_to(Node to) {
    if (pushed.contains(to)) return;
    pushed.add(to);
    flows.push_back({.members = {to}, .is_refused = true}); // it is to be begun
}

void Stream::stop_pushing_to(Node to) {
    flows.remove_if([&](const Flow& flow) { return !flow.schedule && flow.members.front() == to; });
}

Set Stream::part_of(Node self, const Topology& topology, base::FunctionRef<void(Node)> visit) const {
    Node at = shape.root;
    Set part = shape.set;
    while (at != self) {
        visit(at);
        auto children = children_of(part, at, topology, shape.pace);
        const auto next = std::ranges::find_if(children, [&](const Child& child) { return child.part.contains(self); });
        at = next->to;
        part = std::move(next->part);
    }
    return part;
}

// ---- sending

bool BlockSender::go_on(const engine::Turn& turn, Stream& stream) {
    bool any = false;
    for (auto flow = stream.flows.begin(); flow != stream.flows.end();) {
        any |= go_on(turn, stream, *flow);
        if (flow->next >= stream.steps_of(*flow)) flow = stream.flows.erase(flow);
        else ++flow;
    }
    return any;
}

bool BlockSender::go_on(const engine::Turn& turn, Stream& stream, Stream::Flow& flow) {
    bool any = false;
    const std::uint32_t steps = stream.steps_of(flow);
    const auto at_once = std::max<std::uint32_t>(
        1, static_cast<std::uint32_t>(dispatcher_.message_bytes_max() / 2 / stream.shape.block_bytes));
    flow.is_refused = false;
    for (; flow.next < steps; ++flow.next, flow.sent = 0) {
        const auto step = flow.schedule ? flow.schedule->step(flow.next) : Passing{0, flow.next, flow.next + 1};
        if (!step || dispatcher_.is_lost(flow.members[step->to])) continue;
        for (std::uint32_t begin = step->begin + flow.sent; begin < step->end; begin = step->begin + flow.sent) {
            const std::uint32_t end = begin + std::min(at_once, step->end - begin);
            if (!stream.has(begin, end)) return any;
            if ((flow.is_refused = !send_blocks(turn, stream, flow, flow.members[step->to], begin, end))) return any;
            flow.sent += end - begin;
            any = true;
        }
    }
    return any;
}

bool BlockSender::send_blocks(const engine::Turn& turn, const Stream& stream, Stream::Flow& flow, Node to,
                              std::uint32_t begin, std::uint32_t end) {
    if (dispatcher_.outbox(turn).credits().under_way(to) >= under_way_max) return false;
    std::vector<std::byte> lead;
    if (!flow.opened.contains(to)) lead = stream.lead();
    auto message = message_of(stream.head(lead.size(), begin, !flow.schedule));
    append(message, lead);
    if (!port_.try_send(to, only_kind, message, stream.bytes_in(begin, end))) return false;
    if (!lead.empty()) flow.opened.add(to);
    return true;
}

void BlockSender::ask(const engine::Turn&, const Stream& stream, Node node, bool for_answer) {
    const auto lead = stream.lead();
    auto message = message_of(stream.head(lead.size(), no_block, for_answer));
    append(message, lead);
    (void)port_.try_send(node, only_kind, message);
}

} // namespace kumi::group
