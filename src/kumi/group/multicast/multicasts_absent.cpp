// What will not come: members that nobody reaches, masters that are lost, and what is asked of those who are silent.

#include "kumi/group/multicast/multicasts.hpp"

#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace kumi::group {

/// It is not waited for. But what comes after it still comes after `before`, if that is not 0. What is here whole is
/// delivered in its turn.
void Multicasts::give_up(const Name& name, std::uint64_t before, const std::string& why) {
    Stream* const stream = find_stream(name);
    if (stream == nullptr) drop_early(name);
    if (stream != nullptr && stream->arrived < stream->blocks) {
        resign(*stream, why);
        if (stream->relay) relays_.give_back(remove(*relays_.find(*stream->relay)));
        stream->relay.reset();
        stream->flows.clear();
    }
    Source& source = sources_[name.master];
    if (source.deliveries.contains(name.sequence)) return;
    if (!source.sequences.was_seen(name.sequence)) {
        source.sequences.add(name.sequence);
        source.sequences.miss(name.sequence);
    }
    const bool has_room = source.deliveries.size() < 2 * Groups::under_way_max; // no master has more
    if (before == 0 || is_delivered(source, before) || !has_room) return release_after(source, name.sequence);
    Delivery& place = source.deliveries[name.sequence];
    place.name = name;
    place.purpose.use = Use::take; // as good as taken when it is ready
    place.after.push_back(before);
    place.is_given_up = true;
}

bool Multicasts::on_over(Node source, Bytes bytes) {
    Over head;
    if (!take(bytes, head) || head.name.master >= core_.nodes() || head.name.master == core_.node()) return false;
    if (source == head.name.master) give_up(head.name, head.before);
    else if (Stream* const stream = find_stream(head.name)) stream->out.add(source);
    return true;
}

/// The master is lost, and those who have something of it have sent it long ago.
void Multicasts::give_up_rest_of(Node master, const Source& source) {
    std::set<std::uint64_t> absent;
    for (auto at = streams_.lower_bound({master, 0}); at != streams_.end() && at->first.master == master; ++at)
        if (at->second->arrived < at->second->blocks && !parent_in(*at->second)) absent.insert(at->first.sequence);
    for (const auto& [sequence, delivery] : source.deliveries)
        for (const std::uint64_t other : delivery.after)
            if (!source.sequences.was_seen(other)) absent.insert(other);
    for (const std::uint64_t sequence : absent) {
        const auto behind = source.deliveries.lower_bound(sequence);
        give_up({master, sequence}, behind == source.deliveries.begin() ? 0 : std::prev(behind)->first);
    }
    for (auto at = early_.lower_bound({master, 0}); at != early_.end() && at->first.master == master;) {
        const Name name = at++->first;
        if (find_stream(name) == nullptr) drop_early(name);
    }
}

void Multicasts::drop_early(const Name& name) {
    const auto found = early_.find(name);
    if (found == early_.end()) return;
    for (const auto& [node, answer] : found->second) early_bytes_ -= answer.size();
    early_.erase(found);
}

void Multicasts::check_silent_peers(const engine::Turn& turn) noexcept {
    const Busy busy(*this);
    Set awaited;
    relays_.for_each([&](const Relay& relay) {
        for (const Link& child : relay.children) {
            if (child.has_answered) continue;
            if (relay.stream != nullptr) ask(*relay.stream, child.to, true);
            else awaited.add(child.to);
        }
    });
    for (const auto& [name, stream] : streams_) {
        if (stream->arrived == stream->blocks) continue;
        awaited.add(name.master);
        const bool is_stuck = std::exchange(stream->arrived_at_look, stream->arrived) == stream->arrived;
        if (const auto parent = parent_in(*stream); parent && is_stuck) ask(*stream, *parent, false);
    }
    for (const auto& [name, answers] : early_) awaited.add(name.master);
    for (auto& [master, source] : sources_) {
        if (std::ranges::any_of(source.deliveries, [](const auto& delivery) { return !delivery.second.after.empty(); }))
            awaited.add(master);
        if (!core_.is_gone(master) || ++source.quiet_looks < quiet_looks_max) continue;
        give_up_rest_of(master, source);
    }
    for (const Node node : awaited) core_.send_keepalive(node);
    (void)go_on(turn); // who asked is about to sleep
}

/// Those whom others do not reach may be there all the same: what comes after this one is not to wait for it, but for
/// what came before.
void Multicasts::tell_missing(const Relay& relay) {
    for (const Node node : relay.missing) {
        if (core_.is_lost(node)) continue;
        std::uint64_t before = 0;
        for (const UnderWay& other : under_way_)
            if (other.sequence < relay.name.sequence && other.to.contains(node)) before = other.sequence;
        send(node, message_of(Over{Kind::over, 0, relay.name, before}));
    }
}

} // namespace kumi::group
