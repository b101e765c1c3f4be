#pragma once

// Split-phase barriers among all nodes or some of them, by dissemination. In round r a member tells the one 2^r places
// after it that it has arrived and has heard all rounds before, and hears so from the one 2^r places before it. After
// ceil(log2 n) rounds it has heard, directly or not, of all n. Each step also carries the lowest and the highest value
// of the arrivals that it tells of. Hearing of a member twice changes neither, so they are right for any n.
//
// What is bounded, and why no honest step is ever dropped:
//  - A set's steps are on the wire for at most `window` sequences from the first that is not complete here; arrivals
//    beyond wait here. A barrier that is complete anywhere has been begun everywhere, so a peer is at most `window`
//    complete ones ahead, and its steps less than twice `window`. None comes for a complete barrier: that needed it.
//  - Until its first barrier is complete a set is new, and only that one is begun. So a node that has not yet arrived
//    at a set, and cannot tell who belongs to it, gets one step for it from each peer: the first barrier's. It is held
//    until this node arrives.
//  - A set that has nothing under way here is laid by: only its sequence is kept, which takes 16 to 32 bytes. Steps for
//    it are held as those for new sets are. A node has at most `busy_sets_max` sets with something under way, and
//    `window` barriers on the wire in each, so no peer needs more held steps than `held_max`: 200 KiB.
//  - Other memory grows by this node's own arrivals only: `waiting_max` arrivals that wait in each set that is busy.
//  - The sequence of a set is never forgotten: other members go on counting. So there are `sets_max` of them.
// Nothing of this needs messages to be in order.

#include "kumi/base/function_ref.hpp"
#include "kumi/engine/barrier/barrier_token.hpp"
#include "kumi/engine/barrier/sequence_table.hpp"
#include "kumi/pm/node.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace kumi::engine {

using pm::Node;

// Sets that all nodes know.
inline constexpr std::uint64_t all_set = 0;
inline constexpr std::uint64_t agreement_set = 1;
inline constexpr std::uint64_t firsts_set = 2; // the first nodes of all hosts
inline constexpr std::size_t known_sets = 3;
inline constexpr std::uint64_t first_of_others = std::uint64_t{1} << 63; // sets of some nodes: Barriers::set_of()

/// What members tell each other. All fields little-endian.
struct BarrierStep {
    std::uint64_t set;
    std::uint32_t sequence; // of the barrier among those of its set; wraps
    std::uint32_t round;
    std::uint64_t lowest; // of the values of all arrivals that this tells of
    std::uint64_t highest;
};
static_assert(sizeof(BarrierStep) == 32 && std::endian::native == std::endian::little);

/// What the members' arrivals at one barrier had for values.
struct Agreement {
    std::uint64_t lowest;
    std::uint64_t highest;

    bool is_unanimous() const noexcept { return lowest == highest; }
};

/// Why a step was dropped.
enum class BarrierDrop : std::uint8_t {
    wrong_sender,   // no node, or not the one that this round is heard from
    wrong_round,    // more than the set has
    wrong_sequence, // complete already, or further ahead than any honest node gets
    repeated,
    too_many_sets, // that this node has not arrived at, or has laid by; more than its sender may have
};

/// All barriers of one node. Pure: no channel, clock or thread.
class Barriers {
public:
    /// Carries a step to another node: exactly once, some time. May not refuse, nor call back.
    using Send = base::FunctionRef<void(Node to, const BarrierStep& step)>;

    static constexpr std::uint32_t window = 16;         // sequences of a set whose steps are on the wire
    static constexpr std::size_t busy_sets_max = 256;   // that have a barrier under way
    static constexpr std::size_t held_max = busy_sets_max * window; // steps of each sender
    static constexpr std::size_t sets_kept = 1024;      // before those that have nothing under way are laid by
    static constexpr std::size_t sets_max = 1 << 22;    // that this node ever arrives at
    static constexpr std::size_t waiting_max = 1 << 16; // arrivals of a set beyond its window
    static constexpr std::uint32_t agreements_kept = 4; // of each set, at least
    static constexpr std::size_t drop_causes = 5;

