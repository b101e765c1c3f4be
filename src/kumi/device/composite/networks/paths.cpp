// Paths over other nodes: how they are found, and what this node passes on for others.

#include "kumi/base/log.hpp"
#include "kumi/device/composite/networks/networks.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// A neighbour that owes an answer for so long is not asked to pass on a seek.
constexpr Duration owes_max = 200ms;
/// A seek that found nothing is repeated after a quarter of the time that the search takes already, within these
/// limits. Each goes to twice as many neighbours as the one before: in large clusters most seeks find something at
/// once.
constexpr Duration seek_again_min = 100ms;
constexpr Duration seek_again_max = 1s;
constexpr unsigned first_fan = 2; // a power of two
constexpr unsigned fan_max = 20;
/// While a path is longer than planned a shorter one is sought this often, and half as often each time, up to 32 s.
constexpr Duration seek_shorter_every = 1s;
constexpr unsigned seek_shorter_doublings = 5;

/// Seeks and answers that wait for room at one neighbour; of more, the oldest go. Those that seek ask again.
constexpr std::size_t urgent_max = 256;

bool contains(std::span<const Node> path, Node node) noexcept {
    return std::find(path.begin(), path.end(), node) != path.end();
}

} // namespace

/// All nodes that a letter names exist, its path is complete, and it is for this node or to be passed on by this node.
bool Networks::is_sound(const Envelope& head, Bytes letter) const noexcept {
    if (head.kind > Envelope::Kind::owes || head.source >= pairs_.size() || head.destination >= pairs_.size())
        return false;
    if (head.hops > hops_max || letter.size() < head_bytes(head.hops)) return false;
    for (std::size_t i = 0; i < head.hops; ++i)
        if (hop_of(letter, i) >= pairs_.size()) return false;
    if (head.kind == Envelope::Kind::seek) return true;
    if (head.source == self_ || pairs_[head.source].ways.empty()) return false;
    return head.destination == self_ || (head.at < head.hops && hop_of(letter, head.at) == self_);
}

void Networks::note_way_back(Pair& pair, const Envelope& head, Bytes letter) {
    pair.way_back = reversed_path(head, letter);
}

// ---- passing on

/// A relay refuses nothing: each source limits what it has under way. What a source sends again while the relay still
/// has the first copy goes beyond that limit, and is dropped.
void Networks::pass_on(const Envelope& head, Bytes letter, Inlet from) {
    const bool is_last = head.at + 1u == head.hops;
    const Node next = is_last ? head.destination : hop_of(letter, head.at + 1u);
    Pair& pair = pairs_[next];
    if (head.kind == Envelope::Kind::message || head.kind == Envelope::Kind::piece)
        pairs_[head.source].has_passed = true;
    const bool is_there = !pair.ways.empty() && !lost(next);
    if (!is_there || is_relayed(pair)) {
        ++counters_.not_passed_on;
        // These are answers themselves: nobody waits for an answer to them.
        if (head.kind == Envelope::Kind::left || head.kind >= Envelope::Kind::found) return;
        const bool has_left = is_last && !pair.ways.empty() && !is_there;
        Path back = reversed_path(head, letter);
        back.erase(back.begin(), back.end() - head.at);
        return answer(head, has_left ? Envelope::Kind::left : Envelope::Kind::broken, next, back, from);
    }
    ++counters_.passed_on;
    std::array<std::byte, head_bytes_max> changed;
    const std::size_t head_size = head_bytes(head.hops);
    copy_bytes(changed.data(), letter.first(head_size));
    Envelope on = head;
    ++on.at;
    std::memcpy(changed.data(), &on, sizeof on);
    const bool is_about_ways =
        head.kind >= Envelope::Kind::found || head.kind == Envelope::Kind::ping || head.kind == Envelope::Kind::pong;
    if (is_about_ways) return send_urgent(pair, Bytes(changed).first(head_size)); // there is nothing behind it
    const auto out = outlet(pair, pair.current);
    if (pair.passing.empty() && out &&
        out->channel->try_send(out->number, Bytes(changed).first(head_size), letter.subspan(head_size)))
        return watch(pair);
    const auto held = pair.passing_bytes.find(ends_of(head));
    if (held != pair.passing_bytes.end() && held->second + letter.size() > 2 * relay_window_bytes) return;
    Letter kept(letter.begin(), letter.end());
    copy_bytes(kept.data(), Bytes(changed).first(head_size));
    keep_passing(pair, std::move(kept));
}

