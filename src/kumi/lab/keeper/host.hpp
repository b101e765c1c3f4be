#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/lab/plan/plan.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::lab {

/// A host of the lab: network, mount, host name, process and IPC namespaces, and the first process in them, which holds
/// them. That process is a child of this one and dies with it; all of the host dies with its first process.
struct Host {
    pid_t pid = 0; // of the first process; 0 when it has died
    base::Descriptor process; // of the first process
    base::Descriptor line;    // a connection to it

    /// Starts a host, without cables. `kept` are folders that it shall see, wherever they are; `keeper` is a descriptor
    /// of this process.
    static Result<Host> start(const Plan& plan, std::size_t index, const std::vector<std::string>& kept, int keeper);

    /// Tells the host that its cables are in. It then gives addresses to its interfaces.
    void tell_wired() const;
    /// Waits until the host is ready.
    Result<void> wait_until_ready(Instant deadline) const;
};

/// Moves the calling process into the host's namespaces; only its later children are among the host's processes.
Result<void> enter(const Host& host);
/// Moves the calling process into the host's network, and into nothing else of the host.
Result<void> enter_network(const Host& host);

/// In the calling process's network: allows or forbids packets longer than a wire's to leave by that interface.
Result<void> set_offloads(const std::string& interface, bool on);

} // namespace kumi::lab
