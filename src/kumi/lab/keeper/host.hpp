#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"
#include "kumi/lab/plan/plan.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::lab {

/// A host of the lab: network, mount, host name, process and IPC namespaces, and the first process in them, which
/// holds them. That process is a child of ours, and all of the host dies with it; it dies with us.
struct Host {
    pid_t pid = 0; // of the first process; 0 when it has died
    base::Descriptor process; // of the first process
    base::Descriptor line;    // to it

    /// Starts it, without cables. `kept` are folders that it shall see, wherever they are; `keeper` is the descriptor
    /// of this process.
    static Result<Host> start(const Plan& plan, std::size_t index, const std::vector<std::string>& kept, int keeper);

    /// Tells it that its cables are in: it gives addresses to its interfaces.
    void tell_wired() const;
    /// Waits until it is ready.
    Result<void> wait_until_ready(Instant deadline) const;
};

/// Gives the calling process the host's namespaces, and a child that it forks then the host's processes.
Result<void> enter(const Host& host);
/// The calling process is on the host's network from now on, and on nothing else of it.
Result<void> enter_network(const Host& host);

/// In the calling process's network: lets packets that are longer than a wire's leave by that interface, or not.
Result<void> set_offloads(const std::string& interface, bool on);

} // namespace kumi::lab
