#pragma once

// Finds the cluster and the placement of a job on several hosts that no file describes: which nodes are on one host,
// because they can map the same memory; and which networks connect the hosts, by their addresses. All nodes get the
// same result. Whether the networks work, and which has more bandwidth, is left to the composite device, which tries
// and measures them.

#include "kumi/base/result.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/cluster/cluster.hpp"
#include "kumi/cluster/placement.hpp"

namespace kumi::job {

struct PlacedCluster {
    cluster::Cluster cluster;
    cluster::Placement placement;
};

/// Collective: all nodes must call it.
Result<PlacedCluster> discover_cluster(boot::Session& session);

} // namespace kumi::job