    /// The first barrier of each set is `first_sequence`, the same on all nodes. `sets` of them may be arrived at.
    Barriers(Node self, Node nodes, std::uint32_t first_sequence = 0, std::size_t sets = sets_max);

    /// Whom a member tells in a round, and whom it hears from.
    struct Partners {
        Node to;
        Node from;
    };
    /// Those of `self`, by round.
    static std::vector<Partners> partners_of(Node self, std::span<const Node> sorted_members);

    /// The number for a set that has no other, never below 2^63. That two sets ever have the same is taken for
    /// impossible.
    static std::uint64_t set_of(std::span<const Node> sorted_members) noexcept;
    /// The same in a job of so many nodes, of which all have a number of their own.
    static std::uint64_t set_of(std::span<const Node> sorted_members, Node nodes) noexcept {
        return sorted_members.size() == nodes ? all_set : set_of(sorted_members);
    }

    /// This node has come to the next barrier of that set, of which it is a member. All members count the same barriers
    /// and give the same members, each once. Empty: one of the bounds above is reached, and nothing has changed.
    std::optional<BarrierToken> arrive(std::uint64_t set, std::span<const Node> sorted_members, std::uint64_t value,
                                       Send send);

    /// `from` is who sent it, as the channel says. Steps may come for barriers and sets that this node has not arrived
    /// at.
    void on_step(Node from, const BarrierStep& step, Send send);

    /// All members have arrived. The token is one that arrive() gave, less than 2^31 barriers ago.
    bool is_complete(const BarrierToken& token) const noexcept;
    /// For barriers that are complete, and of the last few of their set.
    std::optional<Agreement> agreement(const BarrierToken& token) const noexcept;
    /// The first barrier of `set` that this node has arrived at and that lacks a step from `node` itself. Empty: none.
    std::optional<std::uint32_t> first_lacking(std::uint64_t set, Node node) const noexcept;
    /// Calls `visit(node)` for each node that the first barrier of `set` under way lacks a step from.
    template <class Visit>
    void for_each_awaited(std::uint64_t set, Visit&& visit) const;
    /// Calls `visit(node)` for each node that this one hears from at barriers of `set`.
    template <class Visit>
    void for_each_heard(std::uint64_t set, Visit&& visit) const;
    /// Calls `visit(set)` for each set that has a barrier under way which is not given up.
    template <class Visit>
    void for_each_busy(Visit&& visit) const;
    /// Of a set that this node has arrived at and that is not laid by; others have none.
    std::span<const Node> members_of(std::uint64_t set) const noexcept;
    /// No barrier of `set` from `sequence` on will be complete, which this node is to know for good: steps for it must
    /// not be given to on_step(). The set is not busy any more when all before are complete.
    void give_up(std::uint64_t set, std::uint32_t sequence);

    /// The sequence of the next barrier of `set` that this node arrives at.
    std::uint32_t next_of(std::uint64_t set) const noexcept;
    bool is_busy(std::uint64_t set) const noexcept;
    /// Sets that have a barrier under way.
    std::size_t busy_sets() const noexcept { return busy_sets_; }
    /// This node has arrived at a barrier that is not complete.
    bool has_any_under_way() const noexcept { return under_way_ != 0; }

    std::uint64_t dropped(BarrierDrop cause) const noexcept { return drops_[static_cast<std::size_t>(cause)]; }
    /// Steps for sets that this node has not arrived at, or has laid by.
    std::size_t held() const noexcept { return held_.size(); }
    /// Sets that take more than a few bytes.
    std::size_t large_sets() const noexcept { return sets_.size(); }

private:
    /// One barrier, as far as it is known here.
    struct Slot {
        std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t highest = 0;
        std::uint32_t heard = 0; // rounds, a bit each
        std::uint8_t rounds_sent = 0;
        bool is_begun = false; // its own arrival is on the wire

