#pragma once

// Two hosts on one machine, for tests and benchmarks: network namespaces with a cable between them.

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <array>
#include <string>
#include <sys/types.h>

namespace kumi::lab {

/// Two network namespaces, host 0 and host 1, joined by a veth pair at MTU 1500, each with a loopback of its own.
///
/// The machine's own network is left alone. Nothing but descriptors holds the namespaces: they are gone when this
/// object and the processes inside are. An ordinary user may make them where the system allows user namespaces; the
/// whole process then moves into one, for good, so it must have one thread.
///
/// A process inside is started by fork, enter and exec.
class TwoHosts {
public:
    static Result<TwoHosts> make();

    /// Moves the calling thread, and the processes that it starts later, to `host`. Sockets stay where they were made.
    Result<void> enter(unsigned host) const;
    /// Moves the calling thread back to where make() was called; for an ordinary user that is a namespace with a
    /// loopback only.
    Result<void> leave() const;

    /// The host's numeric IPv4 address on the cable.
    std::string address(unsigned host) const;
    /// The host's numeric IPv6 address on the cable; empty where the system has no IPv6.
    std::string address6(unsigned host) const;
    /// Names the host's network to other processes of this user, as nsenter --net=PATH wants it.
    std::string path(unsigned host) const;

    /// Loses that many packets of a hundred, by chance, both ways; 0 loses none. While packets are lost the cable
    /// carries them one by one: with segmentation offload a single loss would take up to 64 KiB at once.
    Result<void> set_loss(double percent) const;

    /// Pulls this host's end of the cable out, or puts it back; the system takes up to a second to see that it is.
    Result<void> link(unsigned host, bool up) const;

    /// The largest packet that this host's end of the cable sends, IP header included.
    Result<void> set_mtu(unsigned host, unsigned bytes) const;

private:
    TwoHosts() = default;
    Result<void> join_by_cable() const;
    Result<void> set_up(unsigned host) const;
    Result<void> wait_for_cable(unsigned host) const;
    Result<void> set_loss_at(unsigned host, double percent) const;

    base::Descriptor home_;
    std::array<base::Descriptor, 2> hosts_;
    bool has_ipv6_ = false;
};

} // namespace kumi::lab
