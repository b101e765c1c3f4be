#pragma once

#include "kumi/device/composite/peers/health.hpp"

namespace kumi::device::composite {

/// The end: a node leaves when all that it sent has arrived, and when no node needs it as a relay any more.
class Closing {
public:
    Closing(Peers& peers, Health& health) noexcept : peers_(peers), health_(health) {}

    /// The nodes whose messages this node is to pass on: it does not leave before they do.
    void set_served(const std::vector<Node>& sources);
    /// Nothing more will be sent.
    void begin();
    /// The time passes while this node closes: whatever is to be told is told.
    void on_time(Instant now);
    /// Tells peers that have all that was sent to them that this node takes no more messages: peers that are reached
    /// through others; and all peers, if this node stays as a relay or for slow peers. The others learn from their
    /// devices that it leaves.
    void tell_closed();
    /// Asks the nodes whose messages this node has passed on whether they are done. Relays that ask this node are told
    /// that they may leave when all that this node has sent has arrived.
    void tell_relays();
    bool have_all_arrived() const noexcept;
    /// A node whose messages this node has passed on may send more.
    bool is_relaying() const noexcept;
    /// Gives up ways that are not used, so that closing their devices does not wait for them.
    void give_up_unused() noexcept;

private:
    bool owes_closed(const Peer& peer) const noexcept;

    Peers& peers_;
    Health& health_;
    Instant began_{}; // when this node first looked whether it may leave
};

} // namespace kumi::device::composite
