#include "kumi/pm/wait.hpp"

#include <algorithm>
#include <sched.h>

namespace kumi::pm {

Patience patience_for(unsigned nodes_on_host, unsigned cores) noexcept {
    // About ten times what falling asleep and being woken costs: a wait that turns out longer pays a tenth more.
    constexpr Duration spin = std::chrono::microseconds(50);
    if (nodes_on_host <= cores) return {.spin_max = spin};
    // A yield costs a third of falling asleep and being woken. The core goes round all nodes that yield: if they do so
    // for long, the node that has something to do waits for its turn. Three is best in a ring of 16 nodes on two cores.
    return {.yields_max = 3, .nodes_per_core = (nodes_on_host + cores - 1) / std::max(cores, 1u)};
}

void yield_core() noexcept { ::sched_yield(); }

} // namespace kumi::pm
