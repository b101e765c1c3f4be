#pragma once

// The ways to nodes of other hosts, and what is done when one fails. A pure state machine: it has no clock, no lock and
// no thread; the links are any channels that know their ways (pm::Ways), so a test can replay any schedule.
//
// Every node has, for each other one, a list of ways: networks that join them, the best first, then nodes that pass
// messages on. Each direction of each pair decides for itself, and uses one way at a time, but for large messages:
//
//   - Messages carry their pair's count. The receiver takes each number once and in order, whatever way it comes by, so
//     a message may be sent again by another way at any time.
//   - A way has failed when the system says so (no carrier, no interface, nobody listens there, or the peer says that
//     it is deaf there), or when the peer owes an answer on it and answers on another. A peer that answers nowhere is
//     busy, or stopped, or dead, and no other way would help.
//   - What has not arrived by the way that failed is copied from its device and sent by the next; before new messages,
//     which are refused meanwhile. Devices keep what they sent until it has arrived, so nobody keeps it twice.
//   - A better way is tried all along, and taken again when it has answered: after all that was sent by the other one
//     has arrived, so nothing is sent twice then.
//
// Stripes. Where it pays (rails.hpp) a large message that is sent by try_send() goes in pieces over all networks that
// join the pair, its rails; each takes as many as it has room for. The receiver puts them together (joiner.hpp), and
// the message waits for its turn like any other. What no rail has room for waits here, and whoever sends is refused
// meanwhile. A rail fails as the pair's own way does, and its pieces are sent again by the others. How far others may
// get ahead of a piece that has not arrived is bounded: the receiver says how far it is. Messages that are filled in
// place are sent whole.
//
// Relays. A message that other nodes pass on has arrived when its destination says so, and its source keeps it until
// then. A source has a window for each destination; so what waits in a relay is bounded, and a relay takes in whatever
// comes: nobody waits for anybody in a circle. The source decides by whom a message is passed on: the path stands
// behind the envelope, and each of its nodes gives the message to the next over a network that joins them. So no
// message goes in circles, whatever changes meanwhile. A relay that cannot pass on drops the message and tells its
// source.
//
// Paths. The routing plans the first one, where no network joins two nodes. When a path or the last network fails, its
// source seeks another: a seek goes from neighbour to neighbour over what works now, collects the nodes that it passes,
// and the destination answers by the way it came (paths.cpp). Nobody keeps a map.

#include "kumi/base/clock.hpp"
#include "kumi/device/composite/letters/envelope.hpp"
#include "kumi/device/composite/stripes/joiner.hpp"
#include "kumi/device/composite/letters/own_letters.hpp"
#include "kumi/device/composite/stripes/rails.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/silence.hpp"

#include <array>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kumi::device::composite {

/// One of the channels that ways lead over.
struct NetworkLink {
    pm::Channel* channel;
    pm::Ways* ways;
    std::uint32_t network;     // its number, the same on all nodes
    std::string name;          // for people
};

/// A way as it is planned.
struct PlannedWay {
    std::uint32_t link = 0;
    Node number = 0;         // of whom the message is given to, there
    bool is_relayed = false; // others pass it on: then `link` and `number` count for nothing. At most one, the last
    Path path{};             // they; empty: to be found when it is needed
    bool is_silent = false;  // it has not answered yet: it is tried, and used when it does
};

struct StripeOptions {
    std::size_t message_bytes_min = std::size_t{64} << 10; // that is sent in pieces
    std::size_t piece_bytes_max = std::size_t{120} << 10;  // fits a block of 128 KiB with its packets' headers
    // of a message in pieces that has not arrived; or two of them
    std::size_t ahead_bytes_max = std::size_t{8} << 20;
    bool always = false;                                   // not only where it pays

    static StripeOptions none() noexcept { return {.message_bytes_min = std::numeric_limits<std::size_t>::max()}; }
};

/// Counted since the channel was opened.
struct NetworkCounters {
    std::uint64_t failovers = 0;
    std::uint64_t returns = 0;    // to a better way
    std::uint64_t resent = 0;     // messages and pieces, because a way failed
    std::uint64_t duplicates = 0; // that came by two ways
    std::uint64_t early = 0;      // that overtook others, by another way
    std::uint64_t passed_on = 0;
    std::uint64_t not_passed_on = 0; // because there was no way on
    std::uint64_t seeks = 0;         // for paths, this node's own
    std::uint64_t striped = 0;       // messages, sent in pieces
    std::uint64_t unsound = 0;       // envelopes that make no sense, and pieces that fit nowhere
};

class Networks {
public:
    /// `ways_to`: by node, the best first; empty for self and for nodes that are reached otherwise.
    Networks(Node self, std::vector<NetworkLink> links, const std::vector<std::vector<PlannedWay>>& ways_to,
             const StripeOptions& stripes = {});

