// The core's part about barriers. Nodes of one host come together in the memory that they share, which needs nobody's help;
// the last of them tells the first node of the host, and the first nodes of all hosts come together by messages.

#include "kumi/base/memory_policy.hpp"
#include "kumi/engine/core.hpp"
#include "kumi/engine/outgoing.hpp"

#include <algorithm>

namespace kumi::engine {
namespace {

// Sets that all nodes know.
constexpr std::uint64_t all_set = 0;
constexpr std::uint64_t agreement_set = 1;
constexpr std::uint64_t firsts_set = 2; // the first nodes of all hosts
constexpr std::size_t known_sets = 3;

} // namespace

void Core::send_step(Node to, const BarrierStep& step) {
    auto message = outgoing(Kind::step, false, step);
    outbox_.reply(to, message.bytes());
}

bool Core::on_step(Node source, Bytes rest) {
    BarrierStep step;
    if (!read_value(rest, step)) return false;
    barriers_.on_step(source, step, [this](Node to, const BarrierStep& next) { send_step(to, next); });
    if (step.set == firsts_set && host_barrier_) check_firsts();
    return true;
}

/// Who shares memory with whom, as all nodes see it.
void Core::find_hosts() {
    std::vector<Node> first_of = agreed_.firsts;
    if (first_of.empty()) { // nobody has told: only if all share it
        if (!std::all_of(all_nodes_.begin(), all_nodes_.end(), [&](Node node) { return memory_->reaches(node); })) return;
        first_of.assign(nodes(), 0);
    }
    on_host_.clear();
    firsts_.clear();
    for (Node node = 0; node < nodes(); ++node) {
        if (first_of[node] == first_of[this->node()]) on_host_.push_back(node);
        if (first_of[node] == node) firsts_.push_back(node);
    }
    host_barrier_.reset();
    if (firsts_.size() != nodes()) host_barrier_.emplace(memory_->page(on_host_.front()).barrier, static_cast<std::uint32_t>(on_host_.size()));
}

/// This node comes to the next barrier of all; split: it does something else before it waits.
BarrierToken Core::come(bool is_split) {
    const Drive::Turn turn(drive_);
    const BarrierToken token{all_set, next_barrier_++};
    make_arrivals();
    // Memory needs no help; messages do.
    if (is_split && (!host_barrier_ || firsts_.size() != 1 || next_on_host_ != next_barrier_)) drive_.on_duty();
    return token;
}

/// Those that there is room for; the others later.
void Core::make_arrivals() {
    for (; next_on_host_ != next_barrier_; ++next_on_host_) {
        if (!host_barrier_) {
            if (!barriers_.arrive(all_set, all_nodes_, 0, [this](Node to, const BarrierStep& step) { send_step(to, step); })) return;
            continue;
        }
        const Arrival arrival = host_barrier_->arrive(next_on_host_);
        if (arrival == Arrival::early) return;
        if (arrival == Arrival::counted) continue;
        if (firsts_.size() == 1) {
            tell_host_of(next_on_host_);
        } else if (on_host_.front() == node()) {
            on_host_complete();
        } else {
            auto message = outgoing(Kind::host_arrived, false, HostArrived{next_on_host_, 0});
            outbox_.reply(on_host_.front(), message.bytes());
        }
    }
}

/// Which one is of no matter: if this host has come to a later barrier, it has come to all before it too.
bool Core::on_host_arrived(Node source, Bytes rest) {
    HostArrived what;
    const bool is_ours = host_barrier_ && on_host_.front() == node() && std::binary_search(on_host_.begin(), on_host_.end(), source);
    if (!is_ours || !read_value(rest, what)) return false;
    on_host_complete();
    return true;
}

/// All nodes of this host, of which this is the first, have come to one more.
void Core::on_host_complete() {
    const auto token = barriers_.arrive(firsts_set, firsts_, 0, [this](Node to, const BarrierStep& step) { send_step(to, step); });
    if (!token) return; // not by honest nodes: the ring is smaller than what may wait
    host_has_come_ = token->sequence + 1;
    check_firsts();
}

void Core::check_firsts() {
    for (; hosts_complete_ != host_has_come_ && barriers_.is_complete({firsts_set, hosts_complete_}); ++hosts_complete_) tell_host_of(hosts_complete_);
}

/// It is complete: whoever sleeps on this host is woken.
void Core::tell_host_of(std::uint32_t sequence) {
    host_barrier_->complete(sequence);
    base::MachineMemory::full_fence(); // partner: the fence in prepare_sleep()
    for (const Node node : on_host_) nudge_sleeper(node);
}

BarrierToken Core::arrive() { return come(true); }

Result<void> Core::barrier(Instant deadline) {
    if (in_handler()) return error("barrier: a handler must not wait");
    return wait(come(false), deadline);
}

Result<BarrierToken> Core::arrive(std::span<const Node> members) {
    std::vector<Node> sorted(members.begin(), members.end());
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return error("barrier of some nodes: one of them is named twice");
    if (!std::binary_search(sorted.begin(), sorted.end(), node())) return error("barrier of some nodes: node {} is not one of them", node());
    if (sorted.back() >= nodes()) return error("barrier of some nodes: there is no node {}, this job has 0 to {}", sorted.back(), nodes() - 1);
    const Drive::Turn turn(drive_);
    const std::uint64_t set = Barriers::set_of(sorted);
    // Those of all nodes need no leave.
    if (barriers_.new_sets() + known_sets >= Barriers::new_sets_max) return error("barrier of some nodes: {} sets have their first under way, which is the most there may be", barriers_.new_sets());
    const auto token = barriers_.arrive(set, sorted, 0, [this](Node to, const BarrierStep& step) { send_step(to, step); });
    if (!token) return error("barrier of some nodes: too many sets have one under way, or this one too many");
    drive_.on_duty();
    return *token;
}

bool Core::is_complete(const BarrierToken& token) const noexcept {
    if (token.set != all_set) return barriers_.is_complete(token);
    // One that there was no room for is not complete, and its number may look long past.
    if (static_cast<std::int32_t>(token.sequence - next_on_host_) >= 0) return false;
    return host_barrier_ ? host_barrier_->is_complete(token.sequence) : barriers_.is_complete(token);
}

bool Core::test(const BarrierToken& token) {
    const Drive::Turn turn(drive_);
    if (is_complete(token)) return true;
    if (!turn.is_inner() && work() != 0) drive_.wake_waiters(); // others may have waited for it
    if (has_tasks()) drive_.on_duty();
    return is_complete(token);
}

/// The barrier of barriers_ that it waits for; none if it waits for nodes of this host alone.
std::optional<BarrierToken> Core::awaited_for(const BarrierToken& token) const noexcept {
    const bool is_of_hosts = token.set == all_set && host_barrier_;
    if (!is_of_hosts) return token;
    if (hosts_complete_ == host_has_come_) return std::nullopt;
    return BarrierToken{firsts_set, hosts_complete_};
}

/// A node that the barrier needs and that is lost. Not every node that has left is missed: it may have come before.
std::optional<Node> Core::find_missing(const BarrierToken& token) const {
    if (!has_losses_ && hopeless_.empty()) return std::nullopt;
    if (const auto told = hopeless_.find(token.set); told != hopeless_.end() && static_cast<std::int32_t>(token.sequence - told->second.sequence) >= 0)
        return told->second.lost;
    const auto awaited = awaited_for(token);
    if (!awaited) return std::nullopt; // nobody is lost on one's own host
    for (Node node = 0; node < nodes(); ++node)
        if (lost_[node] == Fate::lost && barriers_.is_waiting_for(*awaited, node)) return node;
    return std::nullopt;
}

void Core::poke_missing(const BarrierToken& token) noexcept {
    const auto awaited = awaited_for(token);
    for (Node node = 0; node < nodes() && awaited; ++node)
        if (barriers_.is_waiting_for(*awaited, node)) poke(node);
}

/// Of that set: earlier ones than the one that somebody waits for may be waited for elsewhere.
BarrierToken Core::first_incomplete(BarrierToken token) const noexcept {
    while (token.sequence != 0 && !is_complete({token.set, token.sequence - 1})) --token.sequence;
    return token;
}

/// Tells all who may wait for it, and for the lost node only through others.
void Core::give_up_barrier(const BarrierToken& token, Node lost) {
    const Hopeless what{token.set, token.sequence, lost};
    if (hopeless_.size() >= hopeless_max) return;
    const auto [known, is_new] = hopeless_.try_emplace(token.set, what);
    if (!is_new && static_cast<std::int32_t>(token.sequence - known->second.sequence) >= 0) return; // all know
    known->second = what;
    for (Node to = 0; to < nodes(); ++to) {
        if (to == node() || lost_[to] == Fate::lost) continue;
        auto message = outgoing(Kind::hopeless, false, what);
        outbox_.reply(to, message.bytes());
    }
}

bool Core::on_hopeless(Bytes rest) {
    Hopeless what;
    if (!read_value(rest, what) || what.lost >= nodes()) return false;
    give_up_barrier({what.set, what.sequence}, what.lost); // others may wait through this node
    return true;
}

Result<void> Core::wait(const BarrierToken& token, Instant deadline) {
    if (in_handler()) return error("barrier: a handler must not wait");
    bool is_there = false;
    std::optional<Node> missing;
    std::optional<std::uint64_t> looks; // as it was the last time
    const auto is_over = [&] {
        if ((is_there = is_complete(token)) || (missing = find_missing(token))) return true;
        if (looks.value_or(looks_) != looks_) poke_missing(token);
        looks = looks_;
        return false;
    };
    const bool in_time = drive_.serve_until(is_over, deadline);
    if (is_there) return {};
    if (!in_time) return error("barrier: not all nodes have come within the time given");
    const Drive::Turn turn(drive_);
    give_up_barrier(first_incomplete(token), *missing);
    return error("barrier: {} has left, or is lost", name_of(*missing));
}

Result<Agreement> Core::agree(std::uint64_t value) {
    std::optional<BarrierToken> token;
    {
        const Drive::Turn turn(drive_);
        token = barriers_.arrive(agreement_set, all_nodes_, value, [this](Node to, const BarrierStep& step) { send_step(to, step); });
    }
    KUMI_ASSERT(token); // one at a time is under way
    if (auto all = wait(*token, never); !all) return all.error();
    const Drive::Turn turn(drive_);
    return *barriers_.agreement(*token);
}

} // namespace kumi::engine
