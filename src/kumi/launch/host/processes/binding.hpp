#pragma once

#include <sched.h>
#include <vector>

namespace kumi::launch::host {

/// Which cores each of `nodes` nodes gets: one whole core each, spread over the machine, when there are enough that
/// this process may use; otherwise nothing, and the system places them.
std::vector<cpu_set_t> plan_binding(unsigned nodes);

} // namespace kumi::launch::host
