#include "kumi/engine/barrier/barrier_service.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/sync/memory_policy.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <algorithm>

namespace kumi::engine {
namespace {

// Sets that all nodes know.
constexpr std::uint64_t all_set = 0;
constexpr std::uint64_t agreement_set = 1;
constexpr std::uint64_t firsts_set = 2; // the first nodes of all hosts
constexpr std::size_t known_sets = 3;

constexpr std::uint16_t step_kind = kind_in_service(Kind::step);
constexpr std::uint16_t host_arrived_kind = kind_in_service(Kind::host_arrived);
constexpr std::uint16_t hopeless_kind = kind_in_service(Kind::hopeless);

} // namespace

BarrierService::BarrierService(Dispatcher& dispatcher)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)), barriers_(dispatcher.node(), dispatcher.nodes()) {
    for (Node node = 0; node < dispatcher.nodes(); ++node) all_nodes_.push_back(node);
}

void BarrierService::set_firsts(std::vector<Node> firsts) {
    if (firsts.empty()) { // then only if all share it
        if (!std::ranges::all_of(all_nodes_, [&](Node node) { return dispatcher_.segments().map().reaches(node); }))
            return;
        firsts.assign(dispatcher_.nodes(), 0);
    }
    on_host_.clear();
    firsts_.clear();
    for (const Node node : all_nodes_) {
        if (firsts[node] == firsts[dispatcher_.node()]) on_host_.push_back(node);
        if (firsts[node] == node) firsts_.push_back(node);
    }
    host_barrier_.reset();
    if (firsts_.size() != dispatcher_.nodes())
        host_barrier_.emplace(dispatcher_.segments().map().page(on_host_.front()).barrier,
                              static_cast<std::uint32_t>(on_host_.size()));
}

// ---- messages

Handled BarrierService::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    bool is_sound = false;
    switch (kind) {
    case step_kind: is_sound = on_step(turn, source, body); break;
    case host_arrived_kind: is_sound = on_host_arrived(turn, source, body); break;
    case hopeless_kind: is_sound = on_hopeless(turn, body); break;
    }
    return is_sound ? Handled::yes : Handled::no;
}

void BarrierService::send_step(const Turn& turn, Node to, const BarrierStep& step) {
    port_.reply(turn, to, step_kind, step);
}

bool BarrierService::on_step(const Turn& turn, Node source, Bytes body) {
    BarrierStep step;
    if (!read_value(body, step)) return false;
    barriers_.on_step(source, step, [&](Node to, const BarrierStep& next) { send_step(turn, to, next); });
    if (step.set == firsts_set && host_barrier_) check_firsts(turn);
    return true;
}

// ---- coming

std::optional<BarrierToken> BarrierService::arrive(const Turn& turn, std::uint64_t set, std::span<const Node> members,
                                                   std::uint64_t value) {
    return barriers_.arrive(set, members, value, [&](Node to, const BarrierStep& step) { send_step(turn, to, step); });
}

/// This node comes to the next barrier of all; split: it does something else before it waits.
BarrierToken BarrierService::come(bool is_split) {
    const Turn turn = dispatcher_.take_turn();
    const BarrierToken token{all_set, next_barrier_++};
    make_arrivals(turn);
    // Memory needs no help; messages do.
    if (is_split && (!host_barrier_ || firsts_.size() != 1 || next_on_host_ != next_barrier_))
        dispatcher_.loop().on_duty(turn);
    return token;
}

bool BarrierService::go_on(const Turn& turn) noexcept { return make_arrivals(turn); }

/// Those that there is room for; the others later. True: some were made.
bool BarrierService::make_arrivals(const Turn& turn) {
    const std::uint32_t before = next_on_host_;
    for (; next_on_host_ != next_barrier_; ++next_on_host_) {
        if (!host_barrier_) {
            if (!arrive(turn, all_set, all_nodes_)) break;
            continue;
        }
        const Arrival arrival = host_barrier_->arrive(next_on_host_);
        if (arrival == Arrival::early) break;
        if (arrival == Arrival::counted) continue;
        if (firsts_.size() == 1) {
            tell_host_of(next_on_host_);
        } else if (on_host_.front() == dispatcher_.node()) {
            on_host_complete(turn);
        } else {
            port_.reply(turn, on_host_.front(), host_arrived_kind, HostArrived{next_on_host_, 0});
        }
    }
    port_.want_progress(turn, next_on_host_ != next_barrier_);
    return next_on_host_ != before;
}

