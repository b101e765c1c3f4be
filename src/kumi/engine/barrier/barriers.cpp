#include "kumi/engine/barrier/barriers.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <utility>

namespace kumi::engine {

namespace {

std::uint32_t rounds_for(std::uint64_t members) noexcept {
    return static_cast<std::uint32_t>(std::bit_width(members - 1));
}

/// Sequences wrap: how far `sequence` is ahead of `base`; negative when it is behind.
std::int32_t ahead(std::uint32_t sequence, std::uint32_t base) noexcept {
    return static_cast<std::int32_t>(sequence - base);
}

/// Whether a step for `sequence` may come from an honest node, where `completed` is the first that is not complete.
bool is_in_reach(std::uint32_t sequence, std::uint32_t completed) noexcept {
    return sequence - completed < Barriers::window * 2;
}

/// The finalizer of SplitMix64: each bit of the answer depends on each bit of the word.
std::uint64_t mix(std::uint64_t word) noexcept {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

} // namespace

void Barriers::Slot::join(std::uint64_t low, std::uint64_t high) noexcept {
    lowest = std::min(lowest, low);
    highest = std::max(highest, high);
}

/// For `sequence`, which is not complete and less than twice the window ahead.
void Barriers::Set::make_room(std::uint32_t sequence) {
    const std::size_t needed = (std::size_t{sequence - completed} + 1) * 2;
    if (needed <= slots.size()) return;
    std::vector<Slot> larger(std::bit_ceil(needed));
    const auto half = static_cast<std::uint32_t>(slots.size() / 2);
    for (std::uint32_t known = completed - half; known != completed + half; ++known)
        larger[known & (larger.size() - 1)] = slot(known);
    slots = std::move(larger);
}

bool Barriers::Set::is_busy() const noexcept {
    return completed != arrived() && (!hopeless || ahead(completed, *hopeless) < 0);
}

bool Barriers::Set::is_idle() const noexcept {
    if (hopeless && ahead(completed, *hopeless) >= 0) return true;
    if (completed != arrived()) return false;
    for (std::uint32_t later = 0; later < slots.size() / 2; ++later)
        if (slot(completed + later).heard != 0) return false;
    return true;
}

Barriers::Barriers(Node self, Node nodes, std::uint32_t first_sequence, std::size_t sets)
    : self_(self), rounds_max_(rounds_for(nodes)), first_sequence_(first_sequence), sets_limit_(sets),
      held_from_(nodes) {
    KUMI_ASSERT(self < nodes);
}

std::uint64_t Barriers::set_of(std::span<const Node> sorted_members) noexcept {
    std::uint64_t hash = sorted_members.size();
    for (const Node member : sorted_members) hash = mix(hash + 0x9e3779b97f4a7c15u + member);
    return hash | first_of_others;
}

std::vector<Barriers::Partners> Barriers::partners_of(Node self, std::span<const Node> sorted_members) {
    const auto found = std::ranges::lower_bound(sorted_members, self);
    KUMI_ASSERT(found != sorted_members.end() && *found == self);
    const auto place = static_cast<std::size_t>(found - sorted_members.begin());
    const std::size_t count = sorted_members.size();
    std::vector<Partners> rounds(rounds_for(count));
    for (std::size_t round = 0; round < rounds.size(); ++round) {
        const std::size_t distance = std::size_t{1} << round; // less than count, so nobody is its own partner
        rounds[round] = {sorted_members[(place + distance) % count],
                         sorted_members[(place + count - distance) % count]};
    }
    return rounds;
}

Barriers::Set Barriers::make_set(std::span<const Node> sorted_members, std::optional<std::uint32_t> laid_by) const {
    KUMI_ASSERT(std::ranges::adjacent_find(sorted_members, std::ranges::greater_equal{}) == sorted_members.end());
    KUMI_ASSERT(!sorted_members.empty() && sorted_members.back() < held_from_.size());
    const std::uint32_t next = laid_by.value_or(first_sequence_);
    return {.members = {sorted_members.begin(), sorted_members.end()},
            .rounds = partners_of(self_, sorted_members),
            .completed = next,
            .begun = next,
            .is_new = !laid_by};
}

/// Sets with numbers that are no hashes stay: they are few, and the agreements of the last ones are asked for.
void Barriers::lay_by_idle() {
    std::erase_if(sets_, [this](const auto& entry) {
        if (entry.first < first_of_others || !entry.second.is_idle()) return false;
        laid_by_.store(entry.first, entry.second.completed);
        under_way_ -= entry.second.arrived() - entry.second.completed; // hopeless ones
        return true;
    });
    lay_by_at_ = std::max(sets_kept, sets_.size() * 2);
}

std::optional<BarrierToken> Barriers::arrive(std::uint64_t set, std::span<const Node> sorted_members,
                                             std::uint64_t value, Send send) {
    auto known = sets_.find(set);
    const bool is_first = known == sets_.end();
    const bool was_busy = !is_first && known->second.is_busy();
    if (!was_busy && busy_sets_ == busy_sets_max) return std::nullopt;
    if (is_first) {
        const auto laid_by = laid_by_.find(set);
        if (!laid_by && sets_known_ == sets_limit_) return std::nullopt;
        if (sets_.size() >= lay_by_at_) lay_by_idle();
        known = sets_.emplace(set, make_set(sorted_members, laid_by)).first;
        sets_known_ += laid_by ? 0 : 1;
    }
    Set& found = known->second;
    KUMI_ASSERT(found.members.size() == sorted_members.size());
    if (found.waiting.size() == waiting_max) return std::nullopt;

    const BarrierToken token{set, found.arrived()};
    ++under_way_;
    if (found.may_begin()) { // then none waits
        begin_next(set, found, value, send);
    } else {
        found.waiting.push_back(value);
    }
    if (!was_busy && found.is_busy()) ++busy_sets_;
    advance(set, found, send);
    if (is_first && !held_.empty())
        for (const Held& early : take_held(set)) take(set, found, early.from, early.step, send);
    return token;
}

void Barriers::on_step(Node from, const BarrierStep& step, Send send) {
    if (from >= held_from_.size()) return count(BarrierDrop::wrong_sender);
    const auto known = sets_.find(step.set);
    if (known == sets_.end()) return hold(from, step);
    take(step.set, known->second, from, step, send);
}

void Barriers::hold(Node from, const BarrierStep& step) {
    // Who the members are is not known yet: take() looks at the rest.
    if (from == self_) return count(BarrierDrop::wrong_sender);
    if (step.round >= rounds_max_) return count(BarrierDrop::wrong_round);
    const auto laid_by = laid_by_.find(step.set);
    if (laid_by ? !is_in_reach(step.sequence, *laid_by) : step.sequence != first_sequence_)
        return count(BarrierDrop::wrong_sequence);
    if (held_from_[from] == held_max) return count(BarrierDrop::too_many_sets);
    ++held_from_[from];
    held_.push_back({from, step});
}

std::vector<Barriers::Held> Barriers::take_held(std::uint64_t set) {
    const auto first =
        std::stable_partition(held_.begin(), held_.end(), [=](const Held& held) { return held.step.set != set; });
    std::vector<Held> taken(first, held_.end());
    held_.erase(first, held_.end());
    for (const Held& held : taken) --held_from_[held.from];
    return taken;
}

void Barriers::take(std::uint64_t id, Set& set, Node from, const BarrierStep& step, Send send) {
    if (step.round >= set.rounds.size()) return count(BarrierDrop::wrong_round);
    if (from != set.rounds[step.round].from) return count(BarrierDrop::wrong_sender);
    if (!is_in_reach(step.sequence, set.completed)) return count(BarrierDrop::wrong_sequence);

    set.make_room(step.sequence);
    Slot& slot = set.slot(step.sequence);
    const std::uint32_t bit = std::uint32_t{1} << step.round;
    if ((slot.heard & bit) != 0) return count(BarrierDrop::repeated);
    slot.heard |= bit;
    // A round that comes before an earlier one makes that one's step tell of more arrivals than it must, which are
    // true.
    slot.join(step.lowest, step.highest);
    if (!slot.is_begun) return;
    send_rounds(id, set, step.sequence, slot, send);
    advance(id, set, send);
}

/// What may be sent of a barrier that is begun: each round after all before it were heard.
void Barriers::send_rounds(std::uint64_t id, const Set& set, std::uint32_t sequence, Slot& slot, Send send) {
    while (slot.rounds_sent < set.rounds.size()) {
        const std::uint32_t round = slot.rounds_sent;
        if (round != 0 && (slot.heard >> (round - 1) & 1) == 0) return;
        ++slot.rounds_sent;
        send(set.rounds[round].to, {id, sequence, round, slot.lowest, slot.highest});
    }
}

void Barriers::begin_next(std::uint64_t id, Set& set, std::uint64_t value, Send send) {
    const std::uint32_t sequence = set.begun++;
    set.make_room(sequence);
    Slot& slot = set.slot(sequence);
    slot.is_begun = true;
    slot.join(value, value);
    send_rounds(id, set, sequence, slot, send);
}

/// Completes and begins what may be, in order.
void Barriers::advance(std::uint64_t id, Set& set, Send send) {
    while (true) {
        while (!set.waiting.empty() && set.may_begin()) {
            begin_next(id, set, set.waiting.front(), send);
            set.waiting.pop_front();
        }
        if (set.completed == set.begun || set.slot(set.completed).heard != set.all_heard()) return;

        const bool was_busy = set.is_busy();
        ++set.completed;
        --under_way_;
        set.is_new = false;
        if (was_busy && !set.is_busy()) --busy_sets_;
        // The oldest that is kept makes room for the furthest that may come.
        set.slot(set.completed + static_cast<std::uint32_t>(set.slots.size() / 2) - 1) = {};
    }
}

bool Barriers::is_complete(const BarrierToken& token) const noexcept {
    const auto known = sets_.find(token.set);
    if (known != sets_.end()) return ahead(token.sequence, known->second.completed) < 0;
    const auto laid_by = laid_by_.find(token.set);
    return laid_by && ahead(token.sequence, *laid_by) < 0;
}

std::optional<std::uint32_t> Barriers::first_lacking(std::uint64_t id, Node node) const noexcept {
    const auto known = sets_.find(id);
    if (known == sets_.end()) return std::nullopt;
    const Set& set = known->second;
    const auto partners = std::ranges::find(set.rounds, node, &Partners::from);
    if (partners == set.rounds.end()) return std::nullopt;
    const auto round = static_cast<std::uint32_t>(partners - set.rounds.begin());
    std::uint32_t sequence = set.completed;
    while (sequence - set.completed < set.slots.size() / 2 && (set.slot(sequence).heard >> round & 1) != 0) ++sequence;
    if (ahead(sequence, set.arrived()) >= 0) return std::nullopt;
    return sequence;
}

std::span<const Node> Barriers::members_of(std::uint64_t set) const noexcept {
    const auto known = sets_.find(set);
    return known == sets_.end() ? std::span<const Node>() : known->second.members;
}

void Barriers::give_up(std::uint64_t id, std::uint32_t sequence) {
    const auto known = sets_.find(id);
    if (known == sets_.end()) {
        take_held(id); // this node may never arrive there
        return;
    }
    const bool was_busy = known->second.is_busy();
    known->second.hopeless = sequence;
    if (was_busy && !known->second.is_busy()) --busy_sets_;
}

std::uint32_t Barriers::next_of(std::uint64_t set) const noexcept {
    const auto known = sets_.find(set);
    return known != sets_.end() ? known->second.arrived() : laid_by_.find(set).value_or(first_sequence_);
}

bool Barriers::is_busy(std::uint64_t set) const noexcept {
    const auto known = sets_.find(set);
    return known != sets_.end() && known->second.is_busy();
}

std::optional<Agreement> Barriers::agreement(const BarrierToken& token) const noexcept {
    const auto known = sets_.find(token.set);
    if (known == sets_.end()) return std::nullopt;
    const Set& set = known->second;
    const std::int32_t distance = ahead(token.sequence, set.completed);
    if (distance >= 0 || distance < -static_cast<std::int32_t>(set.slots.size() / 2)) return std::nullopt;
    const Slot& slot = set.slot(token.sequence);
    if (!slot.is_begun) return std::nullopt; // before the first
    return Agreement{slot.lowest, slot.highest};
}

} // namespace kumi::engine
