#include "kumi/engine/barrier/barrier_service.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <algorithm>
#include <utility>

namespace kumi::engine {
namespace {

constexpr std::uint16_t step_kind = kind_in_service(Kind::step);
constexpr std::uint16_t host_arrived_kind = kind_in_service(Kind::host_arrived);

} // namespace

BarrierService::BarrierService(Dispatcher& dispatcher)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)), barriers_(dispatcher.node(), dispatcher.nodes()),
      losses_(dispatcher, port_, barriers_, all_nodes_) {
    for (Node node = 0; node < dispatcher.nodes(); ++node) all_nodes_.push_back(node);
}

void BarrierService::set_firsts(std::vector<Node> firsts) {
    MemoryMap& map = dispatcher_.segments().map();
    if (firsts.empty()) { // then only if all share it
        if (!std::ranges::all_of(all_nodes_, [&](Node node) { return map.reaches(node); })) return;
        firsts.assign(dispatcher_.nodes(), 0);
    }
    const bool any_shares = std::ranges::any_of(all_nodes_, [&](Node node) { return firsts[node] != node; });
    if (!any_shares) return;
    losses_.set_host(host_.emplace(map, dispatcher_.flags(), dispatcher_.node(), firsts));
}

// ---- messages

Handled BarrierService::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    bool is_sound = false;
    switch (kind) {
    case step_kind: is_sound = on_step(turn, source, body); break;
    case host_arrived_kind: is_sound = on_host_arrived(turn, source, body); break;
    case hopeless_kind: is_sound = losses_.on_hopeless(turn, body); break;
    }
    return is_sound ? Handled::yes : Handled::no;
}

bool BarrierService::on_step(const Turn& turn, Node source, Bytes body) {
    BarrierStep step;
    if (!read_value(body, step)) return false;
    if (losses_.find({step.set, step.sequence}) != nullptr) return true;
    barriers_.on_step(source, step, [&](Node to, const BarrierStep& next) { port_.reply(turn, to, step_kind, next); });
    if (step.set == firsts_set && host_) host_->look(barriers_);
    return true;
}

/// Which barrier it is of does not matter: a host that has arrived at a later one has arrived at all before it, too.
bool BarrierService::on_host_arrived(const Turn& turn, Node source, Bytes body) {
    HostArrived what;
    if (!host_ || !host_->is_first() || !host_->has(source) || !read_value(body, what)) return false;
    arrive_for_host(turn);
    return true;
}

// ---- arriving

std::optional<BarrierToken> BarrierService::arrive(const Turn& turn, std::uint64_t set, std::span<const Node> members,
                                                   std::uint64_t value) {
    const auto token = barriers_.arrive(
        set, members, value, [&](Node to, const BarrierStep& step) { port_.reply(turn, to, step_kind, step); });
    losses_.on_arrived(turn, set);
    return token;
}

/// This node arrives at the next barrier of all; split: it does something else before it waits.
BarrierToken BarrierService::arrive_at_next(const Turn& turn, bool is_split) {
    const BarrierToken token{all_set, next_barrier_};
    if (losses_.find(token) != nullptr) return token; // nor does it wait for this node
    ++next_barrier_;
    make_arrivals(turn);
    if (host_) losses_.on_arrived_on_host(turn, next_barrier_);
    // Memory needs no help; messages do.
    if (is_split && (!host_ || !host_->is_only_host() || next_on_host_ != next_barrier_))
        dispatcher_.loop().on_duty(turn);
    return token;
}

BarrierToken BarrierService::arrive() {
    const Turn turn = dispatcher_.take_turn();
    unfinished_.forget(all_set);
    return arrive_at_next(turn, true);
}

/// Makes the arrivals that there is room for; the others later. True: some were made.
bool BarrierService::make_arrivals(const Turn& turn) {
    const std::uint32_t before = next_on_host_;
    for (; has_uncounted(turn); ++next_on_host_)
        if (host_ ? !arrive_on_host(turn, next_on_host_) : !arrive(turn, all_set, all_nodes_)) break;
    port_.want_progress(turn, wants_completion(turn));
    return next_on_host_ != before;
}

/// False: there is no room now.
bool BarrierService::arrive_on_host(const Turn& turn, std::uint32_t sequence) {
    switch (host_->arrive(sequence)) {
    case HostMeeting::Next::later: return false;
    case HostMeeting::Next::nothing: break;
    case HostMeeting::Next::tell_first_node:
        port_.reply(turn, host_->nodes().front(), host_arrived_kind, HostArrived{sequence, 0});
        break;
    case HostMeeting::Next::arrive_for_host: arrive_for_host(turn); break;
    }
    host_->note_arrived(sequence);
    return true;
}