        void join(std::uint64_t low, std::uint64_t high) noexcept;
    };
    struct Set {
        std::vector<Node> members;
        std::vector<Partners> rounds;
        std::uint32_t completed; // the first sequence that is not
        std::uint32_t begun;     // the first sequence that is not
        bool is_new = true;
        std::optional<std::uint32_t> hopeless{}; // from this sequence on
        std::list<std::uint64_t> waiting{}; // values of arrivals not yet begun; mostly none, which takes no room
        // By sequence, modulo its size, a power of two: as many that are complete as others.
        std::vector<Slot> slots = std::vector<Slot>(std::size_t{agreements_kept} * 2);

        Slot& slot(std::uint32_t sequence) noexcept { return slots[sequence & (slots.size() - 1)]; }
        const Slot& slot(std::uint32_t sequence) const noexcept { return slots[sequence & (slots.size() - 1)]; }
        std::uint32_t all_heard() const noexcept {
            return static_cast<std::uint32_t>((std::uint64_t{1} << rounds.size()) - 1);
        }
        std::uint32_t arrived() const noexcept { return begun + static_cast<std::uint32_t>(waiting.size()); }
        /// A barrier is under way that may be complete some time.
        bool is_busy() const noexcept;
        /// Its sequence is all that there is to know.
        bool is_idle() const noexcept;
        bool may_begin() const noexcept { return begun - completed < (is_new ? 1 : window); }
        void make_room(std::uint32_t sequence);
    };
    struct Held {
        Node from;
        BarrierStep step;
    };

    void count(BarrierDrop cause) noexcept { ++drops_[static_cast<std::size_t>(cause)]; }
    Set make_set(std::span<const Node> sorted_members, std::optional<std::uint32_t> laid_by) const;
    void lay_by_idle();
    void hold(Node from, const BarrierStep& step);
    std::vector<Held> take_held(std::uint64_t set);
    void take(std::uint64_t id, Set& set, Node from, const BarrierStep& step, Send send);
    void send_rounds(std::uint64_t id, const Set& set, std::uint32_t sequence, Slot& slot, Send send);
    void begin_next(std::uint64_t id, Set& set, std::uint64_t value, Send send);
    void advance(std::uint64_t id, Set& set, Send send);

    Node self_;
    std::uint32_t rounds_max_; // of a set of all nodes
    std::uint32_t first_sequence_;
    std::size_t sets_limit_;
    std::unordered_map<std::uint64_t, Set> sets_; // that this node has arrived at, and that are not laid by
    SequenceTable laid_by_;                       // the next sequence of sets; of those in sets_, an old one
    std::size_t lay_by_at_ = sets_kept;           // so many sets
    std::size_t sets_known_ = 0;                  // in sets_ or laid by
    std::size_t busy_sets_ = 0;
    std::uint64_t under_way_ = 0; // arrivals, of all sets
    std::vector<Held> held_;
    std::vector<std::uint32_t> held_from_; // by node
    std::array<std::uint64_t, drop_causes> drops_{};
};

template <class Visit>
void Barriers::for_each_awaited(std::uint64_t set, Visit&& visit) const {
    const auto known = sets_.find(set);
    if (known == sets_.end() || known->second.completed == known->second.begun) return;
    const std::uint32_t heard = known->second.slot(known->second.completed).heard;
    for (std::size_t round = 0; round < known->second.rounds.size(); ++round)
        if ((heard >> round & 1) == 0) visit(known->second.rounds[round].from);
}

template <class Visit>
void Barriers::for_each_heard(std::uint64_t set, Visit&& visit) const {
    const auto known = sets_.find(set);
    if (known == sets_.end()) return;
    for (const Partners& partners : known->second.rounds) visit(partners.from);
}

template <class Visit>
void Barriers::for_each_busy(Visit&& visit) const {
    for (const auto& [id, set] : sets_)
        if (set.is_busy()) visit(id);
}

} // namespace kumi::engine
