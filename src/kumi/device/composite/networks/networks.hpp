#pragma once

// The ways to nodes of other hosts, and what is done when one fails. A pure state machine: it has no clock, no lock and
// no thread; the links are any channels that know their ways (pm::Ways), so a test can replay any schedule.
//
// Every node has, for each peer, a list of ways: networks that join them, the best first, then nodes that pass messages
// on. Each direction of each pair of nodes decides for itself, and uses one way at a time, but for large messages:
//
//   - Messages carry their pair's count. The receiver takes each number once and in order, whatever way it comes by, so
//     a message may be sent again by another way at any time.
//   - A way has failed when the system says so (no carrier, no interface, nobody listens there, or the peer says that
//     it is deaf there), or when the peer owes an answer by it and answers by another. A peer that answers by no way is
//     busy, or stopped, or dead, and no other way would help.
//   - What has not arrived by the way that failed is copied from its device and sent by the next; before new messages,
//     which are refused meanwhile. Devices keep what they sent until it has arrived, so it is not kept twice.
//   - A better way is tried all along, and taken again when it has answered: after all that was sent by the other one
//     has arrived, so nothing is sent twice then.
//
// Stripes. Where it pays (rails.hpp) a large message that is sent by try_send() goes in pieces over the networks that
// join the pair, its rails; each piece by the one that will have finished it first. The receiver puts them together
// (joiner.hpp), and the message waits for its turn like any other. Pieces whose rail has no room wait here, and senders
// are refused meanwhile. A rail fails as the current way does, and its pieces are sent again by the others. How far
// other messages may get ahead of a piece that has not arrived is bounded: the receiver says how far it is. Messages
// that are filled in place are sent whole.
//
// Relays. A message that other nodes pass on has arrived when its destination says so, and its source keeps it until
// then. A source has a window for each destination; so what waits in a relay is bounded, and a relay takes in whatever
// comes: no nodes wait for each other in a circle. The source decides by which nodes a message is passed on: the path
// stands behind the envelope, and each of its nodes gives the message to the next over a network that joins them. So no
// message goes in circles, whatever changes meanwhile. A relay that cannot pass on drops the message and tells its
// source.
//
// Paths. The routing plans the first one, where no network joins two nodes. When a path or the last network fails, its
// source seeks another (path_finder.hpp).
//
// The classes: Peers has the state that all share, Health says which peers live and have all that was sent, Sender and
// Striper send, Receiver puts in order, Relay and PathFinder are for paths, Failover moves messages between ways, and
// Closing sees to the end. Networks takes calls and letters apart and gives each to one of them.

#include "kumi/device/composite/networks/closing.hpp"
#include "kumi/device/composite/networks/failover.hpp"
#include "kumi/device/composite/networks/receiver.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kumi::device::composite {

class Networks {
public:
    static constexpr Duration tick_time = Peers::tick_time;

    /// `ways_to`: by node, the best first; empty for self and for nodes that are reached otherwise.
    Networks(Node self, std::vector<Link> links, const std::vector<std::vector<PlannedWay>>& ways_to,
             const StripeOptions& stripes = {});
    Networks(const Networks&) = delete;
    Networks& operator=(const Networks&) = delete;

    /// What nodes are called when the user is told of them; "node 3" if this was not said.
    void set_names(std::vector<std::string> names) { failover_.set_names(std::move(names)); }
    /// A node that answers by no way for so long is lost; 0: never.
    void set_silence(Duration limit) { health_.set_silence(limit); }

    // ---- messages: as pm::Channel has them

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept { return sender_.try_reserve(to, bytes); }
    /// True: a sender was refused meanwhile, and may try again.
    bool commit(const pm::SendSlot& slot) noexcept { return sender_.commit(slot); }
    bool cancel(const pm::SendSlot& slot) noexcept { return sender_.cancel(slot); }
    bool try_send(Node to, Bytes bytes) noexcept { return sender_.try_send(to, bytes); }
    bool try_send(Node to, Bytes head, Bytes body) noexcept { return sender_.try_send(to, head, body); }
    bool lost(Node node) const noexcept { return peers_[node].has_closed || health_.is_lost(peers_[node]); }
    pm::Traffic sent(Node to) const noexcept { return peers_[to].out.sent; }
    std::string_view carrier(Node to) const noexcept { return peers_[to].ways.current().name; }
    /// The link that a message to `to` goes by now; -1 for a relay that cannot be told.
    int link_to(Node to) const noexcept;

    /// What a link brought. True: the handler was called.
    bool on_message(std::uint32_t link, pm::Message& message, pm::Handler handler, Instant now);
    /// Hands out messages that had overtaken others, and whose turn it is; answers how many.
    std::size_t hand_out_early(pm::Handler handler, std::size_t messages_max) {
        return receiver_.hand_out_early(handler, messages_max);
    }
    bool has_early() const noexcept { return receiver_.has_early(); }
    /// Before a sleep: a message waits to be handed out, or a message that was refused may find room.
    bool has_something_to_do() noexcept { return has_early() || peers_.take_room_made(); }
    /// Sends what waits for room, or for the end of something. Before and after the links were polled.
    void go_on(Instant now) {
        if (!peers_.pending().empty()) pump_pending(now);
    }

    // ---- time

    /// Every tick_time while the node polls, and when next_tick() says.
    void on_time(Instant now);
    /// Until when the node may sleep.
    Instant next_tick() const noexcept { return peers_.next_tick(); }
    /// A link has lost a node, see pm::Ways::losses(): what that means is found out now, or from now on.
    void on_losses(Instant now);
    /// Interfaces have come, gone or changed.
    void on_interfaces_changed(Instant now);

    // ---- the end

    /// The nodes whose messages this node is to pass on: it does not leave before they do.
    void set_served(const std::vector<Node>& sources) { closing_.set_served(sources); }
    /// Nothing more will be sent or taken: what is under way goes on. Nodes that cannot see by their devices that this
    /// node leaves are told. Call once, then poll until all has arrived and no node needs this one as a relay.
    void begin_close() { closing_.begin(); }
    bool have_all_arrived() const noexcept { return closing_.have_all_arrived(); }
    bool is_relaying() const noexcept { return closing_.is_relaying(); }
    /// Closing the links shall not wait for ways that are not used.
    void give_up_unused() noexcept { closing_.give_up_unused(); }

    const NetworkCounters& counters() const noexcept { return peers_.counters; }

private:
    void on_word(Peer& peer, const Envelope& head, Bytes letter, Inlet from, Instant now);
    void pump_pending(Instant now);

    Peers peers_;
    Health health_;
    Striper striper_;
    Sender sender_;
    Receiver receiver_;
    Relay relay_;
    PathFinder paths_;
    Failover failover_;
    Closing closing_;
};

} // namespace kumi::device::composite