/// Which one is of no matter: if this host has come to a later barrier, it has come to all before it too.
bool BarrierService::on_host_arrived(const Turn& turn, Node source, Bytes body) {
    HostArrived what;
    const bool is_ours = host_barrier_ && on_host_.front() == dispatcher_.node() &&
                         std::binary_search(on_host_.begin(), on_host_.end(), source);
    if (!is_ours || !read_value(body, what)) return false;
    on_host_complete(turn);
    return true;
}

/// All nodes of this host, of which this is the first, have come to one more.
void BarrierService::on_host_complete(const Turn& turn) {
    const auto token = arrive(turn, firsts_set, firsts_);
    if (!token) return; // not by honest nodes: the ring is smaller than what may wait
    host_has_come_ = token->sequence + 1;
    check_firsts(turn);
}

void BarrierService::check_firsts(const Turn&) {
    for (; hosts_complete_ != host_has_come_ && barriers_.is_complete({firsts_set, hosts_complete_}); ++hosts_complete_)
        tell_host_of(hosts_complete_);
}

/// It is complete: whoever sleeps on this host is woken.
void BarrierService::tell_host_of(std::uint32_t sequence) {
    host_barrier_->complete(sequence);
    base::MachineMemory::full_fence(); // partner: the fence in prepare_sleep()
    for (const Node node : on_host_) dispatcher_.flags().nudge_after_fence(node);
}

Result<void> BarrierService::barrier(Instant deadline) {
    if (dispatcher_.progress().in_handler()) return error(ErrorCode::misuse, "barrier: a handler must not wait");
    return wait(come(false), deadline);
}

Result<BarrierToken> BarrierService::arrive(std::span<const Node> members) {
    std::vector<Node> sorted(members.begin(), members.end());
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        return error(ErrorCode::misuse, "barrier of some nodes: one of them is named twice");
    if (!std::binary_search(sorted.begin(), sorted.end(), dispatcher_.node()))
        return error(ErrorCode::misuse, "barrier of some nodes: node {} is not one of them", dispatcher_.node());
    if (sorted.back() >= dispatcher_.nodes())
        return error(ErrorCode::not_found, "barrier of some nodes: there is no node {}, this job has 0 to {}",
                     sorted.back(), dispatcher_.nodes() - 1);
    const Turn turn = dispatcher_.take_turn();
    const std::uint64_t set = Barriers::set_of(sorted);
    // Those of all nodes need no leave.
    if (barriers_.new_sets() + known_sets >= Barriers::new_sets_max)
        return error(ErrorCode::no_memory,
                     "barrier of some nodes: {} sets have their first under way, which is the most there may be",
                     barriers_.new_sets());
    const auto token = arrive(turn, set, sorted);
    if (!token)
        return error(ErrorCode::no_memory,
                     "barrier of some nodes: too many sets have one under way, or this one too many");
    dispatcher_.loop().on_duty(turn);
    return *token;
}

bool BarrierService::is_complete(const BarrierToken& token) const noexcept {
    if (token.set != all_set) return barriers_.is_complete(token);
    // One that there was no room for is not complete, and its number may look long past.
    if (static_cast<std::int32_t>(token.sequence - next_on_host_) >= 0) return false;
    return host_barrier_ ? host_barrier_->is_complete(token.sequence) : barriers_.is_complete(token);
}

bool BarrierService::test(const BarrierToken& token) {
    const Turn turn = dispatcher_.take_turn();
    if (is_complete(token)) return true;
    dispatcher_.progress().make_progress(turn);
    return is_complete(token);
}

/// The barrier of barriers_ that it waits for; none if it waits for nodes of this host alone.
std::optional<BarrierToken> BarrierService::awaited_for(const BarrierToken& token) const noexcept {
    const bool is_of_hosts = token.set == all_set && host_barrier_;
    if (!is_of_hosts) return token;
    if (hosts_complete_ == host_has_come_) return std::nullopt;
    return BarrierToken{firsts_set, hosts_complete_};
}

