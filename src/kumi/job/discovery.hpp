#pragma once

// What a job on several hosts finds out by itself when no file describes them: which nodes are on one host, because
// they can map the same memory, and which networks join the hosts, by their addresses. All nodes come to the same
// result. That the networks carry anything, and which carries more, is left to the composite, which tries and measures
// them.

#include "kumi/base/result.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/cluster/cluster.hpp"
#include "kumi/cluster/placement.hpp"

namespace kumi::job {

struct Surroundings {
    cluster::Cluster cluster;
    cluster::Placement placement;
};

/// All nodes call it together.
Result<Surroundings> look_around(boot::Session& session);

} // namespace kumi::job
