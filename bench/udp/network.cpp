#include "udp/network.hpp"

namespace kumi::bench {

Result<Network> Network::open(std::string_view name, double loss_percent) {
    Network network;
    network.loopback_ = name == "loopback";
    auto hosts = lab::TwoHosts::make();
    if (hosts) network.hosts_ = std::move(*hosts);
    else if (!network.loopback_) return hosts.error();
    if (loss_percent > 0)
        if (auto done = network.hosts_->set_loss(loss_percent); !done) return done.error();
    return network;
}

Result<void> Network::enter(unsigned side) const {
    if (!hosts_) return {};
    return hosts_->enter(loopback_ ? 0 : side);
}

std::string Network::address(unsigned side) const { return loopback_ ? "127.0.0.1" : hosts_->address(side); }

} // namespace kumi::bench
