#pragma once

// The process that a lab lives in.
//
// It is in the network namespace of the switch and is the parent of every host's first process. When it dies, however,
// they are killed by the system, all processes of a host are with its first one, and bridges and cables go with the
// namespaces: there is nothing that has a name. It serves the kumi command at a socket, each connection in a process
// of its own, so that none can make the others wait.

#include "kumi/base/descriptor.hpp"
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

/// What a keeper reports when its lab is up; anything else is why it is not.
inline constexpr const char* lab_is_up = "up";

/// Starts the keeper in the background, in a session of its own. Its report can be read from the answered descriptor;
/// when nobody reads it, the lab goes down again.
Result<base::Descriptor> start_keeper(const KeeperOptions& options, StateFolder state);

} // namespace kumi::lab
