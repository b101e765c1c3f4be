#include "kumi/device/composite/networks/failover.hpp"

#include "kumi/base/log.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// A peer that owes an answer for so long is asked by other ways.
constexpr Duration suspect_after = 100ms;
/// When it has answered by another, it has so long to answer by the first one too: it may only have been busy.
constexpr Duration benefit_of_doubt = 30ms;
/// A better way is tried this often, and taken when it has answered so often in a row, each time so soon.
constexpr Duration try_better_every = 100ms;
constexpr unsigned answers_needed = 2;
constexpr Duration answer_in_time = 50ms;
/// An answer that did not come, though the question has arrived, is asked for again.
constexpr Duration ask_again_after = 1s;
/// The user is told of one network no more often.
constexpr Duration tell_every = 10s;
/// A sender that waits for messages in pieces to arrive asks the peer this often.
constexpr Duration ask_how_far_every = 100ms;

} // namespace

// ---- time

void Failover::consider(Peer& peer, Instant now) {
    if (peer.is_lost) return;
    for (Way& way : peer.ways) way.unusable_since = peers_.may_use(way) ? never : std::min(way.unusable_since, now);
    tell_silence(peer, now);
    if (health_.is_lost(peer)) return health_.lose(peer);
    if (const Way* const relayed = peer.ways.relayed();
        relayed != nullptr && !relayed->path.empty() && !peers_.is_up(*relayed))
        paths_.drop_path(peer);
    const Way& way = peer.ways.current();
    if (!peers_.may_use(way)) {
        const char* const why = way.is_relayed() ? "the relay is gone"
                                : !way.link->up  ? "no carrier"
                                : way.deaf       ? "the other end has no carrier"
                                                 : "nobody listens there";
        if (move_from_failed(peer, why, now)) return;
    }
    peer.out.own.look(now);
    consider_rails(peer, now);
    if (answers_elsewhere(peer, peer.ways.current_index(), now)) move_from_failed(peer, "no answer", now);
    try_better(peer, now);
    if (const auto first = peer.ways.first_relay()) {
        const Way& relayed = peer.ways.current();
        peers_.watch(peers_[*first]); // messages go by its ways
        if (!relayed.suspected && relayed.path.size() > peer.hops_planned) paths_.seek_shorter(peer, now);
    }
    if (peer.ways.is_relayed() && peer.out.own.is_overdue(now)) {
        peers_.counters.resent += peer.out.own.size();
        peer.out.own.on_timeout();
        peers_.make_pending(peer);
    }
}

/// Looks at the rails but the current way, which consider() sees to.
void Failover::consider_rails(Peer& peer, Instant now) {
    const std::size_t current = peer.ways.current_index();
    for (std::size_t i = 0; i < peer.ways.size(); ++i) {
        Way& way = peer.ways[i];
        if (way.is_relayed()) continue;
        if (way.link->ways->all_arrived(way.number)) {
            way.has_pieces = false;
            if (peers_.may_use(way)) way.doubted = false;
            if (i != current) way.suspected.reset();
        }
        if (i == current || !way.has_pieces) continue;
        if (!peers_.may_use(way)) leave_rail(peer, i, "it is gone", now);
        else if (answers_elsewhere(peer, i, now)) leave_rail(peer, i, "no answer", now);
    }
    // What the peer said of arrivals may have been lost with some way.
    const bool may_be_lost = peer.out.refused && !peer.stripes.under_way.empty() && health_.has_all(peer);
    if (may_be_lost && now - peer.stripes.asked_how_far >= ask_how_far_every) {
        peer.stripes.asked_how_far = now;
        peers_.note(peer, Envelope::Kind::how_far);
    }
    striper_.look_ahead(peer);
    peers_.update_plain(peer);
}

void Failover::leave_rail(Peer& peer, std::size_t index, const char* why, Instant now) {
    Way& way = peer.ways[index];
    tell(peer, way, why, peer.ways.current().name, now);
    way.doubted = true;
    way.suspected.reset();
    collect_unarrived(peer, index);
    peers_.update_plain(peer);
    peers_.make_pending(peer);
}

/// Looks whether the peer, if it does not answer that way, answers by another.
bool Failover::answers_elsewhere(Peer& peer, std::size_t index, Instant now) {
    auto& suspected = peer.ways[index].suspected;
    if (health_.unanswered(peer, index, now) < suspect_after && peers_.may_use(peer.ways[index])) {
        suspected.reset();
        if (index == peer.ways.current_index()) peer.search.end();
        return false;
    }
    if (!suspected) {
        suspected = now;
        for (Way& way : peer.ways) way.pinged = false;
    }
    bool answers = false;
    for (std::size_t i = 0; i < peer.ways.size(); ++i) {
        Way& way = peer.ways[i];
        if (way.is_relayed()) {
            answers = path_answers_elsewhere(peer, i, index, now) || answers;
            continue;
        }
        if (!peers_.is_up(way) || (i == index && !way.deaf)) continue; // one that is said to be deaf may hear again
        if (i == index || way.answered_at <= *suspected) ping(peer, i, now);
        else if (now - way.answered_at >= benefit_of_doubt) answers = true;
    }
    return answers;
}

