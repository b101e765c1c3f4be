#include "kumi/launch/plan.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/cluster/file.hpp"
#include "kumi/cluster/placement.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>

namespace kumi::launch {
namespace {

using cluster::Cluster;

Result<std::string> read_text(const std::string& path) {
    std::ifstream stream(path);
    if (!stream) return system_error(errno, fmt::format("reading the cluster file {}", path));
    return std::string(std::istreambuf_iterator<char>(stream), {});
}

std::string some_names(const Cluster& cluster) {
    constexpr std::size_t shown_max = 8;
    std::vector<std::string_view> names;
    for (const cluster::Host& host : cluster.hosts)
        if (names.size() < shown_max) names.push_back(host.name);
    return fmt::format("{}{}", fmt::join(names, ", "), cluster.hosts.size() > shown_max ? ", ..." : "");
}

/// The hosts that the job may use: those of the file, or those named.
Result<Cluster> hosts_of(const JobOptions& options, const std::optional<std::string>& cluster_text) {
    Cluster described;
    if (cluster_text) {
        auto parsed = cluster::parse_cluster(*cluster_text, options.cluster_file);
        if (!parsed || !options.hosts) return parsed;
        described = *std::move(parsed);
    }
    auto named = cluster::parse_host_list(*options.hosts);
    if (!named) return error("--hosts: {}", named.error().text());
    for (const cluster::Host& host : named->hosts)
        if (cluster_text && !described.find_host(host.name))
            return error("--hosts: {} says nothing of a host {}; it has {}", options.cluster_file, host.name,
                         some_names(described));
    return named;
}

} // namespace

bool Plan::is_here() const { return parts.size() == 1 && names_this_host(parts[0].host, base::host_name()); }

Result<Plan> plan_job(const JobOptions& options) {
    if (!options.hosts && options.cluster_file.empty()) {
        if (!options.place.empty()) return error("--place: on which hosts? Name them with --hosts or --cluster");
        return Plan{{{base::host_name(), 0, options.nodes}}, {}};
    }
    Plan plan;
    if (!options.cluster_file.empty()) {
        auto text = read_text(options.cluster_file);
        if (!text) return text.error();
        plan.cluster_text = *std::move(text);
    }
    const auto hosts = hosts_of(options, plan.cluster_text);
    if (!hosts) return hosts.error();
    auto policy = options.place.empty() ? cluster::Policy::pack() : cluster::Policy::parse(options.place);
    if (!policy) return error("--place: {}", policy.error().text());
    const auto placement = cluster::place(*hosts, options.nodes, *policy);
    if (!placement) return error("-n {}: {}", options.nodes, placement.error().text());
    for (std::uint32_t node = 0; node < placement->size(); ++node) {
        const cluster::Seat& seat = (*placement)[node];
        if (seat.slot == 0) plan.parts.push_back({hosts->hosts[seat.host].name, node, 0});
        ++plan.parts.back().count;
    }
    return plan;
}

bool names_this_host(std::string_view name, std::string_view own) noexcept {
    const bool is_short_for_own = own.starts_with(name) && own.substr(name.size()).starts_with('.');
    return name == "localhost" || name == own || is_short_for_own; // not a longer one: that may be of another place
}

} // namespace kumi::launch