/// A node that the barrier needs and that is lost. Not every node that has left is missed: it may have come before.
std::optional<Node> BarrierService::find_missing(const Turn& turn, const BarrierToken& token) const {
    if (!dispatcher_.peers().has_losses(turn) && hopeless_.empty()) return std::nullopt;
    if (const auto told = hopeless_.find(token.set);
        told != hopeless_.end() && static_cast<std::int32_t>(token.sequence - told->second.sequence) >= 0)
        return told->second.lost;
    const auto awaited = awaited_for(token);
    if (!awaited) return std::nullopt; // nobody is lost on one's own host
    for (const Node node : all_nodes_)
        if (dispatcher_.peers().is_gone(node) && barriers_.is_waiting_for(*awaited, node)) return node;
    return std::nullopt;
}

void BarrierService::send_keepalives_to_missing(const Turn&, const BarrierToken& token) noexcept {
    const auto awaited = awaited_for(token);
    if (!awaited) return;
    for (const Node node : all_nodes_)
        if (barriers_.is_waiting_for(*awaited, node)) dispatcher_.send_keepalive(node);
}

/// Of that set: earlier ones than the one that somebody waits for may be waited for elsewhere.
BarrierToken BarrierService::first_incomplete(BarrierToken token) const noexcept {
    while (token.sequence != 0 && !is_complete({token.set, token.sequence - 1})) --token.sequence;
    return token;
}

/// Tells all who may wait for it, and for the lost node only through others.
void BarrierService::give_up(const Turn& turn, const BarrierToken& token, Node lost) {
    const Hopeless what{token.set, token.sequence, lost};
    if (hopeless_.size() >= hopeless_max) return;
    const auto [known, is_new] = hopeless_.try_emplace(token.set, what);
    if (!is_new && static_cast<std::int32_t>(token.sequence - known->second.sequence) >= 0) return; // all know
    known->second = what;
    for (const Node to : all_nodes_)
        if (to != dispatcher_.node() && !dispatcher_.peers().is_gone(to)) port_.reply(turn, to, hopeless_kind, what);
}

bool BarrierService::on_hopeless(const Turn& turn, Bytes body) {
    Hopeless what;
    if (!read_value(body, what) || what.lost >= dispatcher_.nodes()) return false;
    give_up(turn, {what.set, what.sequence}, what.lost); // others may wait through this node
    return true;
}

Result<void> BarrierService::wait(const BarrierToken& token, Instant deadline) {
    if (dispatcher_.progress().in_handler()) return error(ErrorCode::misuse, "barrier: a handler must not wait");
    bool is_there = false;
    std::optional<Node> missing;
    std::optional<std::uint64_t> looks; // as it was the last time
    const auto is_over = [&](const Turn& turn) {
        if ((is_there = is_complete(token)) || (missing = find_missing(turn, token))) return true;
        if (looks.value_or(dispatcher_.peers().looks()) != dispatcher_.peers().looks())
            send_keepalives_to_missing(turn, token);
        looks = dispatcher_.peers().looks();
        return false;
    };
    const bool in_time = dispatcher_.loop().serve_until(is_over, deadline);
    if (is_there) return {};
    if (!in_time) return error(ErrorCode::timed_out, "barrier: not all nodes have come within the time given");
    const Turn turn = dispatcher_.take_turn();
    give_up(turn, first_incomplete(token), *missing);
    return error(ErrorCode::node_lost, "barrier: {} has left, or is lost", dispatcher_.name_of(*missing));
}

Result<Agreement> BarrierService::agree(std::uint64_t value) {
    std::optional<BarrierToken> token;
    {
        const Turn turn = dispatcher_.take_turn();
        token = arrive(turn, agreement_set, all_nodes_, value);
    }
    KUMI_ASSERT(token); // one at a time is under way
    if (auto all = wait(*token, never); !all) return all.error();
    const Turn turn = dispatcher_.take_turn();
    return *barriers_.agreement(*token);
}

} // namespace kumi::engine
