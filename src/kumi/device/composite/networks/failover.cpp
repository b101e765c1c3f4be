// When ways are left and taken.

#include "kumi/base/log.hpp"
#include "kumi/device/composite/networks/networks.hpp"

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
/// Whoever may have left without an answer is asked again: whoever was to pass it on says so.
constexpr Duration ask_done_every = 200ms;
/// A peer of which all networks say that it is gone is sought so long.
constexpr Duration seek_time_of_gone = 500ms;
/// And one for which a node that closes still has messages.
constexpr Duration seek_time_closing = 2s;
/// The user is told of one network no more often.
constexpr Duration tell_every = 10s;

} // namespace

bool Networks::is_up(const Way& way) const noexcept {
    if (!way.is_relayed()) return way.link->up && !way.link->channel->lost(way.number);
    if (way.path.empty()) return false;
    const Pair& first = pairs_[way.path.front()];
    return !first.ways.empty() && !first.is_lost && !is_relayed(first) && is_up(first.ways[first.current]);
}

/// The device takes the peer for lost, or would if this were the only way.
bool Networks::is_gone(const Way& direct) noexcept {
    return direct.link->channel->lost(direct.number) || direct.link->ways->is_silent(direct.number);
}

/// Since that time nothing has worked, and the limit has passed. A way that has never answered is not waited for.
bool Networks::is_over(Instant since, Duration limit) const noexcept {
    if (since == never || since == Instant{}) return since != never;
    return limit != Duration{0} && now_ - since > limit;
}

/// It will not answer that way again, as far as one can tell.
bool Networks::is_dead(const Pair& pair, std::size_t index) const noexcept {
    const Way& way = pair.ways[index];
    if (!way.is_relayed()) return is_gone(way) || is_over(way.unusable_since, silence_max_);
    // Who closes, and has nothing for it, only waits for its word: those who were to pass that on have left.
    if (is_closing_ && way.path.empty() && pair.own.empty()) return true;
    // Nobody finds it. If its networks say that it is gone, they are believed soon.
    const bool is_gone_here = index > 0 && is_gone_directly(pair);
    const Duration limit = is_gone_here ? seek_time_of_gone : is_closing_ ? seek_time_closing : silence_max_;
    return is_over(pair.seeking_since, limit);
}

/// By all networks that join it with this node.
bool Networks::is_gone_directly(const Pair& pair) noexcept {
    return std::all_of(pair.ways.begin(), pair.ways.end(), [](const Way& way) {
        return way.is_relayed() || way.unusable_since == Instant{} || is_gone(way);
    });
}

bool Networks::lost(Node node) const noexcept {
    const Pair& pair = pairs_[node];
    if (pair.is_lost || has_left(pair)) return true;
    for (std::size_t i = 0; i < pair.ways.size(); ++i)
        if (!is_dead(pair, i)) return false;
    return true;
}

bool Networks::has_left(const Pair& pair) const noexcept {
    return std::any_of(pair.ways.begin(), pair.ways.end(),
                       [](const Way& way) { return !way.is_relayed() && way.link->ways->has_left(way.number); });
}

void Networks::lose(Pair& pair) noexcept {
    pair.is_lost = true;
    pair.own.clear();
    pair.passing.clear();
    pair.passing_bytes.clear();
    pair.notes.clear();
    pair.urgent.clear();
    pair.next_way.reset();
    pair.striped.clear();
    pair.held = false;
    pair.owes_arrived = false;
    set_plain(pair);
    room_made_ = true; // whoever waits is to look again
}

Duration Networks::unanswered(const Pair& pair, std::size_t index, Instant now) const noexcept {
    const Way& way = pair.ways[index];
    if (!way.is_relayed()) return way.link->ways->unanswered(way.number, now);
    return pair.own.unanswered(now);
}

// ---- time

void Networks::on_time(Instant now) {
    now_ = ticked_ = now;
    for (std::size_t i = 0; i < watched_.size(); ++i) { // others may be added meanwhile
        Pair& pair = pairs_[watched_[i]];
        consider(pair, now);
        pump(pair);
        measure_rails(pair, now);
    }
    if (is_closing_) tell_relays();
    std::erase_if(watched_,
                  [&](Node node) { return is_settled(pairs_[node]) ? (pairs_[node].watched = false, true) : false; });
}

/// What was sent to it has arrived, or never will.
bool Networks::has_arrived(const Pair& pair) const noexcept {
    if (pair.is_lost) return true;
    if (!pair.own.empty() || !pair.passing.empty()) return false;
    for (std::size_t i = 0; i < pair.ways.size(); ++i) {
        const Way& way = pair.ways[i];
        if (!way.is_relayed() && (i == pair.current || way.has_pieces) && !way.link->ways->all_arrived(way.number))
            return false;
    }
    return true;
}

