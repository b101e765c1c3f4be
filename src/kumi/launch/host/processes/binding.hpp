#pragma once

#include "kumi/base/system/descriptor.hpp"

#include <sched.h>
#include <vector>

namespace kumi::launch::host {

/// The core of a node.
struct BoundCore {
    cpu_set_t processors;   // those of the core that this process may use
    base::Descriptor claim; // other jobs leave the core alone while this is open (core_claims.hpp)
};

/// Which cores each of `nodes` nodes gets: one whole core each, spread over the machine, when there are enough that
/// this process may use and that no other job has, or when other jobs have them all; otherwise nothing, and the system
/// places them. The claims are made in the folder that KUMI_CORES names, or in the kernel's.
std::vector<BoundCore> bind_nodes(unsigned nodes);

} // namespace kumi::launch::host
