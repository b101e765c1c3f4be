#include "kumi/engine/barrier/barrier_service.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/sync/memory_policy.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kumi::engine {
namespace {

// Sets that all nodes know.
constexpr std::uint64_t all_set = 0;
constexpr std::uint64_t agreement_set = 1;
constexpr std::uint64_t firsts_set = 2; // the first nodes of all hosts
constexpr std::size_t known_sets = 3;
constexpr std::uint64_t first_of_others = std::uint64_t{1} << 63; // sets of some nodes: Barriers::set_of()

constexpr std::uint16_t step_kind = kind_in_service(Kind::step);
constexpr std::uint16_t host_arrived_kind = kind_in_service(Kind::host_arrived);
constexpr std::uint16_t hopeless_kind = kind_in_service(Kind::hopeless);

/// Sequences wrap.
bool is_before(std::uint32_t a, std::uint32_t b) noexcept { return static_cast<std::int32_t>(a - b) < 0; }

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

SharedPage& BarrierService::own_page() noexcept { return dispatcher_.segments().map().page(dispatcher_.node()); }

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
    if (given_up_.find({step.set, step.sequence}) != nullptr) return true;
    barriers_.on_step(source, step, [&](Node to, const BarrierStep& next) { send_step(turn, to, next); });
    if (step.set == firsts_set && host_barrier_) check_firsts(turn);
    return true;
}

// ---- coming

std::optional<BarrierToken> BarrierService::arrive(const Turn& turn, std::uint64_t set, std::span<const Node> members,
                                                   std::uint64_t value) {
    const auto token =
        barriers_.arrive(set, members, value, [&](Node to, const BarrierStep& step) { send_step(turn, to, step); });
    if (dispatcher_.peers().has_losses(turn))
        barriers_.for_each_heard(set, [&](Node node) {
            if (!dispatcher_.peers().is_gone(node)) return;
            look_for_lacking(turn, set, node);
            dispatcher_.loop().wake_waiters(turn); // others may wait for it
        });
    return token;
}

/// This node comes to the next barrier of all; split: it does something else before it waits.
BarrierToken BarrierService::come(const Turn& turn, bool is_split) {
    const BarrierToken token{all_set, next_barrier_};
    if (given_up_.find(token) != nullptr) return token; // nor does it wait for this node
    ++next_barrier_;
    make_arrivals(turn);
    if (host_barrier_ && dispatcher_.peers().has_losses(turn))
        for (const Node node : on_host_)
            if (dispatcher_.peers().is_gone(node)) {
                look_for_lacking_on_host(turn, node);
                dispatcher_.loop().wake_waiters(turn); // others may wait for it
            }
    // Memory needs no help; messages do.
    if (is_split && (!host_barrier_ || firsts_.size() != 1 || next_on_host_ != next_barrier_))
        dispatcher_.loop().on_duty(turn);
    return token;
}

BarrierToken BarrierService::arrive() {
    const Turn turn = dispatcher_.take_turn();
    unfinished_.clear();
    return come(turn, true);
}

bool BarrierService::go_on(const Turn& turn) noexcept {
    const bool has_arrived = make_arrivals(turn);
    return set_flags(turn) || has_arrived;
}