/// Nothing is to be found out.
bool Networks::is_settled(const Pair& pair) const noexcept {
    const bool is_asking = pair.refused && !pair.striped.empty();
    const bool is_good = pair.current == 0 && !pair.next_way && !(pair.ways.front().deaf && is_up(pair.ways.front()));
    return pair.is_lost || (has_arrived(pair) && is_good && !is_asking && !is_closing_);
}

void Networks::consider(Pair& pair, Instant now) {
    if (pair.is_lost) return;
    for (Way& way : pair.ways) way.unusable_since = may_use(way) ? never : std::min(way.unusable_since, now);
    tell_silence(pair, now);
    if (lost(pair.peer)) return lose(pair);
    if (pair.ways.back().is_relayed() && !pair.ways.back().path.empty() && !is_up(pair.ways.back())) drop_path(pair);
    const Way& way = pair.ways[pair.current];
    if (!may_use(way)) {
        const char* const why = way.is_relayed() ? "the relay is gone"
                                : !way.link->up  ? "no carrier"
                                : way.deaf       ? "the other end has no carrier"
                                                 : "nobody listens there";
        if (move_from_failed(pair, why, now)) return;
    }
    pair.own.look(now);
    consider_rails(pair, now);
    if (answers_elsewhere(pair, pair.current, now)) move_from_failed(pair, "no answer", now);
    try_better(pair, now);
    if (is_relayed(pair) && !pair.ways[pair.current].path.empty()) {
        const Way& relayed = pair.ways[pair.current];
        watch(pairs_[relayed.path.front()]); // it goes by its ways
        if (!relayed.suspected && relayed.path.size() > pair.shortest) seek_shorter(pair, now);
    }
    if (is_relayed(pair) && pair.own.is_overdue(now)) {
        counters_.resent += pair.own.size();
        pair.own.on_timeout();
        make_pending(pair);
    }
}

/// Looks whether the peer, if it does not answer that way, answers by another.
bool Networks::answers_elsewhere(Pair& pair, std::size_t index, Instant now) {
    auto& suspected = pair.ways[index].suspected;
    if (unanswered(pair, index, now) < suspect_after && may_use(pair.ways[index])) {
        suspected.reset();
        if (index == pair.current) end_search(pair);
        return false;
    }
    if (!suspected) {
        suspected = now;
        for (Way& way : pair.ways) way.pinged = false;
    }
    bool answers = false;
    for (std::size_t i = 0; i < pair.ways.size(); ++i) {
        Way& way = pair.ways[i];
        if (way.is_relayed()) {
            if (index != pair.current) continue; // of several rails one fails
            const bool is_path_alive = i == index && way.path_answered_at > *suspected; // its relays have much to do
            if (is_path_alive) way.found.clear(), suspected = now;
            else if (way.answered_at <= *suspected || way.path.empty()) seek(pair, now);
            else if (now - way.answered_at < benefit_of_doubt) continue;
            else if (i != index) answers = true;
            else if (!way.found.empty()) take_path(pair, std::exchange(way.found, {}), true);
            else suspected = now; // this path answers, and yet nothing arrives: the doubt begins anew
            continue;
        }
        if (!is_up(way) || (i == index && !way.deaf)) continue; // one that is said to be deaf may hear again
        if (i == index || way.answered_at <= *suspected) ping(pair, i, now);
        else if (now - way.answered_at >= benefit_of_doubt) answers = true;
    }
    return answers;
}

/// Goes back to a better way when that works again.
void Networks::try_better(Pair& pair, Instant now) {
    if (pair.next_way) {
        const Way& next = pair.ways[*pair.next_way];
        if (!may_use(next)) {
            pair.next_way.reset();
        } else if (has_arrived(pair) && !pair.reserved) {
            ++counters_.returns;
            base::log_debug("composite: {} answers again: messages to node {} go that way", next.name, pair.peer);
            pair.current = *pair.next_way;
            pair.next_way.reset();
        }
        return set_plain(pair);
    }
    for (std::size_t i = 0; i < pair.current; ++i) {
        Way& way = pair.ways[i];
        if (!is_up(way)) continue;
        if (way.answers < answers_needed) {
            ping(pair, i, now);
            continue;
        }
        way.answers = 0;
        way.deaf = way.doubted = false;
        const Way& current = pair.ways[pair.current];
        if (current.suspected || !may_use(current)) return move(pair, i);
        pair.next_way = i;
        make_pending(pair);
        return set_plain(pair);
    }
}