/// Answers by the way that the letter came. If that has no room, the answer waits for room on the neighbour's current
/// way.
void Networks::answer(const Envelope& head, Envelope::Kind kind, Sequence sequence, std::span<const Node> way_back,
                      Inlet from) {
    std::array<std::byte, head_bytes_max> letter;
    const Envelope answer = envelope(pairs_[head.source], kind, sequence);
    const Bytes bytes = Bytes(letter).first(write_head(letter.data(), answer, way_back));
    if (from.link.channel->try_send(from.number, bytes)) return;
    send_urgent(pairs_[way_back.empty() ? head.source : way_back.front()], bytes);
}

/// Sends a neighbour a seek, or an answer about paths. A busy way has no room most of the time: then the letter is
/// kept, and goes before all messages that wait for room there.
void Networks::send_urgent(Pair& neighbour, Bytes letter) {
    if (neighbour.ways.empty() || neighbour.is_lost || is_relayed(neighbour)) return;
    const Way& way = neighbour.ways[neighbour.current];
    watch(neighbour);
    if (neighbour.urgent.empty() && way.link->channel->try_send(way.number, letter)) return;
    const Envelope head = head_of(letter);
    std::erase_if(neighbour.urgent, [&](const Letter& one) { // an earlier one of the same search says less
        const Envelope other = head_of(one);
        return head.kind == Envelope::Kind::seek && other.kind == head.kind && other.source == head.source &&
               other.destination == head.destination && other.sequence != head.sequence;
    });
    if (neighbour.urgent.size() >= urgent_max) neighbour.urgent.pop_front();
    neighbour.urgent.emplace_back(letter.begin(), letter.end());
    make_pending(neighbour);
}

void Networks::pump_urgent(Pair& neighbour) noexcept {
    if (is_relayed(neighbour)) return neighbour.urgent.clear(); // no neighbour any more: those that seek ask again
    const Way& way = neighbour.ways[neighbour.current];
    while (!neighbour.urgent.empty() && way.link->channel->try_send(way.number, neighbour.urgent.front()))
        neighbour.urgent.pop_front();
}

/// What others gave this node for a peer that no network joins with it any more is theirs to send by another path.
void Networks::tell_broken(Pair& pair) {
    for (; !pair.passing.empty(); pop_passing(pair)) {
        const Node source = head_of(pair.passing.front()).source;
        ++counters_.not_passed_on;
        if (!pairs_[source].is_lost) note(pairs_[source], Envelope::Kind::broken, pair.peer);
    }
}

// ---- finding

/// A network joins the peer with this node, and the peer has answered by it lately.
bool Networks::is_near(const Pair& pair) const noexcept {
    return !pair.ways.empty() && !pair.is_lost && !is_relayed(pair) && may_use(pair.ways[pair.current]) &&
           unanswered(pair, pair.current, now_) < owes_max;
}

/// Asks for a path to a peer, unless that was done just now.
void Networks::seek(Pair& pair, Instant now) {
    if (pair.seeking_since == never) {
        pair.seeking_since = now;
        pair.first_seek = next_seek_;
        pair.seeks = 0;
    } else if (now - pair.sought_at <
               std::clamp<Duration>((now - pair.seeking_since) / 4, seek_again_min, seek_again_max)) {
        return;
    }
    send_seek(pair, std::min(first_fan + pair.seeks, fan_max), now);
}

/// The path works, and is longer than it should be.
void Networks::seek_shorter(Pair& pair, Instant now) {
    if (now - pair.sought_at < seek_shorter_every * (1u << std::min(pair.seeks, seek_shorter_doublings))) return;
    pair.first_seek = next_seek_;
    send_seek(pair, fan_max, now);
}

void Networks::send_seek(Pair& pair, unsigned fan, Instant now) {
    ++pair.seeks;
    pair.sought_at = now;
    Envelope head = envelope(pair, Envelope::Kind::seek, next_seek_++);
    head.at = static_cast<std::uint8_t>(fan);
    ++counters_.seeks;
    spread(head, {});
    ping_path(pair);
}

/// Asks whether the path that is in use works: another may answer sooner, and what was sent by this one would all be
/// sent again.
void Networks::ping_path(Pair& pair) {
    const Way& way = pair.ways.back();
    if (!is_relayed(pair) || way.path.empty()) return;
    std::array<std::byte, head_bytes_max> letter;
    const Envelope head = envelope(pair, Envelope::Kind::ping, static_cast<Sequence>(pair.current));
    send_urgent(pairs_[way.path.front()], Bytes(letter).first(write_head(letter.data(), head, way.path)));
}

void Networks::end_search(Pair& pair) noexcept {
    if (pair.seeking_since == never) return;
    pair.seeking_since = never;
    pair.seeks = 0;
}

