#include "kumi/device/composite/networks/path_finder.hpp"

#include "kumi/base/log.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace kumi::device::composite {
namespace {

bool contains(std::span<const Node> path, Node node) noexcept {
    return std::find(path.begin(), path.end(), node) != path.end();
}

} // namespace

void PathFinder::seek(Peer& peer, Instant now) {
    if (const auto fan = peer.search.seek(now, next_seek_)) send_seek(peer, *fan, now);
}

void PathFinder::seek_shorter(Peer& peer, Instant now) {
    if (const auto fan = peer.search.seek_shorter(now, next_seek_)) send_seek(peer, *fan, now);
}

void PathFinder::send_seek(Peer& peer, unsigned fan, Instant now) {
    peer.search.on_sent(now);
    Envelope head = peers_.envelope(peer, Envelope::Kind::seek, next_seek_++);
    head.at = static_cast<std::uint8_t>(fan);
    ++peers_.counters.seeks;
    spread(head, {});
    ping_path(peer);
}

/// Asks whether the path that is in use works: another may answer sooner, and what was sent by this one would all be
/// sent again.
void PathFinder::ping_path(Peer& peer) {
    const auto first = peer.ways.first_relay();
    if (!first) return;
    std::array<std::byte, head_bytes_max> letter;
    const auto index = static_cast<Sequence>(peer.ways.current_index());
    const Envelope head = peers_.envelope(peer, Envelope::Kind::ping, index);
    const std::size_t bytes = write_head(letter.data(), head, peer.ways.current().path);
    relay_.send_urgent(peers_[*first], Bytes(letter).first(bytes));
}

/// Gives a seek to neighbours that it has not passed; to others each time, if there are many.
void PathFinder::spread(const Envelope& head, std::span<const Node> path) {
    std::array<std::byte, head_bytes_max> letter;
    const Bytes bytes = Bytes(letter).first(write_head(letter.data(), head, path));
    const std::size_t nodes = peers_.all().size();
    std::size_t left = std::size_t{1} << std::min<unsigned>(head.at, PathSearch::fan_max);
    for (std::size_t i = 0; i < nodes && left > 0; ++i) {
        const auto node = static_cast<Node>((peers_.self() + head.sequence + i) % nodes);
        const bool is_end = node == head.source || node == head.destination;
        if (is_end || contains(path, node) || !health_.is_near(peers_[node])) continue;
        relay_.send_urgent(peers_[node], bytes);
        --left;
    }
}

void PathFinder::on_seek(const Envelope& head, Bytes letter, Inlet from) {
    const Node self = peers_.self();
    Path path;
    for (std::size_t i = 0; i < head.hops; ++i) path.push_back(hop_of(letter, i));
    Peer& source = peers_[head.source];
    // Nodes of one host have the same networks: none of them is of use to another.
    if (head.source == self || source.ways.empty() || contains(path, self)) return;
    if (!source.seen.is_news(head.sequence, path.size() + 1)) return;
    if (head.destination == self) {
        std::reverse(path.begin(), path.end());
        return relay_.answer(head, Envelope::Kind::found, head.sequence, path, from);
    }
    if (path.size() >= hops_max) return;
    path.push_back(self);
    Peer& destination = peers_[head.destination];
    const bool is_joined = destination.ways.is_neighbour() && peers_.may_use(destination.ways.current());
    if (!is_joined) return spread(head, path);
    // The destination is a neighbour. While it owes an answer it is not given the seek: if the network has failed, this
    // node is about to find out.
    if (!health_.is_near(destination)) {
        path.pop_back();
        std::reverse(path.begin(), path.end());
        return relay_.answer(head, Envelope::Kind::owes, head.destination, path, from);
    }
    std::array<std::byte, head_bytes_max> on;
    relay_.send_urgent(destination, Bytes(on).first(write_head(on.data(), head, path)));
}

void PathFinder::on_found(Peer& peer, const Envelope& head, Bytes letter, Instant now) {
    Way* const way = peer.ways.relayed();
    if (way == nullptr || !peer.search.is_answer(head.sequence) || head.hops == 0) return;
    Path path = reversed_path(head, letter);
    if (contains(path, peers_.self()) || contains(path, peer.node)) return void(++peers_.counters.unsound);
    way->answered_at = now;
    const bool has_none = way->path.empty();
    if (has_none || path.size() < way->path.size())
        take_path(peer, std::move(path), has_none || way->suspected.has_value());
    else if (path != way->path && (way->found.empty() || path.size() < way->found.size()))
        way->found = std::move(path);
}

void PathFinder::on_owes(Node node, Instant now) noexcept {
    if (node < peers_.all().size()) peers_[node].search.restart(now);
}

void PathFinder::take_path(Peer& peer, Path path, bool is_sent_again) {
    Way& way = peer.ways.back();
    way.path = std::move(path);
    way.found.clear();
    way.doubted = false;
    way.name = fmt::format("node {}", way.path.front());
    if (!peer.ways.is_relayed()) return;
    if (is_sent_again) peers_.counters.resent += peer.out.own.on_new_path(peers_.now());
    base::log_debug("composite: messages to node {} go by {} nodes, the first is {}", peer.node, way.path.size(),
                    way.path.front());
    peers_.make_pending(peer);
}

void PathFinder::drop_path(Peer& peer) {
    Way& way = peer.ways.back();
    way.path.clear();
    way.path.swap(way.found);
    if (!way.path.empty()) way.name = fmt::format("node {}", way.path.front());
    if (peer.ways.is_relayed()) peer.out.own.begin_again();
}

} // namespace kumi::device::composite
