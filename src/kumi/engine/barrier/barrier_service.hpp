#pragma once

// Barriers of all nodes and of some. Nodes of one host meet in memory that they share, which needs nobody's help; the
// last of them tells the first node of the host, and the first nodes of all hosts meet by messages (barriers.hpp).
// Where no host has several nodes all of them meet by messages.

#include "kumi/base/result.hpp"
#include "kumi/engine/barrier/barriers.hpp"
#include "kumi/engine/barrier/host_barrier.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"

#include <map>
#include <optional>
#include <span>
#include <vector>

namespace kumi::engine {

class BarrierService final : public Service {
public:
    explicit BarrierService(Dispatcher& dispatcher);

    /// `firsts[node]` is the first of the nodes that share memory with `node`; the same on all nodes. Empty: that is
    /// not known, and memory is used only if all nodes share it.
    void set_firsts(std::vector<Node> firsts);

    /// This node comes to the next barrier of all nodes, and waits later.
    BarrierToken arrive() { return come(true); }
    Result<void> barrier(Instant deadline);
    Result<BarrierToken> arrive(std::span<const Node> members);
    bool test(const BarrierToken& token);
    Result<void> wait(const BarrierToken& token, Instant deadline);
    /// A barrier of all nodes, which tells the lowest and highest value that they came with.
    Result<Agreement> agree(std::uint64_t value);

    /// True while arrivals of this node wait for room in the memory of its host. A thread that sleeps then must be
    /// woken when a barrier completes.
    bool has_uncounted(const Turn&) const noexcept { return next_on_host_ != next_barrier_; }

private:
    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const Turn& turn) noexcept override;

    bool on_step(const Turn& turn, Node source, Bytes body);
    bool on_host_arrived(const Turn& turn, Node source, Bytes body);
    bool on_hopeless(const Turn& turn, Bytes body);

    BarrierToken come(bool is_split);
    std::optional<BarrierToken> arrive(const Turn& turn, std::uint64_t set, std::span<const Node> members,
                                       std::uint64_t value = 0);
    void send_step(const Turn& turn, Node to, const BarrierStep& step);
    bool make_arrivals(const Turn& turn);
    void on_host_complete(const Turn& turn);
    void check_firsts(const Turn& turn);
    void tell_host_of(std::uint32_t sequence);
    bool is_complete(const BarrierToken& token) const noexcept;
    std::optional<BarrierToken> awaited_for(const BarrierToken& token) const noexcept;
    std::optional<Node> find_missing(const Turn& turn, const BarrierToken& token) const;
    void send_keepalives_to_missing(const Turn& turn, const BarrierToken& token) noexcept;
    BarrierToken first_incomplete(BarrierToken token) const noexcept;
    void give_up(const Turn& turn, const BarrierToken& token, Node lost);

    static constexpr std::size_t hopeless_max = 1 << 16;

    Dispatcher& dispatcher_;
    Port port_;
    std::vector<Node> all_nodes_;
    Barriers barriers_;
    std::optional<HostBarrier<base::MachineMemory>> host_barrier_; // where some hosts have several nodes
    std::vector<Node> on_host_;                  // all that share this host's memory, this node included
    std::vector<Node> firsts_;                   // one of each host
    std::map<std::uint64_t, Hopeless> hopeless_; // by set: barriers that lack a node that is lost
    std::uint32_t next_barrier_ = 0;             // the next that this node comes to
    std::uint32_t next_on_host_ = 0;             // the next that its host is told of
    std::uint32_t hosts_complete_ = 0;           // the next that completes among first nodes
    std::uint32_t host_has_come_ = 0;            // the next that this host, of which this is the first node, comes to
};

} // namespace kumi::engine