/// Gives a seek to neighbours that it has not passed; to others each time, if there are many.
void Networks::spread(const Envelope& head, std::span<const Node> path) {
    std::array<std::byte, head_bytes_max> letter;
    const Bytes bytes = Bytes(letter).first(write_head(letter.data(), head, path));
    const std::size_t nodes = pairs_.size();
    std::size_t left = std::size_t{1} << std::min<unsigned>(head.at, fan_max);
    for (std::size_t i = 0; i < nodes && left > 0; ++i) {
        const auto node = static_cast<Node>((self_ + head.sequence + i) % nodes);
        if (node == head.source || node == head.destination || contains(path, node) || !is_near(pairs_[node])) continue;
        send_urgent(pairs_[node], bytes);
        --left;
    }
}

/// Whether this node has not yet seen a seek, or only by longer ways.
bool Networks::is_news(Pair& source, Sequence number, std::size_t hops) noexcept {
    for (SeenSeek& seen : source.seen)
        if (seen.hops != 0 && seen.number == number) return seen.hops > hops ? (seen.hops = hops, true) : false;
    source.seen[source.seen_next++ % source.seen.size()] = {number, hops};
    return true;
}

void Networks::on_seek(const Envelope& head, Bytes letter, Inlet from) {
    Path path;
    for (std::size_t i = 0; i < head.hops; ++i) path.push_back(hop_of(letter, i));
    // Nodes of one host have the same networks: none of them is of use to another.
    if (head.source == self_ || pairs_[head.source].ways.empty() || contains(path, self_)) return;
    if (!is_news(pairs_[head.source], head.sequence, path.size() + 1)) return;
    if (head.destination == self_) {
        std::reverse(path.begin(), path.end());
        return answer(head, Envelope::Kind::found, head.sequence, path, from);
    }
    if (path.size() >= hops_max) return;
    path.push_back(self_);
    Pair& pair = pairs_[head.destination];
    const bool is_joined = !pair.ways.empty() && !is_relayed(pair) && may_use(pair.ways[pair.current]);
    if (!is_joined) return spread(head, path);
    // The destination is a neighbour. While it owes an answer it is not given the seek: if the network has failed, this
    // node is about to find out.
    if (!is_near(pair)) {
        path.pop_back();
        std::reverse(path.begin(), path.end());
        return answer(head, Envelope::Kind::owes, head.destination, path, from);
    }
    std::array<std::byte, head_bytes_max> on;
    send_urgent(pair, Bytes(on).first(write_head(on.data(), head, path)));
}

void Networks::on_found(Pair& pair, const Envelope& head, Bytes letter, Instant now) {
    Way& way = pair.ways.back();
    if (!way.is_relayed() || is_before(head.sequence, pair.first_seek) || head.hops == 0) return;
    Path path = reversed_path(head, letter);
    if (contains(path, self_) || contains(path, pair.peer)) return void(++counters_.unsound);
    way.answered_at = now;
    const bool is_shorter = path.size() < way.path.size();
    if (way.path.empty() || is_shorter) take_path(pair, std::move(path), way.path.empty() || way.suspected.has_value());
    else if (path != way.path && (way.found.empty() || path.size() < way.found.size())) way.found = std::move(path);
}

/// A neighbour of `node` waits for an answer of it too: the node is busy or stopped, not out of reach. So the search
/// begins anew.
void Networks::on_owes(Node node, Instant now) noexcept {
    if (node < pairs_.size() && pairs_[node].seeking_since != never) pairs_[node].seeking_since = now;
}

/// Node `from` says that no network joins it with `to` any more.
void Networks::on_broken(Node from, Node to, Instant now) {
    for (Pair& pair : pairs_) {
        if (pair.ways.empty() || !pair.ways.back().is_relayed()) continue;
        const Path& path = pair.ways.back().path;
        const auto at = std::find(path.begin(), path.end(), from);
        if (at == path.end()) continue;
        const Node next = at + 1 == path.end() ? pair.peer : *(at + 1);
        if (next != to) continue;
        drop_path(pair);
        if (is_relayed(pair)) consider(pair, now), pump(pair);
    }
}

void Networks::take_path(Pair& pair, Path path, bool is_sent_again) {
    Way& way = pair.ways.back();
    way.path = std::move(path);
    way.found.clear();
    way.doubted = false;
    way.name = fmt::format("node {}", way.path.front());
    if (!is_relayed(pair)) return;
    if (is_sent_again) {
        counters_.resent += pair.own.on_new_path(now_);
    }
    base::log_debug("composite: messages to node {} go by {} nodes, the first is {}", pair.peer, way.path.size(),
                    way.path.front());
    make_pending(pair);
}

void Networks::drop_path(Pair& pair) {
    Way& way = pair.ways.back();
    way.path.clear();
    way.path.swap(way.found);
    if (!way.path.empty()) way.name = fmt::format("node {}", way.path.front());
    if (is_relayed(pair)) pair.own.begin_again();
}

} // namespace kumi::device::composite