void Networks::ping(Pair& pair, std::size_t index, Instant now) {
    Way& way = pair.ways[index];
    if (way.pinged) {
        // the device sees to it that it gets there
        if (!way.link->ways->all_arrived(way.number) || now - way.pinged_at < ask_again_after) return;
    } else {
        const bool is_urgent = std::any_of(pair.ways.begin(), pair.ways.end(),
                                           [](const Way& other) { return other.suspected.has_value(); });
        if (now - way.pinged_at < (is_urgent ? benefit_of_doubt : try_better_every)) return;
    }
    if (!send_control(pair, outlet(pair, index), Envelope::Kind::ping, static_cast<Sequence>(index))) return;
    way.pinged = true;
    way.pinged_at = now;
}

/// Answers by the way that the question came. A way that was full when it failed has no room until it works again: then
/// the answer waits. If it were dropped the peer would ask again after ask_again_after only, and not go back to this
/// way before.
void Networks::on_ping(Pair& pair, const Envelope& head, Bytes letter, Inlet from) {
    if (head.hops != 0) return answer(head, Envelope::Kind::pong, head.sequence, reversed_path(head, letter), from);
    for (Way& way : pair.ways)
        if (way.link == &from.link) way.owes_pong = head.sequence;
    pump_pongs(pair);
    make_pending(pair);
}

void Networks::pump_pongs(Pair& pair) {
    for (std::size_t i = 0; i < pair.ways.size(); ++i) {
        auto& owed = pair.ways[i].owes_pong;
        if (!owed) continue;
        const bool is_in_vain = pair.is_lost || !is_up(pair.ways[i]);
        if (is_in_vain || send_control(pair, outlet(pair, i), Envelope::Kind::pong, *owed)) owed.reset();
    }
}

void Networks::on_pong(Pair& pair, const Envelope& head, Bytes letter, Instant now) {
    if (head.sequence >= pair.ways.size()) return;
    Way& way = pair.ways[head.sequence];
    if (way.is_relayed()) {
        if (way.path == reversed_path(head, letter)) way.path_answered_at = now;
        return;
    }
    if (!std::exchange(way.pinged, false)) return;
    way.answers = now - way.pinged_at <= answer_in_time ? way.answers + 1 : 0;
    way.answered_at = now;
    way.deaf = false; // whatever was said before
}

void Networks::on_interfaces_changed(Instant now) {
    now_ = now;
    for (const auto& link : links_) {
        const bool was_up = std::exchange(link->up, link->ways->are_up());
        if (was_up == link->up) continue;
        for (Pair& pair : pairs_)
            for (Way& way : pair.ways) {
                if (way.link != link.get()) continue;
                way.answers = 0;
                watch(pair);
                // Others do not see it: they are told, by a way that is left.
                if (!pair.is_lost) note(pair, link->up ? Envelope::Kind::hears : Envelope::Kind::deaf, link->network);
            }
    }
    on_time(now);
}

void Networks::on_deaf(Pair& pair, std::uint32_t network, bool is_deaf, Instant now) {
    for (Way& way : pair.ways) {
        if (way.is_relayed() || way.link->network != network) continue;
        way.deaf = is_deaf;
        way.answers = 0;
        watch(pair);
    }
    consider(pair, now);
    pump(pair);
}

// ---- moving

/// Takes the next way that may be used, if there is one.
bool Networks::move_from_failed(Pair& pair, const char* why, Instant now) {
    const auto is_good = [&](std::size_t i, bool also_doubted) {
        return i != pair.current && may_use(pair.ways[i]) && (also_doubted || !pair.ways[i].doubted);
    };
    for (const bool also_doubted : {false, true}) {
        if (also_doubted && is_relayed(pair)) break; // another path is sought, and better ways are tried all along
        for (std::size_t i = 0; i < pair.ways.size(); ++i) {
            if (!is_good(i, also_doubted)) continue;
            Way& from = pair.ways[pair.current];
            tell(pair, from, why, pair.ways[i].name, now);
            from.doubted = true;
            ++counters_.failovers;
            // The peer may not know yet, if nothing of its own is under way.
            if (!from.is_relayed() && from.link->up && !from.deaf) note(pair, Envelope::Kind::deaf, from.link->network);
            move(pair, i);
            return true;
        }
    }
    return false;
}

void Networks::tell(Pair& pair, const Way& from, const char* why, const std::string& instead, Instant now) {
    Link* const link = from.link;
    if (link != nullptr && (link->told == Instant{} || now - link->told > tell_every)) {
        link->told = now;
        base::log_warning("{}: {}; messages to node {} go by {} now", from.name, why, pair.peer, instead);
    } else {
        base::log_debug("composite: {}: {}; messages to node {} go by {} now", from.name, why, pair.peer, instead);
    }
}

std::string Networks::name_of(Node node) const {
    return node < names_.size() ? names_[node] : fmt::format("node {}", node);
}