/// The same for way `i`, which is over other nodes: the peer does not answer by way `index`, and may answer by a path.
bool Failover::path_answers_elsewhere(Peer& peer, std::size_t i, std::size_t index, Instant now) {
    if (index != peer.ways.current_index()) return false; // of several rails one fails
    Way& way = peer.ways[i];
    auto& suspected = peer.ways[index].suspected;
    const bool is_path_alive = i == index && way.path_answered_at > *suspected; // its relays have much to do
    if (is_path_alive) way.found.clear(), suspected = now;
    else if (way.answered_at <= *suspected || way.path.empty()) paths_.seek(peer, now);
    else if (now - way.answered_at < benefit_of_doubt) return false;
    else if (i != index) return true;
    else if (!way.found.empty()) paths_.take_path(peer, std::exchange(way.found, {}), true);
    else suspected = now; // this path answers, and yet nothing arrives: the doubt begins anew
    return false;
}

void Failover::try_better(Peer& peer, Instant now) {
    if (peer.ways.next()) {
        const Way& next = peer.ways[*peer.ways.next()];
        if (!peers_.may_use(next)) {
            peer.ways.drop_next();
        } else if (health_.has_all(peer) && !peer.reservation.is_out) {
            ++peers_.counters.returns;
            base::log_debug("composite: {} answers again: messages to node {} go that way", next.name, peer.node);
            peer.ways.use(*peer.ways.next());
        }
        return peers_.update_plain(peer);
    }
    for (std::size_t i = 0; i < peer.ways.current_index(); ++i) {
        Way& way = peer.ways[i];
        if (!peers_.is_up(way)) continue;
        if (way.answers < answers_needed) {
            ping(peer, i, now);
            continue;
        }
        way.answers = 0;
        way.deaf = way.doubted = false;
        const Way& current = peer.ways.current();
        if (current.suspected || !peers_.may_use(current)) return move(peer, i);
        peer.ways.set_next(i);
        peers_.make_pending(peer);
        return peers_.update_plain(peer);
    }
}

// ---- pings

void Failover::ping(Peer& peer, std::size_t index, Instant now) {
    Way& way = peer.ways[index];
    if (way.pinged) {
        // the device sees to it that it gets there
        if (!way.link->ways->all_arrived(way.number) || now - way.pinged_at < ask_again_after) return;
    } else {
        const bool is_urgent = std::any_of(peer.ways.begin(), peer.ways.end(),
                                           [](const Way& other) { return other.suspected.has_value(); });
        if (now - way.pinged_at < (is_urgent ? benefit_of_doubt : try_better_every)) return;
    }
    const auto out = peers_.outlet(peer, index);
    if (!sender_.send_control(peer, out, Envelope::Kind::ping, static_cast<Sequence>(index))) return;
    way.pinged = true;
    way.pinged_at = now;
}

void Failover::on_ping(Peer& peer, const Envelope& head, Inlet from) {
    for (Way& way : peer.ways)
        if (way.link == &from.link) way.owes_pong = head.sequence;
    sender_.pump_pongs(peer);
    peers_.make_pending(peer);
}

void Failover::on_pong(Peer& peer, const Envelope& head, Bytes letter, Instant now) {
    if (head.sequence >= peer.ways.size()) return;
    Way& way = peer.ways[head.sequence];
    if (way.is_relayed()) {
        if (way.path == reversed_path(head, letter)) way.path_answered_at = now;
        return;
    }
    if (std::exchange(way.pinged, false)) way.on_pong(now, answer_in_time);
}

// ---- what links and peers say

void Failover::on_interfaces_changed() {
    for (Link& link : peers_.links()) {
        const bool was_up = std::exchange(link.up, link.ways->are_up());
        if (was_up == link.up) continue;
        for (Peer& peer : peers_.all())
            for (Way& way : peer.ways) {
                if (way.link != &link) continue;
                way.answers = 0;
                peers_.watch(peer);
                // The peer does not see it, and is told by a way that is left.
                const auto news = link.up ? Envelope::Kind::hears : Envelope::Kind::deaf;
                if (!peer.is_lost) peers_.note(peer, news, link.network);
            }
    }
}

void Failover::on_deaf(Peer& peer, std::uint32_t network, bool is_deaf, Instant now) {
    for (Way& way : peer.ways) {
        if (way.is_relayed() || way.link->network != network) continue;
        way.deaf = is_deaf;
        way.answers = 0;
        peers_.watch(peer);
    }
    consider(peer, now);
    sender_.pump(peer);
}