    bool empty() const noexcept { return links_.empty(); }
    /// What nodes are called when the user is told of them; "node 3" if this was not said.
    void set_names(std::vector<std::string> names) { names_ = std::move(names); }
    /// A node that answers by no way for so long is lost; 0: never.
    void set_silence(Duration limit) { silence_max_ = limit; }

    // ---- messages: as pm::Channel has them

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept;
    /// True: somebody was refused meanwhile, and may try again.
    bool commit(const pm::SendSlot& slot) noexcept;
    bool cancel(const pm::SendSlot& slot) noexcept;
    bool try_send(Node to, Bytes bytes) noexcept;
    /// Never striped.
    bool try_send(Node to, Bytes head, Bytes body) noexcept;
    bool lost(Node node) const noexcept;
    pm::Traffic sent(Node to) const noexcept { return pairs_[to].sent; }
    std::string_view carrier(Node to) const noexcept;
    /// The link that a message to `to` goes by now; -1 for a relay that cannot be told.
    int link_to(Node to) const noexcept;

    /// What a link brought. True: the handler was called.
    bool on_message(std::uint32_t link, pm::Message& message, pm::Handler handler, Instant now);
    /// Messages that had overtaken others, and whose turn it is; answers how many.
    std::size_t hand_out_early(pm::Handler handler, std::size_t messages_max);
    bool has_early() const noexcept { return !early_.empty(); }
    /// Before a sleep: a message waits to be handed out, or what was refused may find room.
    bool has_something_to_do() noexcept { return has_early() || std::exchange(room_made_, false); }
    /// Sends what waits for room, or for the end of something. Before and after the links were polled.
    void go_on(Instant now) {
        if (!pending_.empty()) pump_pending(now);
    }

    // ---- time

    /// Every tick_time while somebody polls, and when next_tick() says.
    void on_time(Instant now);
    static constexpr Duration tick_time = std::chrono::milliseconds(10);
    /// Until when one may sleep.
    Instant next_tick() const noexcept { return watched_.empty() ? never : ticked_ + tick_time; }
    /// Interfaces have come, gone or changed.
    void on_interfaces_changed(Instant now);

    // ---- the end

    /// Those whose messages this node is to pass on: it does not leave before they do.
    void set_served(const std::vector<Node>& sources);
    /// Nothing more will be sent: what is under way goes on. Call once, then poll until all has arrived and nobody
    /// needs this node as a relay.
    void begin_close();
    bool have_all_arrived() const noexcept;
    bool is_relaying() const noexcept;
    /// Nobody shall wait for ways that are not used.
    void give_up_unused() noexcept;

    const NetworkCounters& counters() const noexcept { return counters_; }

private:
    struct Link : NetworkLink {
        Link(NetworkLink link, std::uint32_t number) : NetworkLink(std::move(link)), index(number) {}
        std::uint32_t index;
        bool up = true;
        Instant told{}; // the user, that ways over it have failed
    };
    struct Way {
        Link* link; // null: others pass it on
        Node number;
        Path path;    // they; empty: not known
        Path found{}; // another that works, found since this one is in doubt
        std::string name;
        bool is_relayed() const noexcept { return link == nullptr; }
        bool deaf = false;      // the peer says that it hears nothing on it
        bool doubted = false;    // it has failed, and has not answered since
        bool has_pieces = false; // some that were given to it may not have arrived
        std::optional<Instant> suspected{}; // since when the peer owes an answer on it for too long
        Instant unusable_since = never; // nobody could answer by it
        bool pinged = false;    // and not answered yet
        Instant pinged_at{};
        Instant answered_at{};
        Instant path_answered_at{}; // by the path itself, where another may have been found
        unsigned answers = 0; // in a row, in time
        std::optional<Sequence> owes_pong{}; // to the peer's last question, because there was no room
    };
    /// A seek that this node has passed on, or answered.
    struct SeenSeek {
        Sequence number = 0;
        std::size_t hops = 0; // 0: none
    };
    struct Striped {
        Sequence sequence;
        std::uint64_t sent_before; // bytes to the same node
    };

    struct Earlier {
        bool operator()(Sequence a, Sequence b) const noexcept { return is_before(a, b); }
    };

    struct Pair {
        Node peer = 0;
        std::vector<Way> ways;
        std::size_t current = 0;
        std::optional<std::size_t> next_way; // nothing is sent until all has arrived by the current one
        bool watched = false;
        bool pending = false;
        bool is_lost = false;
        pm::Silence silence;

