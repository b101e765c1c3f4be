#pragma once

#include "kumi/device/composite/peers/peers.hpp"

namespace kumi::device::composite {

/// Sends messages in pieces over all networks that join a peer with this node, the peer's rails.
class Striper {
public:
    Striper(Peers& peers, const StripeOptions& options) noexcept : peers_(peers), options_(options) {}

    /// The longest first part of a message in two parts that may go in pieces.
    static constexpr std::size_t message_head_max = 256;
    /// Sends a message in pieces. As soon as a rail takes the first piece the message is sent: pieces for which the
    /// rails have no room wait here. False: no room for the first, or the message would get too far ahead.
    bool try_send(Peer& peer, const Pieces& message);
    /// Gives a piece to the rail that will have finished it first. False: that has no room.
    bool give_piece(Peer& peer, Bytes head, Bytes body);
    /// The peer has handed out every message before `expected`.
    void on_arrived(Peer& peer, Sequence expected) noexcept;
    /// Finds out whether smaller messages, too, have come so far ahead of one in pieces that the peer may not take
    /// more.
    void look_ahead(Peer& peer) noexcept;
    /// From time to time: tries whether pieces are faster than whole messages.
    void measure(Peer& peer, Instant now);
    /// While rails are timed: looks whether the letter has arrived.
    void look_for_timed(Peer& peer) noexcept;

private:
    bool is_rail(const Peer& peer, std::size_t way) const noexcept;
    std::uint64_t working_rails(const Peer& peer) const noexcept;
    std::uint64_t rails_of(const Peer& peer) const noexcept;
    static std::uint64_t look(Peer& peer, std::size_t index) noexcept;
    void time_rail(Peer& peer, std::size_t index, Instant now);

    Peers& peers_;
    StripeOptions options_;
};

} // namespace kumi::device::composite
