#include "kumi/device/composite/peers/health.hpp"

#include <algorithm>
#include <utility>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// A neighbour that owes an answer for so long is not asked to pass on a seek.
constexpr Duration owes_max = 200ms;
/// A peer of which all networks say that it is gone is sought so long.
constexpr Duration seek_time_of_gone = 250ms;
/// And one for which a node that closes still has messages.
constexpr Duration seek_time_closing = 2s;

/// The device takes the peer for lost, or would if this were the only way.
bool is_gone(const Way& direct) noexcept {
    return direct.link->channel->lost(direct.number) || direct.link->ways->is_silent(direct.number);
}

/// By all networks that join it with this node.
bool is_gone_directly(const Peer& peer) noexcept {
    return std::all_of(peer.ways.begin(), peer.ways.end(), [](const Way& way) {
        return way.is_relayed() || way.has_never_answered() || is_gone(way);
    });
}

bool has_left(const Peer& peer) noexcept {
    return std::any_of(peer.ways.begin(), peer.ways.end(),
                       [](const Way& way) { return !way.is_relayed() && way.link->ways->has_left(way.number); });
}

} // namespace

/// Since that time nothing has worked, and the limit has passed. A way that has never answered is not waited for.
bool Health::is_over(Instant since, Duration limit) const noexcept {
    if (since == never || since == Instant{}) return since != never;
    return limit != Duration{0} && peers_.now() - since > limit;
}

/// The peer will not answer that way again, as far as one can tell.
bool Health::is_dead(const Peer& peer, std::size_t index) const noexcept {
    const Way& way = peer.ways[index];
    if (!way.is_relayed()) return is_gone(way) || is_over(way.unusable_since, silence_max_);
    // A node that closes, and has nothing for the peer, only waits for its word: the nodes that were to pass that on
    // have left.
    if (is_closing_ && way.path.empty() && peer.out.own.empty()) return true;
    // No seek finds the peer. If its networks say that it is gone, they are believed soon.
    const bool is_gone_here = index > 0 && is_gone_directly(peer);
    const Duration limit = is_gone_here ? seek_time_of_gone : is_closing_ ? seek_time_closing : silence_max_;
    return is_over(peer.search.since(), limit);
}

bool Health::is_lost(const Peer& peer) const noexcept {
    if (peer.is_lost || has_left(peer)) return true;
    for (std::size_t i = 0; i < peer.ways.size(); ++i)
        if (!is_dead(peer, i)) return false;
    return true;
}

bool Health::is_reported_gone(const Peer& peer) const noexcept {
    return !peer.ways.empty() && !peer.ways[0].is_relayed() && (has_left(peer) || is_gone_directly(peer));
}

void Health::lose(Peer& peer) {
    if (std::exchange(peer.is_lost, true)) return;
    if (!peer.ways[0].is_relayed())
        for (Peer& other : peers_.all())
            if (other.farewell.needs_this_node() && !other.is_lost)
                peers_.note(other, Envelope::Kind::left, peer.node);
    peer.out.clear();
    peer.ways.drop_next();
    peer.stripes.clear();
    peer.in.owes_word = false;
    peers_.update_plain(peer);
    peers_.note_room_for_all();
}

void Health::on_closed(Peer& peer) noexcept {
    peer.has_closed = true;
    peer.out.own.clear();
    peer.stripes.clear();
    peers_.update_plain(peer);
    peers_.note_room_for_all();
}

Duration Health::unanswered(const Peer& peer, std::size_t index, Instant now) const noexcept {
    const Way& way = peer.ways[index];
    return way.is_relayed() ? peer.out.own.unanswered(now) : way.link->ways->unanswered(way.number, now);
}

bool Health::is_near(const Peer& peer) const noexcept {
    return peer.ways.is_neighbour() && !peer.is_lost && peers_.may_use(peer.ways.current()) &&
           unanswered(peer, peer.ways.current_index(), peers_.now()) < owes_max;
}

bool Health::has_all(const Peer& peer) const noexcept {
    if (peer.is_lost) return true;
    if (!peer.out.own.empty() || !peer.out.passing.empty()) return false;
    for (std::size_t i = 0; i < peer.ways.size(); ++i) {
        const Way& way = peer.ways[i];
        const bool is_used = i == peer.ways.current_index() || way.has_pieces;
        if (!way.is_relayed() && is_used && !way.link->ways->all_arrived(way.number)) return false;
    }
    return true;
}

bool Health::is_settled(const Peer& peer) const noexcept {
    const bool is_asking = peer.out.refused && !peer.stripes.under_way.empty();
    const Way& best = peer.ways[0];
    const bool is_good = peer.ways.current_index() == 0 && !peer.ways.next() && !(best.deaf && peers_.is_up(best));
    return peer.is_lost || (has_all(peer) && is_good && !is_asking && !is_closing_);
}

} // namespace kumi::device::composite
