#include "kumi/cluster/cluster.hpp"

#include <algorithm>

namespace kumi::cluster {
namespace {

template <class Things>
std::optional<std::uint32_t> index_of(const Things& things, std::string_view name) noexcept {
    const auto found =
        std::find_if(things.begin(), things.end(), [&](const auto& thing) { return thing.name == name; });
    if (found == things.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - things.begin());
}

} // namespace

std::optional<HostIndex> Cluster::find_host(std::string_view name) const noexcept { return index_of(hosts, name); }

std::optional<NetworkIndex> Cluster::find_network(std::string_view name) const noexcept {
    return index_of(networks, name);
}

std::uint64_t Cluster::slots() const noexcept {
    std::uint64_t sum = 0;
    for (const Host& host : hosts) sum += host.slots;
    return sum;
}

} // namespace kumi::cluster
