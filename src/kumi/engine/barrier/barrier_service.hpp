#pragma once

// Barriers of all nodes and of some. Nodes of one host meet in memory that they share, which needs nobody's help; the
// last of them tells the first node of the host, and the first nodes of all hosts meet by messages (barriers.hpp).
// Where no host has several nodes all of them meet by messages.

#include "kumi/base/result.hpp"
#include "kumi/engine/barrier/barriers.hpp"
#include "kumi/engine/barrier/given_up.hpp"
#include "kumi/engine/barrier/host_barrier.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"

#include <atomic>
#include <optional>
#include <span>
#include <vector>

namespace kumi::engine {

struct SharedPage;

class BarrierService final : public Service {
public:
    explicit BarrierService(Dispatcher& dispatcher);

    /// `firsts[node]` is the first of the nodes that share memory with `node`; the same on all nodes. Empty: that is
    /// not known, and memory is used only if all nodes share it.
    void set_firsts(std::vector<Node> firsts);

    /// This node comes to the next barrier of all nodes, and waits later. A barrier() after it comes to the one after
    /// that, whatever has failed before.
    BarrierToken arrive();
    /// This node comes to the next barrier of all nodes and waits; or goes on waiting for the oldest that has failed.
    Result<void> barrier(Instant deadline);
    Result<BarrierToken> arrive(std::span<const Node> members);
    bool test(const BarrierToken& token);
    Result<void> wait(const BarrierToken& token, Instant deadline);
    /// `flag` becomes 1 when the barrier is complete; an error of the calling thread and this flag, if it never is.
    void notify(const BarrierToken& token, Flag& flag);
    /// From now on no flag is set, because the engine ends.
    void forget_flags(const Turn& turn) noexcept;
    /// A barrier of all nodes, which tells the lowest and highest value that they came with.
    Result<Agreement> agree(std::uint64_t value);

    /// A thread of this node waits for a barrier of all nodes, and has for long.
    bool is_waited_for(const Turn&) const noexcept { return is_waited_for_.load(std::memory_order_relaxed); } // a hint
    /// True while arrivals of this node wait for room in the memory of its host, or flags for a barrier. A thread that
    /// sleeps then must be woken when a barrier completes.
    bool wants_completion(const Turn& turn) const noexcept { return has_uncounted(turn) || !awaited_.empty(); }

private:
    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const Turn& turn) noexcept override;
    void on_lost(const Turn& turn, Node lost) noexcept override;
    void check_silent_peers(const Turn& turn) noexcept override;

    bool on_step(const Turn& turn, Node source, Bytes body);
    bool on_host_arrived(const Turn& turn, Node source, Bytes body);
    bool on_hopeless(const Turn& turn, Bytes body);

    BarrierToken come(const Turn& turn, bool is_split);
    std::optional<BarrierToken> arrive(const Turn& turn, std::uint64_t set, std::span<const Node> members,
                                       std::uint64_t value = 0);
    void send_step(const Turn& turn, Node to, const BarrierStep& step);
    bool has_uncounted(const Turn&) const noexcept {
        constexpr std::uint64_t all = 0;
        return next_on_host_ != next_barrier_ && given_up_.find({all, next_on_host_}) == nullptr;
    }
    bool make_arrivals(const Turn& turn);
    bool set_flags(const Turn& turn);
    void on_host_last(const Turn& turn, std::uint32_t sequence);
    void on_host_complete(const Turn& turn);
    void check_firsts(const Turn& turn);
    void tell_host_of(std::uint32_t sequence);
    bool is_complete(const BarrierToken& token) const noexcept;
    void send_keepalives_to_missing(const Turn& turn, const BarrierToken& token) noexcept;
    /// Which nodes have not come, for people.
    std::string describe(const BarrierToken& token);
    void look_for_lacking(const Turn& turn, std::uint64_t set, Node lost);
    void look_for_lacking_on_host(const Turn& turn, Node lost);
    void give_up(const Turn& turn, const Hopeless& what, std::span<const Node> members);
    void tell_of(const Turn& turn, const Hopeless& what, std::span<const Node> members, Bytes body);
    void tell_host(const Turn& turn, const Hopeless& what);
    SharedPage& own_page() noexcept;

    static constexpr std::size_t given_up_max = 1 << 16; // sets, as other nodes tell

    Dispatcher& dispatcher_;
    Port port_;
    std::vector<Node> all_nodes_;
    Barriers barriers_;
    std::optional<HostBarrier<base::MachineMemory>> host_barrier_; // where some hosts have several nodes
    std::vector<Node> on_host_;             // all that share this host's memory, this node included
    std::vector<Node> firsts_;              // one of each host
    GivenUp given_up_;
    struct Awaited {
        BarrierToken token;
        Flag* flag;           // to be set when it is complete
        std::uint32_t thread; // that asked
    };
    std::vector<Awaited> awaited_;
    std::atomic<bool> is_waited_for_{false}; // a barrier of all, for long
    std::ptrdiff_t host_losses_ = 0;        // nodes of this host that were lost when others were last told
    std::vector<std::uint32_t> unfinished_; // barriers of all that barrier() has failed to wait for
    std::uint32_t next_barrier_ = 0;        // the next that this node comes to
    std::uint32_t next_on_host_ = 0;        // the next that its host is told of
    std::uint32_t hosts_complete_ = 0;      // the next that completes among first nodes
    std::uint32_t host_has_come_ = 0;       // the next that this host, of which this is the first node, comes to
};

} // namespace kumi::engine
