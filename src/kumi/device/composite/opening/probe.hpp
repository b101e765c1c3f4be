#pragma once

// Tries every channel before it is used. Networks lie: a host has an address on one and is not reached there, a
// firewall lets only one direction pass, a cable is out. So every node sends a message to every other on every channel
// that they share, and the nodes tell each other through the meeting which nodes they heard.

#include "kumi/base/clock.hpp"
#include "kumi/base/data/bitmap.hpp"
#include "kumi/base/result.hpp"
#include "kumi/device/composite/composite.hpp"
#include "kumi/device/composite/part.hpp"
#include "kumi/pm/device.hpp"

#include <vector>

namespace kumi::device::composite {

/// The channel of one plan, and the nodes with which it works.
struct Probed {
    Part* part;         // null where this node is not on the network
    base::Bitmap works; // by node: this node heard it there, and was heard
};

/// Finds out for each channel with which nodes it works. All nodes call it, with as many channels in the same order.
/// Takes a few milliseconds when all is well, and `patience` when a node does not answer. Answers all pairs of nodes of
/// which one does not hear the other; the same on every node. `members` are each channel's.
Result<std::vector<Silent>> probe(std::vector<Probed>& channels, const std::vector<std::vector<Node>>& members,
                                  Node self, pm::Meeting& meeting, Duration patience);

} // namespace kumi::device::composite
