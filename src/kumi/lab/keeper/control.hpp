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

/// Carries out "link a0 lan down" and the like, and answers what has changed; for a process in the switch, which must
/// be alone: it may end up on another network. Nothing has changed when the words were wrong; the error says how.
Result<Change> change_network(const Lab& lab, const std::string& verb, const std::vector<std::string>& words);

} // namespace kumi::lab