/// True: some were set, or never will be.
bool BarrierService::set_flags(const Turn& turn) {
    const std::size_t before = awaited_.size();
    std::erase_if(awaited_, [&](const Awaited& awaited) {
        const bool is_there = is_complete(awaited.token);
        const Hopeless* const why = is_there ? nullptr : given_up_.find(awaited.token);
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
void BarrierService::check_silent_peers(const Turn& turn) noexcept {
    for (const Awaited& awaited : awaited_) send_keepalives_to_missing(turn, awaited.token);
}

void BarrierService::notify(const BarrierToken& token, Flag& flag) {
    const Turn turn = dispatcher_.take_turn();
    store_flag(flag, 0);
    awaited_.push_back({token, &flag, base::thread_number()});
    if (set_flags(turn)) return dispatcher_.loop().wake_waiters(turn);
    port_.want_progress(turn, true);
    dispatcher_.loop().on_duty(turn);
}

/// Those that there is room for; the others later. True: some were made.
bool BarrierService::make_arrivals(const Turn& turn) {
    const std::uint32_t before = next_on_host_;
    for (; has_uncounted(turn); ++next_on_host_) {
        if (!host_barrier_) {
            if (!arrive(turn, all_set, all_nodes_)) break;
            continue;
        }
        const Arrival arrival = host_barrier_->arrive(next_on_host_);
        if (arrival == Arrival::early) break;
        if (arrival == Arrival::last) on_host_last(turn, next_on_host_);
        // Last, so that a node that dies before is missed. Release: partner of look_for_lacking_on_host().
        own_page().barriers_arrived.store(next_on_host_ + 1, std::memory_order_release);
    }
    port_.want_progress(turn, wants_completion(turn));
    return next_on_host_ != before;
}

/// This node is the last of its host at that barrier.
void BarrierService::on_host_last(const Turn& turn, std::uint32_t sequence) {
    if (firsts_.size() == 1) tell_host_of(sequence);
    else if (on_host_.front() == dispatcher_.node()) on_host_complete(turn);
    else port_.reply(turn, on_host_.front(), host_arrived_kind, HostArrived{sequence, 0});
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

/// A barrier that this node has come to and that has failed is gone on with. To come to another one would put this node
/// ahead of the others: it would take their barriers for later ones.
Result<void> BarrierService::barrier(Instant deadline) {
    if (dispatcher_.progress().in_handler()) return error(ErrorCode::misuse, "barrier: a handler must not wait");
    BarrierToken token;
    {
        const Turn turn = dispatcher_.take_turn();
        const auto oldest = std::ranges::min_element(unfinished_, is_before);
        if (oldest == unfinished_.end()) {
            token = come(turn, false);
        } else {
            token = {all_set, *oldest};
            unfinished_.erase(oldest);
        }
    }
    auto all = wait(token, deadline);
    if (!all) {
        const Turn turn = dispatcher_.take_turn();
        unfinished_.push_back(token.sequence);
    }
    return all;
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
    if (const BarrierToken next{set, barriers_.next_of(set)}; given_up_.find(next) != nullptr) return next;
    // Those of all nodes need no leave.
    if (!barriers_.is_busy(set) && barriers_.busy_sets() + known_sets >= Barriers::busy_sets_max)
        return error(ErrorCode::no_memory,
                     "barrier of some nodes: {} sets have one under way, which is the most there may be",
                     barriers_.busy_sets());
    const auto token = arrive(turn, set, sorted);
    if (!token)
        return error(ErrorCode::no_memory,
                     "barrier of some nodes: too many are under way in this set, or there were too many sets");
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

void BarrierService::send_keepalives_to_missing(const Turn&, const BarrierToken& token) noexcept {
    const bool is_of_hosts = token.set == all_set && host_barrier_;
    barriers_.for_each_awaited(is_of_hosts ? firsts_set : token.set,
                               [this](Node node) { dispatcher_.send_keepalive(node); });
}

// ---- lost nodes
//
// A node looks for barriers that lack a lost node when the node is lost, and when it comes to a barrier. Only a barrier
// that this node has come to counts, so nodes that leave one after the other at the end of a job are not missed. Not
// every node that has left is missed: it may have come before.
//
// A node tells those that hear from it at the barrier, which are log2(n), and they tell those that hear from them. Who
// waits for a barrier in vain waits for a node that is lost, which it notices, or for one that has come and waits in
// vain itself, and tells.

void BarrierService::on_lost(const Turn& turn, Node lost) noexcept {
    std::vector<std::uint64_t> busy;
    barriers_.for_each_busy([&](std::uint64_t set) { busy.push_back(set); });
    for (const std::uint64_t set : busy) look_for_lacking(turn, set, lost);
    if (!host_barrier_ || !std::binary_search(on_host_.begin(), on_host_.end(), lost)) return;
    look_for_lacking_on_host(turn, lost);
    // The lost node may have been to tell others of this host. Once for each node that is lost.
    const auto gone = std::ranges::count_if(on_host_, [this](Node node) { return dispatcher_.peers().is_gone(node); });
    if (std::exchange(host_losses_, gone) == gone) return;
    if (const Hopeless* const known = given_up_.find(all_set)) tell_host(turn, *known);
}

void BarrierService::look_for_lacking(const Turn& turn, std::uint64_t set, Node lost) {
    const auto sequence = barriers_.first_lacking(set, lost);
    if (!sequence) return;
    const bool is_of_all = set < first_of_others;
    const std::span<const Node> members = is_of_all ? std::span<const Node>(all_nodes_) : barriers_.members_of(set);
    give_up(turn, {set == firsts_set ? all_set : set, *sequence, lost}, members);
}

/// Nodes of this host leave no messages, but say in their memory how often they have come.
void BarrierService::look_for_lacking_on_host(const Turn& turn, Node lost) {
    // Acquire: partner of the release in make_arrivals().
    std::uint32_t sequence =
        dispatcher_.segments().map().page(lost).barriers_arrived.load(std::memory_order_acquire);
    // Nobody else speaks to other hosts for this one.
    if (firsts_.size() > 1 && lost == on_host_.front()) sequence = host_barrier_->completed();
    if (is_before(sequence, next_barrier_)) give_up(turn, {all_set, sequence, lost}, all_nodes_);
}

void BarrierService::give_up(const Turn& turn, const Hopeless& what, std::span<const Node> members) {
    if (!given_up_.note(what)) return;
    if (what.set == all_set && host_barrier_) {
        if (on_host_.front() == dispatcher_.node()) tell_of(turn, what, firsts_, {});
        tell_host(turn, what);
        barriers_.give_up(firsts_set, what.sequence);
    } else {
        const bool is_of_all = what.set < first_of_others;
        tell_of(turn, what, members, is_of_all ? Bytes{} : std::as_bytes(members));
        barriers_.give_up(what.set, what.sequence);
    }
}

/// Tells those that hear from this node at a barrier of `members`.
void BarrierService::tell_of(const Turn& turn, const Hopeless& what, std::span<const Node> members, Bytes body) {
    for (const auto& partners : Barriers::partners_of(dispatcher_.node(), members))
        if (!dispatcher_.peers().is_gone(partners.to)) port_.reply(turn, partners.to, hopeless_kind, what, body);
}

void BarrierService::tell_host(const Turn& turn, const Hopeless& what) {
    std::vector<Node> here;
    for (const Node node : on_host_)
        if (node == dispatcher_.node() || !dispatcher_.peers().is_gone(node)) here.push_back(node);
    tell_of(turn, what, here, {});
}

bool BarrierService::on_hopeless(const Turn& turn, Bytes body) {
    Hopeless what;
    if (!read_value(body, what) || what.lost >= dispatcher_.nodes()) return false;
    if (what.set == all_set || what.set == agreement_set) return give_up(turn, what, all_nodes_), true;
    // The set's number shows that these are its members.
    const Bytes listed = body.subspan(sizeof what);
    std::vector<Node> members(listed.size() / sizeof(Node));
    if (!members.empty()) std::memcpy(members.data(), listed.data(), members.size() * sizeof(Node));
    const bool are_sound = listed.size() % sizeof(Node) == 0 &&
                           std::ranges::adjacent_find(members, std::ranges::greater_equal{}) == members.end() &&
                           std::ranges::binary_search(members, dispatcher_.node()) &&
                           std::ranges::binary_search(members, what.lost) && members.back() < dispatcher_.nodes() &&
                           Barriers::set_of(members) == what.set;
    if (!are_sound) return false;
    // A node makes up sets as it likes. Those that this node has come to are bounded by itself.
    if (barriers_.members_of(what.set).empty() && given_up_.size() >= given_up_max) return true;
    give_up(turn, what, members);
    return true;
}

// ---- waiting

Result<void> BarrierService::wait(const BarrierToken& token, Instant deadline) {
    if (dispatcher_.progress().in_handler()) return error(ErrorCode::misuse, "barrier: a handler must not wait");
    bool is_there = false;
    std::optional<Node> lost;
    std::optional<std::uint64_t> looks; // as it was the last time
    const auto is_over = [&](const Turn& turn) {
        if ((is_there = is_complete(token))) return true;
        if (const Hopeless* const why = given_up_.find(token)) return lost = why->lost, true;
        if (looks.value_or(dispatcher_.peers().looks()) != dispatcher_.peers().looks())
            send_keepalives_to_missing(turn, token);
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

std::string BarrierService::describe(const BarrierToken& token) {
    constexpr std::size_t named_max = 8;
    std::vector<Node> missing;
    const bool is_of_hosts = token.set == all_set && host_barrier_;
    if (is_of_hosts)
        for (const Node node : on_host_)
            // Acquire: partner of the release in make_arrivals().
            if (const auto& arrived = dispatcher_.segments().map().page(node).barriers_arrived;
                !is_before(token.sequence, arrived.load(std::memory_order_acquire)))
                missing.push_back(node);
    const bool is_certain = !missing.empty();
    if (missing.empty())
        barriers_.for_each_awaited(is_of_hosts ? firsts_set : token.set, [&](Node node) { missing.push_back(node); });
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
        if (given_up_.find(*token) == nullptr) token = arrive(turn, agreement_set, all_nodes_, value);
    }
    KUMI_ASSERT(token); // one at a time is under way
    if (auto all = wait(*token, never); !all) return all.error();
    const Turn turn = dispatcher_.take_turn();
    return *barriers_.agreement(*token);
}

} // namespace kumi::engine
