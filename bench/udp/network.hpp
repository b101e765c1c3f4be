#pragma once

#include "kumi/lab/network/namespaces.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace kumi::bench {

/// The network that a benchmark runs on. "veth": side 0 and side 1 are two hosts joined by a cable of MTU 1500, which
/// loses `loss_percent` of the packets. "loopback": both sides are one host, with a loopback that nothing else uses.
class Network {
public:
    static Result<Network> open(std::string_view name, double loss_percent = 0);

    /// Moves this process to a side. Sockets that it opens from now on are on that side.
    Result<void> enter(unsigned side) const;
    std::string address(unsigned side) const;

    bool is_loopback() const noexcept { return loopback_; }
    const char* interface() const noexcept { return loopback_ ? "lo" : "kumi0"; }
    /// The path of a side's network namespace, for nsenter.
    std::string path(unsigned side) const { return hosts_->path(side); }

private:
    Network() = default;

    bool loopback_ = false;
    std::optional<lab::TwoHosts> hosts_; // none: the machine's own loopback, where namespaces are refused
};

} // namespace kumi::bench
