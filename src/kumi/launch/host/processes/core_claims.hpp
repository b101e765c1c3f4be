#pragma once

// Jobs on one host do not bind their nodes to the same cores: a job claims each core that it binds a node to, by an
// exclusive flock on a file that stands for the core. The lock belongs to a descriptor of the process that started the
// node, so it goes away with that process, whatever ends it. The files are the kernel's own (/sys/devices/system/cpu/
// cpu0 and so on): nothing is made, so nothing is left behind, and jobs of all users see each other's claims. Jobs in
// containers, and on the hosts of a lab, have files of their own and do not see those outside.

#include "kumi/base/system/descriptor.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace kumi::launch::host {

/// Chooses a core for each of `nodes` nodes: the indices of free cores, in ascending order and spread evenly over all
/// free ones. `taken` says which cores other jobs have. Empty if fewer cores are free than there are nodes; but a job
/// with a node for every core gets all cores if other jobs have all of them, too.
std::vector<std::size_t> choose_cores(const std::vector<bool>& taken, std::size_t nodes);

struct ClaimedCore {
    std::size_t index;      // into the numbers that were offered
    base::Descriptor claim; // other jobs do not claim the core while this is open; none: it is shared, or has no file
};

/// Chooses cores of those that `numbers` names, and claims those that are free; all or none. In `folder`, "cpu3" stands
/// for core 3. A core without such a file counts as free. Waits for other jobs that claim cores at this moment, for
/// 100 ms at most.
std::vector<ClaimedCore> claim_cores(const std::string& folder, const std::vector<unsigned>& numbers,
                                     std::size_t nodes);

} // namespace kumi::launch::host
