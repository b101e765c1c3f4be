#pragma once

// The process that a lab lives in.
//
// The keeper is in the network namespace of the switch, and is the parent of every host's first process. However it
// dies, the system then kills these processes, with each of them all processes of its host, and removes the bridges and
// cables with their namespaces: nothing of a lab has a name outside. The keeper serves the kumi command at a socket,
// each connection in a process of its own, so that none can make the others wait.

#include "kumi/base/system/descriptor.hpp"
#include "kumi/base/result.hpp"
#include "kumi/lab/plan/plan.hpp"
#include "kumi/lab/keeper/state.hpp"

#include <string>
#include <vector>

namespace kumi::lab {

struct KeeperOptions {
    std::string name; // of the lab
    Plan plan;
    std::vector<std::string> kept; // folders that hosts see wherever they are
};

/// A keeper's report when its lab is up. Any other report is the reason why it is not.
inline constexpr const char* lab_is_up = "up";

/// Starts the keeper in the background, in a session of its own. Its report can be read from the descriptor that is
/// answered; when nobody reads it, the lab goes down again.
Result<base::Descriptor> start_keeper(const KeeperOptions& options, StateFolder state);

} // namespace kumi::lab