/// Tells the user of a peer that answers by no way, and of one that answers again.
void Networks::tell_silence(Pair& pair, Instant now) {
    switch (pair.silence.look(unanswered(pair, pair.current, now), now)) {
    case pm::Silence::News::none: return;
    case pm::Silence::News::ended:
        return base::log_warning("{} answers again, after {:.1f} s", name_of(pair.peer), pair.silence.seconds(now));
    case pm::Silence::News::began: break;
    }
    std::vector<std::string_view> tried;
    for (const Way& way : pair.ways) tried.push_back(way.name);
    base::log_warning("{} has not answered for {:.1f} s, by {}; waiting on", name_of(pair.peer),
                      pair.silence.seconds(now), fmt::join(tried, ", "));
}

void Networks::move(Pair& pair, std::size_t index) {
    if (!is_relayed(pair)) collect_unarrived(pair, pair.current);
    else counters_.resent += pair.own.size();
    pair.ways[pair.current].suspected.reset();
    pair.current = index;
    pair.next_way.reset();
    pair.ways[index].answers = 0;
    pair.own.on_new_path(now_);
    if (is_relayed(pair)) pair.own.ask_for_arrivals();
    set_plain(pair);
    watch(pair);
    make_pending(pair);
    pump(pair);
}

/// What was given to the peer by that way and may not have arrived is to be sent by another.
void Networks::collect_unarrived(Pair& pair, std::size_t index) {
    Way& way = pair.ways[index];
    way.has_pieces = false;
    Letters unarrived, passed;
    way.link->ways->each_unarrived(way.number, [&](Bytes letter) {
        Envelope head;
        if (!read_value(letter, head) || (head.kind != Envelope::Kind::message && head.kind != Envelope::Kind::piece))
            return;
        Letter copy(letter.begin(), letter.end());
        if (head.source == self_ && head.hops == 0) unarrived.push_back(std::move(copy));
        else if (head.source != self_) passed.push_back(std::move(copy));
    });
    passed.splice(passed.end(), std::exchange(pair.passing, {})); // before what came later
    pair.passing_bytes.clear();
    for (Letter& letter : passed) keep_passing(pair, std::move(letter));
    counters_.resent += unarrived.size();
    pair.own.put_back(std::move(unarrived));
    for (Pair& other : pairs_) // what this node passes through the peer is kept until it has arrived
        if (index == pair.current && !other.ways.empty() && is_relayed(other) && !other.ways.back().path.empty() &&
            other.ways.back().path.front() == pair.peer) {
            other.own.begin_again();
            make_pending(other);
        }
    if (way.link->channel->lost(way.number)) way.link->channel->give_up(way.number);
}

// ---- the end

void Networks::set_served(const std::vector<Node>& sources) {
    for (const Node source : sources) pairs_[source].has_passed = !pairs_[source].ways.empty();
}

void Networks::begin_close() {
    is_closing_ = true;
    for (const auto& link : links_) link->ways->begin_close();
    for (Pair& pair : pairs_)
        if (!pair.ways.empty()) watch(pair);
}

/// Asks those whose messages were passed on; and answers, when all that this node has sent has arrived: whoever passed
/// it on may leave.
void Networks::tell_relays() {
    for (Pair& pair : pairs_)
        if (pair.has_passed && !pair.is_lost && !pair.is_done && now_ - pair.asked_done > ask_done_every) {
            pair.asked_done = now_;
            note(pair, Envelope::Kind::leaving);
        }
    const auto has_all_arrived = [&](const Pair& pair) {
        return pair.ways.empty() || pair.is_lost || pair.own.empty();
    };
    if (!std::all_of(pairs_.begin(), pairs_.end(), has_all_arrived)) return;
    for (Pair& pair : pairs_)
        if (std::exchange(pair.wants_done, false)) note(pair, Envelope::Kind::done);
}

bool Networks::have_all_arrived() const noexcept {
    return std::all_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) {
        return pair.ways.empty() || lost(pair.peer) ||
               (has_arrived(pair) && pair.notes.empty() && !pair.owes_arrived && !pair.wants_done);
    });
}

/// Somebody whose messages this node has passed on may send more.
bool Networks::is_relaying() const noexcept {
    return std::any_of(pairs_.begin(), pairs_.end(),
                       [&](const Pair& pair) { return pair.has_passed && !pair.is_done && !lost(pair.peer); });
}

void Networks::give_up_unused() noexcept {
    for (Pair& pair : pairs_)
        for (std::size_t i = 0; i < pair.ways.size(); ++i) {
            const Way& way = pair.ways[i];
            const bool is_used = (i == pair.current || way.has_pieces) && is_up(way) && !lost(pair.peer);
            if (!way.is_relayed() && !is_used && !way.link->ways->all_arrived(way.number))
                way.link->channel->give_up(way.number);
        }
}

} // namespace kumi::device::composite
