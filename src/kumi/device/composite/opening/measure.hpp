#pragma once

// Finds out which of several networks carries more, by sending. One pair of nodes measures each network: the lowest
// that the network joins and that no plan before it joins whose place is certain (a host's own memory). So networks
// that join the same hosts are measured between the same hosts, one after the other. All other nodes wait for the
// outcome, which is the same for all. It takes 5 to 30 ms for each network; longer only where packets get lost.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/device/composite/opening/probe.hpp"
#include "kumi/pm/device.hpp"

#include <vector>

namespace kumi::device::composite {

/// What each of the channels that are `wanted` carries, in bytes per second; 0 for other channels, and where no pair
/// could measure. All nodes call it, after probe(), with as many channels in the same order. A channel on which a pair
/// does not come to an end within `patience` does not work for these two nodes.
Result<std::vector<double>> measure(std::vector<Probed>& channels, const std::vector<bool>& wanted, Node self,
                                    Node nodes, pm::Meeting& meeting, Duration patience);

} // namespace kumi::device::composite
