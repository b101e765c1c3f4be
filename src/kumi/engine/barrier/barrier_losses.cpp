#include "kumi/engine/barrier/barrier_losses.hpp"

#include "kumi/engine/barrier/host_meeting.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace kumi::engine {

void BarrierLosses::on_lost(const Turn& turn, Node lost, std::uint32_t next) {
    std::vector<std::uint64_t> busy;
    barriers_.for_each_busy([&](std::uint64_t set) { busy.push_back(set); });
    for (const std::uint64_t set : busy) look_for_lacking(turn, set, lost);
    if (host_ == nullptr || !host_->has(lost)) return;
    look_for_lacking_on_host(turn, lost, next);
    // The lost node may have been to tell others of this host. Once for each node that is lost.
    const auto gone =
        std::ranges::count_if(host_->nodes(), [this](Node node) { return dispatcher_.peers().is_gone(node); });
    if (std::exchange(host_losses_, gone) == gone) return;
    if (const Hopeless* const known = given_up_.find(all_set)) tell_host(turn, *known);
}

void BarrierLosses::on_arrived(const Turn& turn, std::uint64_t set) {
    if (!dispatcher_.peers().has_losses(turn)) return;
    barriers_.for_each_heard(set, [&](Node node) {
        if (!dispatcher_.peers().is_gone(node)) return;
        look_for_lacking(turn, set, node);
        dispatcher_.loop().wake_waiters(turn); // others may wait for it
    });
}

void BarrierLosses::on_arrived_on_host(const Turn& turn, std::uint32_t next) {
    if (!dispatcher_.peers().has_losses(turn)) return;
    for (const Node node : host_->nodes())
        if (dispatcher_.peers().is_gone(node)) {
            look_for_lacking_on_host(turn, node, next);
            dispatcher_.loop().wake_waiters(turn); // others may wait for it
        }
}

void BarrierLosses::look_for_lacking(const Turn& turn, std::uint64_t set, Node lost) {
    const auto sequence = barriers_.first_lacking(set, lost);
    if (!sequence) return;
    const bool is_of_all = set < first_of_others;
    const std::span<const Node> members = is_of_all ? std::span<const Node>(all_nodes_) : barriers_.members_of(set);
    give_up(turn, {set == firsts_set ? all_set : set, *sequence, lost}, members);
}

/// Nodes of this host leave no messages, but say in their memory how often they have arrived.
void BarrierLosses::look_for_lacking_on_host(const Turn& turn, Node lost, std::uint32_t next) {
    std::uint32_t sequence = host_->next_of(lost);
    // No other node speaks to other hosts for this one.
    if (!host_->is_only_host() && lost == host_->nodes().front()) sequence = host_->completed();
    if (static_cast<std::int32_t>(sequence - next) < 0) give_up(turn, {all_set, sequence, lost}, all_nodes_);
}

void BarrierLosses::give_up(const Turn& turn, const Hopeless& what, std::span<const Node> members) {
    if (!given_up_.note(what)) return;
    if (what.set == all_set && host_ != nullptr) {
        if (host_->is_first()) tell_of(turn, what, host_->firsts(), {});
        tell_host(turn, what);
        barriers_.give_up(firsts_set, what.sequence);
    } else {
        const bool is_of_all = what.set < first_of_others;
        tell_of(turn, what, members, is_of_all ? Bytes{} : std::as_bytes(members));
        barriers_.give_up(what.set, what.sequence);
    }
}

/// Tells those that hear from this node at a barrier of `members`.
void BarrierLosses::tell_of(const Turn& turn, const Hopeless& what, std::span<const Node> members, Bytes body) {
    for (const auto& partners : Barriers::partners_of(dispatcher_.node(), members))
        if (!dispatcher_.peers().is_gone(partners.to)) port_.reply(turn, partners.to, hopeless_kind, what, body);
}

void BarrierLosses::tell_host(const Turn& turn, const Hopeless& what) {
    std::vector<Node> here;
    for (const Node node : host_->nodes())
        if (node == dispatcher_.node() || !dispatcher_.peers().is_gone(node)) here.push_back(node);
    tell_of(turn, what, here, {});
}

bool BarrierLosses::on_hopeless(const Turn& turn, Bytes body) {
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
    // A node makes up sets as it likes. Those that this node has arrived at are bounded by itself.
    if (barriers_.members_of(what.set).empty() && given_up_.size() >= given_up_max) return true;
    give_up(turn, what, members);
    return true;
}

} // namespace kumi::engine
