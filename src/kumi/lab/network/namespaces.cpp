#include "kumi/lab/network/namespaces.hpp"

#include "kumi/base/clock.hpp"
#include "kumi/lab/network/carrier.hpp"
#include "kumi/lab/network/command.hpp"
#include "kumi/lab/network/user_namespace.hpp"

#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr const char* cable = "kumi0"; // the same name on both hosts

Result<base::Descriptor> this_network() {
    base::Descriptor found(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!found) return system_error(errno, "opening /proc/thread-self/ns/net");
    return found;
}

Result<base::Descriptor> new_network() {
    if (::unshare(CLONE_NEWNET) != 0) return system_error(errno, "making a network namespace");
    return this_network();
}

/// Where the calling thread returns to by leave(), with the right to make networks.
Result<base::Descriptor> home() {
    auto before = this_network();
    if (!before) return before;
    if (::unshare(CLONE_NEWNET) == 0) {
        if (::setns(before->get(), CLONE_NEWNET) != 0) return system_error(errno, "returning to the machine's network");
        return before;
    }
    if (errno != EPERM) return system_error(errno, "making a network namespace");
    if (auto done = make_user_namespace(UserInside::root); !done) return done.error();
    auto own = new_network(); // there is no way back to the machine's network now
    if (!own) return own;
    if (auto done = run_command({"ip", "link", "set", "lo", "up"}); !done) return done.error();
    return own;
}

} // namespace

Result<TwoHosts> TwoHosts::make() {
    TwoHosts two;
    auto before = home();
    if (!before) return before.error();
    two.home_ = std::move(*before);
    two.has_ipv6_ = ::access("/proc/net/if_inet6", R_OK) == 0;
    const auto build = [&]() -> Result<void> {
        for (base::Descriptor& host : two.hosts_) {
            auto made = new_network();
            if (!made) return made.error();
            host = std::move(*made);
        }
        if (auto done = two.join_by_cable(); !done) return done;
        for (const unsigned host : {0u, 1u})
            if (auto done = two.set_up(host); !done) return done;
        for (const unsigned host : {0u, 1u})
            if (auto done = two.wait_for_cable(host); !done) return done;
        return {};
    };
    const auto built = build();
    if (auto done = two.leave(); !done) return done.error();
    if (!built) return built.error();
    return two;
}

Result<void> TwoHosts::join_by_cable() const {
    if (auto done = enter(0); !done) return done;
    // The system looks at a new carrier at once only where the ends have different numbers, else up to a second later.
    return run_command({"ip", "link", "add", cable, "index", "100", "mtu", "1500", "type", "veth", "peer", "name",
                        cable, "index", "101", "mtu", "1500", "netns", path(1)});
}

Result<void> TwoHosts::wait_for_cable(unsigned host) const {
    if (auto done = enter(host); !done) return done;
    return wait_for_carrier(cable, now() + std::chrono::seconds(5));
}

Result<void> TwoHosts::set_up(unsigned host) const {
    if (auto done = enter(host); !done) return done;
    if (auto done = run_command({"ip", "link", "set", "lo", "up"}); !done) return done;
    if (auto done = run_command({"ip", "address", "add", address(host) + "/24", "dev", cable}); !done) return done;
    // nodad: the address is usable at once, not after the system has asked around for a second.
    if (has_ipv6_)
        if (auto done = run_command({"ip", "address", "add", address6(host) + "/64", "dev", cable, "nodad"}); !done)
            return done;
    return run_command({"ip", "link", "set", cable, "up"});
}

Result<void> TwoHosts::enter(unsigned host) const {
    KUMI_ASSERT(host < hosts_.size());
    if (::setns(hosts_[host].get(), CLONE_NEWNET) != 0)
        return system_error(errno, fmt::format("entering the network of host {}", host));
    return {};
}

Result<void> TwoHosts::leave() const {
    if (::setns(home_.get(), CLONE_NEWNET) != 0) return system_error(errno, "leaving a host's network");
    return {};
}

std::string TwoHosts::address(unsigned host) const { return fmt::format("10.77.0.{}", host + 1); }

std::string TwoHosts::address6(unsigned host) const { return has_ipv6_ ? fmt::format("fd77::{}", host + 1) : ""; }

std::string TwoHosts::path(unsigned host) const {
    return fmt::format("/proc/{}/fd/{}", ::getpid(), hosts_[host].get());
}

Result<void> TwoHosts::set_loss(double percent) const {
    const auto before = this_network();
    if (!before) return before.error();
    Result<void> done;
    for (const unsigned host : {0u, 1u})
        if (done) done = set_loss_at(host, percent);
    if (::setns(before->get(), CLONE_NEWNET) != 0) return system_error(errno, "leaving a host's network");
    return done;
}

Result<void> TwoHosts::set_loss_at(unsigned host, double percent) const {
    if (auto done = enter(host); !done) return done;
    const char* offload = percent > 0 ? "off" : "on";
    if (auto done = run_command({"ethtool", "-K", cable, "tso", offload, "tx-udp-segmentation", offload}); !done)
        return done;
    if (auto done = run_command({"nft", "flush", "ruleset"}); !done || percent <= 0) return done;
    // netfilter's dice, not netem: many kernels are built without netem, and either end's arrivals are as good a place.
    constexpr long sides = 1'000'000;
    return run_command({"nft", fmt::format("add table inet kumi; "
                                           "add chain inet kumi loss {{ type filter hook prerouting priority raw; }}; "
                                           "add rule inet kumi loss iifname {} numgen random mod {} < {} counter drop",
                                           cable, sides, std::lround(percent / 100 * static_cast<double>(sides)))});
}

Result<void> TwoHosts::link(unsigned host, bool up) const {
    const auto before = this_network();
    if (!before) return before.error();
    if (auto done = enter(host); !done) return done;
    auto done = run_command({"ip", "link", "set", cable, up ? "up" : "down"});
    if (done && up && has_ipv6_) // which a link that goes down loses
        done = run_command({"ip", "address", "replace", address6(host) + "/64", "dev", cable, "nodad"});
    if (::setns(before->get(), CLONE_NEWNET) != 0) return system_error(errno, "leaving a host's network");
    return done;
}

Result<void> TwoHosts::set_mtu(unsigned host, unsigned bytes) const {
    const auto before = this_network();
    if (!before) return before.error();
    if (auto done = enter(host); !done) return done;
    auto done = run_command({"ip", "link", "set", cable, "mtu", std::to_string(bytes)});
    if (::setns(before->get(), CLONE_NEWNET) != 0) return system_error(errno, "leaving a host's network");
    return done;
}

} // namespace kumi::lab