void Failover::on_broken(Node from, Node to, Instant now) {
    for (Peer& peer : peers_.all()) {
        const Way* const way = peer.ways.relayed();
        if (way == nullptr) continue;
        const auto at = std::find(way->path.begin(), way->path.end(), from);
        if (at == way->path.end()) continue;
        const Node next = at + 1 == way->path.end() ? peer.node : *(at + 1);
        if (next != to) continue;
        paths_.drop_path(peer);
        if (!peer.ways.is_relayed()) continue;
        consider(peer, now);
        sender_.pump(peer);
    }
}

// ---- moving

/// Takes the next way that may be used, if there is one.
bool Failover::move_from_failed(Peer& peer, const char* why, Instant now) {
    const auto is_good = [&](std::size_t i, bool also_doubted) {
        return i != peer.ways.current_index() && peers_.may_use(peer.ways[i]) &&
               (also_doubted || !peer.ways[i].doubted);
    };
    for (const bool also_doubted : {false, true}) {
        // Over other nodes: another path is sought, and better ways are tried all along.
        if (also_doubted && peer.ways.is_relayed()) break;
        for (std::size_t i = 0; i < peer.ways.size(); ++i) {
            if (!is_good(i, also_doubted)) continue;
            Way& from = peer.ways.current();
            tell(peer, from, why, peer.ways[i].name, now);
            from.doubted = true;
            ++peers_.counters.failovers;
            // The peer may not know yet, if nothing of its own is under way.
            if (!from.is_relayed() && from.link->up && !from.deaf)
                peers_.note(peer, Envelope::Kind::deaf, from.link->network);
            move(peer, i);
            return true;
        }
    }
    return false;
}

void Failover::move(Peer& peer, std::size_t index) {
    OwnLetters& own = peer.out.own;
    if (!peer.ways.is_relayed()) collect_unarrived(peer, peer.ways.current_index());
    else peers_.counters.resent += own.size();
    peer.ways.current().suspected.reset();
    peer.ways.use(index);
    peer.ways[index].answers = 0;
    own.on_new_path(peers_.now());
    if (peer.ways.is_relayed()) own.ask_for_arrivals();
    peers_.update_plain(peer);
    peers_.watch(peer);
    peers_.make_pending(peer);
    sender_.pump(peer);
}

/// What was given to the peer by that way and may not have arrived is to be sent by another.
void Failover::collect_unarrived(Peer& peer, std::size_t index) {
    Way& way = peer.ways[index];
    way.has_pieces = false;
    Letters unarrived, passed;
    way.link->ways->each_unarrived(way.number, [&](Bytes letter) {
        Envelope head;
        if (!read_value(letter, head) || (head.kind != Envelope::Kind::message && head.kind != Envelope::Kind::piece))
            return;
        Letter copy(letter.begin(), letter.end());
        if (head.source == peers_.self() && head.hops == 0) unarrived.push_back(std::move(copy));
        else if (head.source != peers_.self()) passed.push_back(std::move(copy));
    });
    peer.out.passing.put_back(std::move(passed));
    if (!peer.out.passing.empty()) {
        peers_.watch(peer);
        peers_.make_pending(peer);
    }
    peers_.counters.resent += unarrived.size();
    peer.out.own.put_back(std::move(unarrived));
    for (Peer& other : peers_.all()) // what this node passes through the peer is kept until it has arrived
        if (index == peer.ways.current_index() && other.ways.first_relay() == peer.node) {
            other.out.own.begin_again();
            peers_.make_pending(other);
        }
    if (way.link->channel->lost(way.number)) way.link->channel->give_up(way.number);
}

// ---- what the user is told

void Failover::tell(Peer& peer, const Way& from, const char* why, const std::string& instead, Instant now) {
    Link* const link = from.link;
    if (link != nullptr && (link->told == Instant{} || now - link->told > tell_every)) {
        link->told = now;
        base::log_warning("{}: {}; messages to node {} go by {} now", from.name, why, peer.node, instead);
    } else {
        base::log_debug("composite: {}: {}; messages to node {} go by {} now", from.name, why, peer.node, instead);
    }
}

std::string Failover::name_of(Node node) const {
    return node < names_.size() ? names_[node] : fmt::format("node {}", node);
}

/// Tells the user of a peer that answers by no way, and of one that answers again.
void Failover::tell_silence(Peer& peer, Instant now) {
    switch (peer.silence.look(health_.unanswered(peer, peer.ways.current_index(), now), now)) {
    case pm::Silence::News::none: return;
    case pm::Silence::News::ended:
        return base::log_warning("{} answers again, after {:.1f} s", name_of(peer.node), peer.silence.seconds(now));
    case pm::Silence::News::began: break;
    }
    std::vector<std::string_view> tried;
    for (const Way& way : peer.ways) tried.push_back(way.name);
    base::log_warning("{} has not answered for {:.1f} s, by {}; waiting on", name_of(peer.node),
                      peer.silence.seconds(now), fmt::join(tried, ", "));
}

} // namespace kumi::device::composite
