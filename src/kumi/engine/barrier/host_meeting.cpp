#include "kumi/engine/barrier/host_meeting.hpp"

#include "kumi/engine/memory/flags.hpp"
#include "kumi/engine/memory/memory_map.hpp"
#include "kumi/engine/memory/shared_page.hpp"

#include <algorithm>

namespace kumi::engine {
namespace {

template <class Predicate>
std::vector<Node> nodes_where(const std::vector<Node>& firsts, Predicate is) {
    std::vector<Node> nodes;
    for (Node node = 0; node < firsts.size(); ++node)
        if (is(node)) nodes.push_back(node);
    return nodes;
}

} // namespace

HostMeeting::HostMeeting(MemoryMap& map, Flags& flags, Node self, const std::vector<Node>& firsts)
    : map_(map), flags_(flags), self_(self),
      nodes_(nodes_where(firsts, [&](Node node) { return firsts[node] == firsts[self]; })),
      firsts_(nodes_where(firsts, [&](Node node) { return firsts[node] == node; })),
      barrier_(map.page(nodes_.front()).barrier, static_cast<std::uint32_t>(nodes_.size())) {}

bool HostMeeting::has(Node node) const noexcept { return std::ranges::binary_search(nodes_, node); }

HostMeeting::Next HostMeeting::arrive(std::uint32_t sequence) noexcept {
    switch (barrier_.arrive(sequence)) {
    case Arrival::early: return Next::later;
    case Arrival::counted: return Next::nothing;
    case Arrival::last: break;
    }
    if (!is_only_host()) return is_first() ? Next::arrive_for_host : Next::tell_first_node;
    complete(sequence);
    return Next::nothing;
}

void HostMeeting::note_arrived(std::uint32_t sequence) noexcept {
    // Last, so that a node that dies before is missed. Release: partner of the acquire in next_of().
    map_.page(self_).barriers_arrived.store(sequence + 1, std::memory_order_release);
}

void HostMeeting::look(const Barriers& barriers) noexcept {
    for (; hosts_complete_ != host_next_ && barriers.is_complete({firsts_set, hosts_complete_}); ++hosts_complete_)
        complete(hosts_complete_);
}

/// All nodes have arrived at that barrier, and so at all before it. Wakes nodes of this host that sleep.
void HostMeeting::complete(std::uint32_t sequence) noexcept {
    barrier_.complete(sequence);
    base::MachineMemory::full_fence(); // partner: the fence in Flags::begin_watch()
    for (const Node node : nodes_) flags_.nudge_after_fence(node);
}

std::uint32_t HostMeeting::next_of(Node node) const noexcept {
    // Acquire: partner of the release in note_arrived().
    return map_.page(node).barriers_arrived.load(std::memory_order_acquire);
}

std::vector<Node> HostMeeting::missing(std::uint32_t sequence) const {
    std::vector<Node> missing;
    for (const Node node : nodes_)
        if (node != self_ && static_cast<std::int32_t>(next_of(node) - sequence) <= 0) missing.push_back(node);
    return missing;
}

} // namespace kumi::engine
