#pragma once

#include "kumi/base/result.hpp"
#include "kumi/lab/plan/conditions.hpp"
#include "kumi/lab/keeper/host.hpp"
#include "kumi/lab/plan/plan.hpp"

#include <string>
#include <vector>

namespace kumi::lab {

/// A lab that is up, as its keeper knows it.
struct Lab {
    Plan plan;
    std::vector<Host> hosts; // in the plan's order
    Conditions conditions;
};

/// Carries out a request such as "link a0 lan down", and answers what has changed. Requires a process of its own in the
/// switch: it may end up on another network. When the words are wrong nothing changes, and the error says how.
Result<Change> change_network(const Lab& lab, const std::string& verb, const std::vector<std::string>& words);

} // namespace kumi::lab
