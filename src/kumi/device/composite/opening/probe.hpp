#pragma once

// Tries every way before it is used. Networks lie: a host has an address on one and is not reached there, a firewall
// lets only one direction pass, a cable is out. So every node sends a message to every other on every channel they
// share, and they tell each other, by the way that brought them together, whom they heard.

#include "kumi/base/bitmap.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/device/composite/channel.hpp"
#include "kumi/device/composite/composite.hpp"
#include "kumi/pm/device.hpp"

#include <vector>

namespace kumi::device::composite {

/// One of the channels, and which of all nodes' channels it is an end of.
struct Probed {
    Part* part;       // null where this node is not on it
    base::Bitmap works; // by node: heard there, and it heard us
};

/// Finds out for each channel with whom it works. All nodes call it, with as many channels in the same order. Takes a
/// few milliseconds when all is well, and `patience` when somebody does not answer. Answers who of all nodes does not
/// hear whom; the same on every node. `members` are each channel's.
Result<std::vector<Silent>> probe(std::vector<Probed>& channels, const std::vector<std::vector<Node>>& members,
                                  Node self, pm::Meeting& meeting, Duration patience);

} // namespace kumi::device::composite
