#include "kumi/lab/plan/conditions.hpp"

#include <algorithm>

namespace kumi::lab {
namespace {

std::string rate_text(std::uint64_t bits_per_second) {
    if (bits_per_second == 0) return "no limit";
    for (const auto& [unit, name] : {std::pair{1'000'000'000u, "gbit"}, {1'000'000u, "mbit"}})
        if (bits_per_second >= unit) return fmt::format("{:g}{}", static_cast<double>(bits_per_second) / unit, name);
    return fmt::format("{:g}kbit", static_cast<double>(bits_per_second) / 1000);
}

} // namespace

Conditions::Conditions(const Plan& plan) : loss_percent(plan.networks.size()) {
    for (const PlannedNetwork& network : plan.networks) bits_per_second.push_back(network.bits_per_second);
}

void Conditions::apply(const Change& change) {
    const std::pair place{change.host, change.network};
    const auto set = [&](auto& places, bool in) {
        in ? static_cast<void>(places.insert(place)) : static_cast<void>(places.erase(place));
    };
    switch (change.kind) {
    case Change::Kind::link: set(down, !change.on); break;
    case Change::Kind::mute: set(mute, change.on); break;
    case Change::Kind::loss: loss_percent.at(change.network) = change.loss_percent; break;
    case Change::Kind::rate: bits_per_second.at(change.network) = change.bits_per_second; break;
    }
}

bool Conditions::by_the_frame(std::uint32_t network) const {
    return loss_percent[network] > 0 || bits_per_second[network] > 0;
}

std::string describe(const Plan& plan, const Conditions& conditions, const std::vector<pid_t>& pids) {
    std::string text;
    for (std::uint32_t i = 0; i < plan.networks.size(); ++i) {
        const PlannedNetwork& network = plan.networks[i];
        text +=
            fmt::format("network {}: {}, mtu {}", network.name, rate_text(conditions.bits_per_second[i]), network.mtu);
        if (conditions.loss_percent[i] > 0) text += fmt::format(", loses {:g} %", conditions.loss_percent[i]);
        text += '\n';
    }
    std::size_t width = 0;
    for (const PlannedHost& host : plan.hosts) width = std::max(width, host.name.size());
    for (std::uint32_t i = 0; i < plan.hosts.size(); ++i) {
        text += fmt::format("host {:<{}} ", plan.hosts[i].name, width);
        text += pids[i] == 0 ? std::string("has died") : fmt::format("pid {}", pids[i]);
        for (const Port& port : plan.hosts[i].ports) {
            text += fmt::format("  {} {}", plan.networks[port.network].name, port.address);
            if (conditions.down.contains({i, port.network})) text += " (down)";
            if (conditions.mute.contains({i, port.network})) text += " (mute)";
        }
        text += '\n';
    }
    return text;
}

} // namespace kumi::lab