/// All nodes of this host, of which this is the first, have arrived at one more.
void BarrierService::arrive_for_host(const Turn& turn) {
    const auto token = arrive(turn, firsts_set, host_->firsts());
    if (!token) return; // not by honest nodes: the ring is smaller than what may wait
    host_->note_host_arrived(token->sequence);
    host_->look(barriers_);
}

// ---- barriers of some nodes

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
    const std::uint64_t set = Barriers::set_of(sorted, dispatcher_.nodes());
    if (set == all_set) return arrive();
    const Turn turn = dispatcher_.take_turn();
    unfinished_.forget(set);
    auto token = arrive_at_next(turn, set, sorted);
    if (token) dispatcher_.loop().on_duty(turn);
    return token;
}

Result<BarrierToken> BarrierService::come(const Turn& turn, std::uint64_t set, std::span<const Node> sorted_members) {
    if (const auto unfinished = unfinished_.take(set)) return *unfinished;
    if (set == all_set) return arrive_at_next(turn, false);
    return arrive_at_next(turn, set, sorted_members);
}

Result<BarrierToken> BarrierService::arrive_at_next(const Turn& turn, std::uint64_t set,
                                                    std::span<const Node> sorted_members) {
    if (const BarrierToken next{set, barriers_.next_of(set)}; losses_.find(next) != nullptr) return next;
    // Those of all nodes need no leave.
    if (!barriers_.is_busy(set) && barriers_.busy_sets() + known_sets >= Barriers::busy_sets_max)
        return error(ErrorCode::no_memory,
                     "barrier of some nodes: {} sets have one under way, which is the most there may be",
                     barriers_.busy_sets());
    const auto token = arrive(turn, set, sorted_members);
    if (!token)
        return error(ErrorCode::no_memory,
                     "barrier of some nodes: too many are under way in this set, or there were too many sets");
    return *token;
}

// ---- progress

bool BarrierService::go_on(const Turn& turn) noexcept {
    const bool has_arrived = make_arrivals(turn);
    return set_flags(turn) || has_arrived;
}

void BarrierService::on_lost(const Turn& turn, Node lost) noexcept { losses_.on_lost(turn, lost, next_barrier_); }

void BarrierService::want_completion(const Turn& turn, bool wanted) noexcept {
    is_completion_wanted_ = wanted;
    port_.want_progress(turn, wants_completion(turn));
}

/// True: some were set, or never will be.
bool BarrierService::set_flags(const Turn& turn) {
    const std::size_t before = awaited_.size();
    std::erase_if(awaited_, [&](const Awaited& awaited) {
        const bool is_there = is_complete(awaited.token);
        const Hopeless* const why = is_there ? nullptr : losses_.find(awaited.token);
        if (is_there) store_flag(*awaited.flag, 1);
        if (why != nullptr)
            dispatcher_.operations().note_error(
                turn, error(ErrorCode::node_lost, "barrier: {} has left, or is lost", dispatcher_.name_of(why->lost)),
                dispatcher_.operations().thread_to_tell(turn, awaited.thread), awaited.flag);
        return is_there || why != nullptr;
    });
    if (awaited_.size() == before) return false;
    port_.want_progress(turn, wants_completion(turn));
    return true;
}

void BarrierService::forget_flags(const Turn& turn) noexcept {
    awaited_.clear();
    port_.want_progress(turn, wants_completion(turn));
}

/// A thread in wait() sends keep-alives itself. For a barrier that only a flag waits for, this does.
void BarrierService::check_silent_peers(const Turn&) noexcept {
    for (const Awaited& awaited : awaited_)
        for (const Node node : missing_elsewhere(awaited.token)) dispatcher_.send_keepalive(node);
}

void BarrierService::notify(const BarrierToken& token, Flag& flag) {
    const Turn turn = dispatcher_.take_turn();
    store_flag(flag, 0);
    awaited_.push_back({token, &flag, base::thread_number()});
    if (set_flags(turn)) return dispatcher_.loop().wake_waiters(turn);
    port_.want_progress(turn, true);
    dispatcher_.loop().on_duty(turn);
}

// ---- complete or not

bool BarrierService::is_complete(const BarrierToken& token) const noexcept {
    if (token.set != all_set) return barriers_.is_complete(token);
    // One that there was no room for is not complete, and its number may look long past.
    if (static_cast<std::int32_t>(token.sequence - next_on_host_) >= 0) return false;
    return host_ ? host_->is_complete(token.sequence) : barriers_.is_complete(token);
}

std::optional<Node> BarrierService::lost_of(const Turn&, const BarrierToken& token) const noexcept {
    const Hopeless* const why = losses_.find(token);
    return why == nullptr ? std::nullopt : std::optional(why->lost);
}