        // Out.
        bool plain = false; // by the current way, at once: nothing is in between
        Sequence next = 0;
        pm::Traffic sent;
        OwnLetters own;
        std::vector<Envelope> notes; // to be sent by whatever way, the first first
        Letters urgent; // seeks and what they have found, for this neighbour: before all else
        Letters passing;        // of others, to be given to it
        bool passes_next = false; // these are the first to get room
        std::map<std::pair<Node, Node>, std::size_t> passing_bytes; // by source and destination
        bool reserved = false;
        bool missed = false;  // somebody was refused because of that
        bool refused = false; // or because of what is in between
        std::size_t reserved_way = 0;
        bool reserved_here = false; // in reserved_letter, not with the device
        Letter reserved_letter;
        // The search for a path.
        Instant seeking_since = never;
        Sequence first_seek = 0; // of this search
        unsigned seeks = 0;      // in it
        Instant sought_at{};
        std::size_t shortest = 1; // that there should be
        Rails rails; // its ways, but relays
        std::deque<Striped> striped; // not known to have arrived
        bool held = false; // until the first of them has
        Instant asked_how_far{};

        // In.
        Sequence expected = 0;
        std::map<Sequence, pm::KeptMessage, Earlier> early;
        Joiner joiner{0, 0};
        bool has_turn = false; // in early_
        bool owes_arrived = false;
        Path way_back; // by which its last message came that was passed on; empty: none was
        std::array<SeenSeek, 8> seen{}; // of its seeks
        std::size_t seen_next = 0;
        bool has_passed = false; // this node has passed on something of its,
        Instant asked_done{};    // when it was last asked whether more will come
        bool is_done = false;    // and said that there will not
        bool wants_done = false; // it asks for the same
    };
    struct Outlet {
        pm::Channel* channel;
        Node number;
        const Path* path = nullptr; // by which it is passed on from there
    };
    /// Whence a message came.
    struct Inlet {
        Link& link;
        Node number;
    };

    Envelope envelope(const Pair& pair, Envelope::Kind kind, Sequence sequence) const noexcept;
    bool is_relayed(const Pair& pair) const noexcept { return pair.ways[pair.current].is_relayed(); }
    /// Others wait for room, and would take it before a program that was refused tries again. So its messages wait
    /// here, too.
    bool is_contended(const Pair& pair) const noexcept {
        return !pair.passing.empty() || pending_.size() > (pair.pending ? 1u : 0u);
    }
    void set_plain(Pair& pair) noexcept {
        pair.plain = !pair.ways.empty() && pair.own.empty() && !pair.next_way && !pair.is_lost && !pair.held &&
                     !is_relayed(pair);
        if (pair.plain) note_room(pair);
    }
    void note_room(Pair& pair) noexcept {
        if (std::exchange(pair.refused, false)) room_made_ = true;
    }
    std::optional<Outlet> outlet(const Pair& pair, std::size_t way) const noexcept;
    std::optional<Outlet> outlet_by(const Path& path) const noexcept;
    static bool give(const Outlet& out, Bytes letter) noexcept;
    bool try_send_whole(Pair& pair, Bytes bytes) noexcept;
    void watch(Pair& pair) noexcept;
    void count_sent(Pair& pair, std::size_t bytes) noexcept {
        ++pair.sent.messages;
        pair.sent.bytes += bytes;
        watch(pair);
    }
    void keep_own(Pair& pair, Letter letter);
    void note(Pair& pair, Envelope::Kind kind, Sequence sequence = 0);
    static std::pair<Node, Node> ends_of(const Envelope& head) noexcept { return {head.source, head.destination}; }
    void keep_passing(Pair& pair, Letter letter);
    void pop_passing(Pair& pair);
    void refuse(Pair& pair) noexcept;
    void owe_arrived(Pair& pair);
    void make_pending(Pair& pair);
    void pump(Pair& pair);
    void pump_own(Pair& pair, Outlet out);
    void pump_passing(Pair& pair, Outlet out);
    void pump_words(Pair& pair);
    void pump_pending(Instant now);
    bool waits(const Pair& pair) const noexcept;
    bool send_control(const Pair& pair, const std::optional<Outlet>& out, Envelope::Kind kind,
                      Sequence sequence) const noexcept;

    /// A source keeps so much for one destination while others pass it on, or one message if that is more.
    static constexpr std::size_t relay_window_bytes = RelayWindow::bytes_max;
    /// No message is so many ahead: devices hold fewer.
    static constexpr Sequence early_max = 1 << 20;
    bool has_come(const Pair& pair, Sequence sequence) const noexcept {
        const bool is_old = is_before(sequence, pair.expected) || sequence - pair.expected > early_max;
        return is_old || pair.early.contains(sequence);
    }
    void take(Pair& pair, const Envelope& head, pm::Message& message, bool& handed_out, pm::Handler handler);
    void on_ping(Pair& pair, const Envelope& head, Bytes letter, Inlet from);
    void pump_pongs(Pair& pair);
    void on_pong(Pair& pair, const Envelope& head, Bytes letter, Instant now);
    void on_arrived(Pair& pair, Sequence expected, Instant now);
    void on_deaf(Pair& pair, std::uint32_t network, bool is_deaf, Instant now);

