#pragma once

#include "kumi/device/composite/networks/striper.hpp"

namespace kumi::device::composite {

/// Sends this node's messages, and whatever else waits for room: see Outbox.
class Sender {
public:
    Sender(Peers& peers, Striper& striper) noexcept : peers_(peers), striper_(striper) {}

    // ---- messages: as pm::Channel has them

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept;
    /// True: a sender was refused meanwhile, and may try again.
    bool commit(const pm::SendSlot& slot) noexcept;
    bool cancel(const pm::SendSlot& slot) noexcept;
    bool try_send(Node to, Bytes bytes) noexcept;
    bool try_send(Node to, Bytes head, Bytes body) noexcept;

    // ---- what waits for room

    /// Something is to be sent to the peer as soon as it can be.
    bool is_waiting(const Peer& peer) const noexcept;
    /// Sends what waits, as far as the way takes it: messages of this node and those that it passes on, each first in
    /// turns.
    void pump(Peer& peer);
    /// Sends what this node says about ways and arrivals.
    void pump_words(Peer& peer);
    void pump_pongs(Peer& peer);
    /// Sends an envelope. False: no way on, or no room.
    bool send_control(const Peer& peer, const std::optional<Outlet>& out, Envelope::Kind kind,
                      Sequence sequence) const noexcept;

    /// The peer has handed out every message before `expected`.
    void on_arrived(Peer& peer, Sequence expected, Instant now);

private:
    bool try_send_plainly(Peer& peer, Bytes bytes) noexcept;
    bool try_send_plainly(Peer& peer, Bytes head, Bytes body) noexcept;
    bool try_send_in_place(Peer& peer, const Pieces& message) noexcept;
    bool try_send_otherwise(Peer& peer, const Pieces& message) noexcept;
    bool try_send_whole(Peer& peer, const Pieces& message) noexcept;
    void pump_own(Peer& peer, const Outlet& out);
    void pump_passing(Peer& peer, const Outlet& out);
    void pump_urgent(Peer& neighbour) noexcept;
    void return_passing(Peer& peer);

    Peers& peers_;
    Striper& striper_;
};

} // namespace kumi::device::composite