bool BarrierService::test(const BarrierToken& token) {
    const Turn turn = dispatcher_.take_turn();
    if (is_complete(token)) return true;
    dispatcher_.progress().make_progress(turn);
    return is_complete(token);
}

std::vector<Node> BarrierService::missing_elsewhere(const BarrierToken& token) const {
    std::vector<Node> missing;
    barriers_.for_each_awaited(token.set == all_set && host_ ? firsts_set : token.set,
                               [&](Node node) { missing.push_back(node); });
    return missing;
}

std::vector<Node> BarrierService::awaited(const Turn&, const BarrierToken& token) const {
    if (token.set == all_set && host_) {
        std::vector<Node> missing = host_->missing(token.sequence);
        if (!missing.empty()) return missing;
        // The first node of the host tells the others.
        if (!host_->is_first()) return {host_->nodes().front()};
    }
    return missing_elsewhere(token);
}

// ---- waiting

/// A barrier that this node has arrived at and that has failed is gone on with (unfinished_barriers.hpp).
Result<void> BarrierService::barrier(Instant deadline) {
    if (dispatcher_.progress().in_handler()) return error(ErrorCode::misuse, "barrier: a handler must not wait");
    BarrierToken token;
    {
        const Turn turn = dispatcher_.take_turn();
        const auto unfinished = unfinished_.take(all_set);
        token = unfinished ? *unfinished : arrive_at_next(turn, false);
    }
    auto all = wait(token, deadline);
    if (!all) {
        const Turn turn = dispatcher_.take_turn();
        unfinished_.add(token);
    }
    return all;
}

Result<void> BarrierService::wait(const BarrierToken& token, Instant deadline) {
    if (dispatcher_.progress().in_handler()) return error(ErrorCode::misuse, "barrier: a handler must not wait");
    bool is_there = false;
    std::optional<Node> lost;
    std::optional<std::uint64_t> looks; // as it was the last time
    const auto is_over = [&](const Turn&) {
        if ((is_there = is_complete(token))) return true;
        if (const Hopeless* const why = losses_.find(token)) return lost = why->lost, true;
        if (looks.value_or(dispatcher_.peers().looks()) != dispatcher_.peers().looks())
            for (const Node node : missing_elsewhere(token)) dispatcher_.send_keepalive(node);
        looks = dispatcher_.peers().looks();
        return false;
    };
    dispatcher_.loop().serve_until(is_over, deadline, [&] { // asked when the wait is long
        if (token.set == all_set) is_waited_for_.store(true, std::memory_order_relaxed);
        return describe(token);
    });
    if (is_waited_for_.load(std::memory_order_relaxed)) [[unlikely]]
        is_waited_for_.store(false, std::memory_order_relaxed); // another thread that waits says so again
    if (is_there) return {};
    if (lost) return error(ErrorCode::node_lost, "barrier: {} has left, or is lost", dispatcher_.name_of(*lost));
    return error(ErrorCode::timed_out,
                 "barrier: not all nodes have come within the time given; another call goes on waiting for them");
}

std::string BarrierService::describe(const BarrierToken& token) const {
    constexpr std::size_t named_max = 8;
    std::vector<Node> missing;
    if (token.set == all_set && host_) missing = host_->missing(token.sequence);
    const bool is_certain = !missing.empty();
    if (missing.empty()) missing = missing_elsewhere(token);
    if (missing.empty()) return "barrier: nodes of other hosts have not come";
    std::string names;
    for (std::size_t i = 0; i < std::min(missing.size(), named_max); ++i)
        names += fmt::format("{}{}", i == 0 ? "" : ", ", dispatcher_.name_of(missing[i]));
    if (missing.size() > named_max) names += fmt::format(" and {} more", missing.size() - named_max);
    const bool is_one = missing.size() == 1;
    // Nodes hear from some others, which hear from the rest: a node that has come may itself wait for another one.
    return fmt::format("barrier: {} {} not come{}", names, is_one ? "has" : "have",
                       is_certain ? ""
                       : is_one   ? ", or waits for others"
                                  : ", or wait for others");
}

Result<Agreement> BarrierService::agree(std::uint64_t value) {
    std::optional<BarrierToken> token;
    {
        const Turn turn = dispatcher_.take_turn();
        token = BarrierToken{agreement_set, barriers_.next_of(agreement_set)};
        if (losses_.find(*token) == nullptr) token = arrive(turn, agreement_set, all_nodes_, value);
    }
    KUMI_ASSERT(token); // one at a time is under way
    if (auto all = wait(*token, never); !all) return all.error();
    const Turn turn = dispatcher_.take_turn();
    return *barriers_.agreement(*token);
}

} // namespace kumi::engine
