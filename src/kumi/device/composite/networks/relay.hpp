#pragma once

#include "kumi/device/composite/peers/health.hpp"

#include <span>

namespace kumi::device::composite {

/// Passes on letters of other nodes, and answers letters by the way that they came.
class Relay {
public:
    Relay(Peers& peers, const Health& health) noexcept : peers_(peers), health_(health) {}

    /// All nodes that a letter names exist, its path is complete, and it is for this node or to be passed on by this
    /// node.
    bool is_sound(const Envelope& head, Bytes letter) const noexcept;
    /// Passes on a letter, or tells its source that there is no way on.
    void pass_on(const Envelope& head, Bytes letter, Inlet from);
    /// Answers by the way that the letter came. If that has no room, the answer waits for room on the neighbour's
    /// current way.
    void answer(const Envelope& head, Envelope::Kind kind, Sequence sequence, std::span<const Node> way_back,
                Inlet from);
    /// Sends a neighbour a seek, or an answer about paths. A busy way has no room most of the time: then the letter is
    /// kept, and goes before all messages that wait for room there.
    void send_urgent(Peer& neighbour, Bytes letter);

private:
    void tell_source(const Envelope& head, Bytes letter, bool has_left, Node next, Inlet from);

    Peers& peers_;
    const Health& health_;
};

} // namespace kumi::device::composite
