#pragma once

// Barriers that lack a lost node. A node looks for them when a node is lost, and when it arrives at a barrier. Only a
// barrier at which this node has arrived counts, so nodes that leave one after the other at the end of a job are not
// missed. Not every node that has left is missed: it may have arrived before.
//
// A node tells those that hear from it at the barrier, which are log2(n), and they tell those that hear from them. A
// node that waits for a barrier in vain waits for a node that is lost, which it notices, or for one that has arrived
// and waits in vain itself, and tells.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/barrier/barriers.hpp"
#include "kumi/engine/barrier/given_up.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kumi::engine {

class HostMeeting;

inline constexpr std::uint16_t hopeless_kind = kind_in_service(Kind::hopeless);

class BarrierLosses {
public:
    BarrierLosses(Dispatcher& dispatcher, Port& port, Barriers& barriers, const std::vector<Node>& all_nodes) noexcept
        : dispatcher_(dispatcher), port_(port), barriers_(barriers), all_nodes_(all_nodes) {}

    void set_host(HostMeeting& host) noexcept { host_ = &host; }

    /// The reason why that barrier will never be complete; null: there is none.
    const Hopeless* find(const BarrierToken& token) const noexcept { return given_up_.find(token); }
    /// `node` is lost. `next` is the barrier of all nodes that this node arrives at next.
    void on_lost(const Turn& turn, Node node, std::uint32_t next);
    /// This node has just arrived at a barrier of that set; or at one of all nodes, where nodes meet in memory.
    void on_arrived(const Turn& turn, std::uint64_t set);
    void on_arrived_on_host(const Turn& turn, std::uint32_t next);
    /// Another node has told that a barrier is hopeless. False: that makes no sense.
    bool on_hopeless(const Turn& turn, Bytes body);

private:
    void look_for_lacking(const Turn& turn, std::uint64_t set, Node lost);
    void look_for_lacking_on_host(const Turn& turn, Node lost, std::uint32_t next);
    void give_up(const Turn& turn, const Hopeless& what, std::span<const Node> members);
    void tell_of(const Turn& turn, const Hopeless& what, std::span<const Node> members, Bytes body);
    void tell_host(const Turn& turn, const Hopeless& what);

    static constexpr std::size_t given_up_max = 1 << 16; // sets, as other nodes tell

    Dispatcher& dispatcher_;
    Port& port_;
    Barriers& barriers_;
    const std::vector<Node>& all_nodes_;
    HostMeeting* host_ = nullptr; // where some hosts have several nodes
    GivenUp given_up_;
    std::ptrdiff_t host_losses_ = 0; // nodes of this host that were lost when others were last told
};

} // namespace kumi::engine
