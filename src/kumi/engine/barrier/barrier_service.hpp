#pragma once

// Barriers of all nodes and of some. Where hosts have several nodes, these meet in memory (host_meeting.hpp). Otherwise
// nodes meet by messages (barriers.hpp).
//
// A barrier of a set has a number in that set, and members count alike. So there is one barrier of all nodes, whichever
// call arrives at it: barrier() of the job, arrive() with or without a list of all nodes, or barrier() of a group.

#include "kumi/base/result.hpp"
#include "kumi/engine/barrier/barrier_losses.hpp"
#include "kumi/engine/barrier/barriers.hpp"
#include "kumi/engine/barrier/host_meeting.hpp"
#include "kumi/engine/barrier/unfinished_barriers.hpp"
#include "kumi/engine/service.hpp"

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kumi::engine {

class BarrierService final : public Service {
public:
    explicit BarrierService(Dispatcher& dispatcher);

    /// `firsts[node]` is the first of the nodes that share memory with `node`; the same on all nodes. Empty: that is
    /// not known, and memory is used only if all nodes share it.
    void set_firsts(std::vector<Node> firsts);

    /// This node arrives at the next barrier of all nodes, and waits later. A barrier() after it arrives at the one
    /// after that, whatever has failed before.
    BarrierToken arrive();
    /// This node arrives at the next barrier of all nodes and waits; or goes on waiting for the oldest that has failed.
    Result<void> barrier(Instant deadline);
    /// As arrive(), among some nodes.
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
    /// A thread that sleeps must be woken when a barrier completes.
    bool wants_completion(const Turn& turn) const noexcept {
        return has_uncounted(turn) || !awaited_.empty() || is_completion_wanted_;
    }

    // ---- for services that wait by steps of their own

    /// As barrier(), but does not wait. `set` is Barriers::set_of() its members.
    Result<BarrierToken> come(const Turn& turn, std::uint64_t set, std::span<const Node> sorted_members);
    /// The number of the barrier of `set` that this node arrives at next.
    std::uint32_t next_of(const Turn&, std::uint64_t set) const noexcept {
        return set == all_set ? next_barrier_ : barriers_.next_of(set);
    }
    UnfinishedBarriers& unfinished(const Turn&) noexcept { return unfinished_; }
    bool is_complete(const BarrierToken& token) const noexcept;
    /// The node without which the barrier will never be complete; none: it may be.
    std::optional<Node> lost_of(const Turn&, const BarrierToken& token) const noexcept;
    /// The nodes without which this node cannot go on: they have not arrived, or wait for others themselves.
    std::vector<Node> awaited(const Turn& turn, const BarrierToken& token) const;
    /// Whether a thread that sleeps is to be woken when a barrier completes.
    void want_completion(const Turn& turn, bool wanted) noexcept;

private:
    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const Turn& turn) noexcept override;
    void on_lost(const Turn& turn, Node lost) noexcept override;
    void check_silent_peers(const Turn& turn) noexcept override;

    bool on_step(const Turn& turn, Node source, Bytes body);
    bool on_host_arrived(const Turn& turn, Node source, Bytes body);

    BarrierToken arrive_at_next(const Turn& turn, bool is_split);
    Result<BarrierToken> arrive_at_next(const Turn& turn, std::uint64_t set, std::span<const Node> sorted_members);
    std::optional<BarrierToken> arrive(const Turn& turn, std::uint64_t set, std::span<const Node> members,
                                       std::uint64_t value = 0);
    bool has_uncounted(const Turn&) const noexcept {
        return next_on_host_ != next_barrier_ && losses_.find({all_set, next_on_host_}) == nullptr;
    }
    bool make_arrivals(const Turn& turn);
    bool arrive_on_host(const Turn& turn, std::uint32_t sequence);
    void arrive_for_host(const Turn& turn);
    bool set_flags(const Turn& turn);
    /// The nodes of which this one must hear, if none is missing on its host.
    std::vector<Node> missing_elsewhere(const BarrierToken& token) const;
    /// Which nodes have not arrived, for people.
    std::string describe(const BarrierToken& token) const;

    Dispatcher& dispatcher_;
    Port port_;
    std::vector<Node> all_nodes_;
    Barriers barriers_;
    std::optional<HostMeeting> host_; // where some hosts have several nodes
    BarrierLosses losses_;
    UnfinishedBarriers unfinished_;
    struct Awaited {
        BarrierToken token;
        Flag* flag;           // to be set when it is complete
        std::uint32_t thread; // that asked
    };
    std::vector<Awaited> awaited_;
    bool is_completion_wanted_ = false;      // by a service
    std::atomic<bool> is_waited_for_{false}; // a barrier of all, for long
    std::uint32_t next_barrier_ = 0;         // the next of all nodes that this node arrives at
    std::uint32_t next_on_host_ = 0;         // the next that its host is told of
};

} // namespace kumi::engine
