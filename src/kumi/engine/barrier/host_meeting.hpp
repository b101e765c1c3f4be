#pragma once

// Barriers of all nodes, where some hosts have several: the nodes of a host meet in memory that they share, without
// help from each other. The last of them to arrive tells the first node of the host, and the first nodes of all hosts
// meet by messages. HostMeeting says what is to be sent; BarrierService sends it.

#include "kumi/base/sync/memory_policy.hpp"
#include "kumi/engine/barrier/barriers.hpp"
#include "kumi/engine/barrier/host_barrier.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kumi::engine {

class Flags;
class MemoryMap;
struct SharedPage;
using pm::Node;

class HostMeeting {
public:
    /// `firsts[node]` is the first of the nodes that share memory with `node`.
    HostMeeting(MemoryMap& map, Flags& flags, Node self, const std::vector<Node>& firsts);

    /// The nodes of this host, and the first node of each host.
    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    const std::vector<Node>& firsts() const noexcept { return firsts_; }
    bool has(Node node) const noexcept;
    bool is_first() const noexcept { return nodes_.front() == self_; }
    bool is_only_host() const noexcept { return firsts_.size() == 1; }

    enum class Next : std::uint8_t {
        later,             // there is no room now: this node has not arrived
        nothing,           // others of the host are missing, or all nodes have arrived
        tell_first_node,   // all nodes of the host have arrived
        arrive_for_host,   // the same, and this is the first node
    };
    /// This node arrives at the barrier after its last one.
    Next arrive(std::uint32_t sequence) noexcept;
    /// To be called after that, and after what it asks for.
    void note_arrived(std::uint32_t sequence) noexcept;
    /// All nodes of this host, of which this is the first, have arrived at that barrier of the first nodes.
    void note_host_arrived(std::uint32_t sequence) noexcept { host_next_ = sequence + 1; }
    /// Tells the nodes of this host which barriers of the first nodes are complete.
    void look(const Barriers& barriers) noexcept;

    bool is_complete(std::uint32_t sequence) const noexcept { return barrier_.is_complete(sequence); }
    /// The first barrier that is not complete.
    std::uint32_t completed() const noexcept { return barrier_.completed(); }
    /// The first barrier at which that node of this host has not arrived.
    std::uint32_t next_of(Node node) const noexcept;
    /// The other nodes of this host that have not arrived.
    std::vector<Node> missing(std::uint32_t sequence) const;

private:
    void complete(std::uint32_t sequence) noexcept;

    MemoryMap& map_;
    Flags& flags_;
    Node self_;
    std::vector<Node> nodes_;
    std::vector<Node> firsts_;
    HostBarrier<base::MachineMemory> barrier_;
    std::uint32_t host_next_ = 0;     // the next that this host, of which this is the first node, arrives at
    std::uint32_t hosts_complete_ = 0; // the next that completes among first nodes
};

} // namespace kumi::engine
