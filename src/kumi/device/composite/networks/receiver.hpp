#pragma once

#include "kumi/device/composite/peers/peers.hpp"

namespace kumi::device::composite {

/// Hands out the messages of peers, each once and in the order in which its source sent them.
class Receiver {
public:
    explicit Receiver(Peers& peers) noexcept : peers_(peers) {}

    /// A message came. True: it was handed out.
    bool take(Peer& peer, const Envelope& head, pm::Message& message, pm::Handler handler);
    /// A piece of a message came. True: it was the last one, and the message was handed out.
    bool take_piece(Peer& peer, const Envelope& head, pm::Message& message, pm::Handler handler);
    /// Hands out messages that had overtaken others, and whose turn it is; answers how many.
    std::size_t hand_out_early(pm::Handler handler, std::size_t messages_max);
    bool has_early() const noexcept { return !early_.empty(); }

private:
    Peers& peers_;
    std::vector<Node> early_; // sources of messages whose turn it may be
};

} // namespace kumi::device::composite