    // stripes.cpp
    bool try_send_large(Pair& pair, Bytes bytes) noexcept;
    bool send_striped(Pair& pair, Bytes bytes);
    bool give_piece(Pair& pair, Bytes head, Bytes body);
    bool is_rail(const Pair& pair, std::size_t way) const noexcept;
    std::uint64_t rails_of(const Pair& pair) const noexcept;
    void take_piece(Pair& pair, const Envelope& head, pm::Message& message, bool& handed_out, pm::Handler handler);
    void on_striped_arrived(Pair& pair, Sequence expected) noexcept;
    void look_ahead(Pair& pair) noexcept;
    void consider_rails(Pair& pair, Instant now);
    void leave_rail(Pair& pair, std::size_t way, const char* why, Instant now);
    void measure_rails(Pair& pair, Instant now);

    // paths.cpp
    bool is_sound(const Envelope& head, Bytes letter) const noexcept;
    static void note_way_back(Pair& pair, const Envelope& head, Bytes letter);
    void pass_on(const Envelope& head, Bytes letter, Inlet from);
    void answer(const Envelope& head, Envelope::Kind kind, Sequence sequence, std::span<const Node> way_back,
                Inlet from);
    void tell_broken(Pair& pair);
    void send_urgent(Pair& neighbour, Bytes letter);
    void pump_urgent(Pair& neighbour) noexcept;
    bool is_over(Instant since, Duration limit) const noexcept;
    bool is_near(const Pair& pair) const noexcept;
    void seek(Pair& pair, Instant now);
    void seek_shorter(Pair& pair, Instant now);
    void send_seek(Pair& pair, unsigned fan, Instant now);
    void ping_path(Pair& pair);
    void end_search(Pair& pair) noexcept;
    void spread(const Envelope& head, std::span<const Node> path);
    bool is_news(Pair& source, Sequence number, std::size_t hops) noexcept;
    void on_seek(const Envelope& head, Bytes letter, Inlet from);
    void on_found(Pair& pair, const Envelope& head, Bytes letter, Instant now);
    void on_broken(Node from, Node to, Instant now);
    void on_owes(Node node, Instant now) noexcept;
    void take_path(Pair& pair, Path path, bool is_sent_again);
    void drop_path(Pair& pair);

    // failover.cpp
    bool is_up(const Way& way) const noexcept;
    static bool is_gone(const Way& direct) noexcept;
    bool is_dead(const Pair& pair, std::size_t way) const noexcept;
    static bool is_gone_directly(const Pair& pair) noexcept;
    bool has_left(const Pair& pair) const noexcept;
    void lose(Pair& pair) noexcept;
    bool may_use(const Way& way) const noexcept { return is_up(way) && !way.deaf; }
    Duration unanswered(const Pair& pair, std::size_t way, Instant now) const noexcept;
    void consider(Pair& pair, Instant now);
    bool answers_elsewhere(Pair& pair, std::size_t way, Instant now);
    void try_better(Pair& pair, Instant now);
    void ping(Pair& pair, std::size_t way, Instant now);
    bool move_from_failed(Pair& pair, const char* why, Instant now);
    void move(Pair& pair, std::size_t way);
    void collect_unarrived(Pair& pair, std::size_t way);
    std::string name_of(Node node) const;
    void tell_silence(Pair& pair, Instant now);
    void tell(Pair& pair, const Way& from, const char* why, const std::string& instead, Instant now);
    bool is_settled(const Pair& pair) const noexcept;
    bool has_arrived(const Pair& pair) const noexcept;
    void tell_relays();

    Node self_;
    StripeOptions stripes_;
    std::size_t message_bytes_max_ = 0;
    std::vector<std::unique_ptr<Link>> links_;
    std::vector<std::string> names_; // by node
    Duration silence_max_ = std::chrono::seconds(60);
    std::vector<Pair> pairs_;     // by node; never moved
    std::vector<Node> watched_;   // of whose ways something may have to be found out
    std::vector<Node> pending_;   // to whom something waits to be sent
    std::vector<Node> early_;     // sources of messages whose turn may be
    Instant ticked_{};
    Instant now_{};               // of the last call that told it
    Sequence next_seek_ = 0;
    bool room_made_ = false; // for somebody who was refused
    bool is_closing_ = false;
    NetworkCounters counters_;
};

} // namespace kumi::device::composite
