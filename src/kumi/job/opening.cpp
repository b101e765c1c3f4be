#include "kumi/job/opening.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/text/fnv.hpp"
#include "kumi/cluster/file.hpp"
#include "kumi/cluster/routing.hpp"
#include "kumi/device/composite/composite.hpp"
#include "kumi/device/shmem/shmem.hpp"
#include "kumi/device/udp/udp.hpp"
#include "kumi/job/discovery.hpp"
#include "kumi/pm/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/ranges.h>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::job {
namespace {

using cluster::Cluster;
using cluster::NetworkIndex;
using cluster::Placement;
using cluster::Route;
using cluster::Routing;
using pm::Node;

constexpr const char* cluster_variable = "KUMI_CLUSTER";

Result<std::unique_ptr<pm::Device>> make_shmem() {
    const auto options = device::shmem::options_from_environment();
    if (!options) return options.error();
    return std::unique_ptr<pm::Device>(std::make_unique<device::shmem::ShmemDevice>(*options));
}

Result<std::unique_ptr<pm::Device>> make_udp() {
    const auto options = device::udp::options_from_environment();
    if (!options) return options.error();
    return std::unique_ptr<pm::Device>(std::make_unique<device::udp::UdpDevice>(*options));
}

/// Makes the UDP device for one of the cluster's networks.
Result<std::unique_ptr<pm::Device>> make_udp(const cluster::Network& network, const std::string& address,
                                             Duration silence_max) {
    auto options = device::udp::options_from_environment();
    if (!options) return options.error();
    options->silence_max = silence_max;
    for (const cluster::Option& option : network.options)
        if (auto set = device::udp::set_option(*options, option.name, option.value); !set)
            return error("network {}: option {} = {}: {}", network.name, option.name, option.value, set.error().text());
    options->address = address;
    options->encrypt = options->encrypt || network.encrypt;
    return std::unique_ptr<pm::Device>(std::make_unique<device::udp::UdpDevice>(*std::move(options)));
}

/// Where a node runs, as it reports to the others.
struct SeatReport {
    std::uint32_t host; // index in the cluster file
    std::uint32_t slot;
    std::uint64_t cluster; // fingerprint of the cluster; must be equal on all nodes
};

/// A hash of everything in a cluster that routes depend on.
std::uint64_t fingerprint_of(const Cluster& cluster) {
    std::string text;
    for (const cluster::Network& network : cluster.networks)
        text += fmt::format("{} {} {} {}\n", network.name, network.device, network.encrypt, network.topology.text());
    for (const cluster::Host& host : cluster.hosts)
        text += fmt::format("{} {}\n", host.name, fmt::join(host.addresses, " "));
    return base::fnv1a(text);
}

/// Finds the entry of this host in the file, by its full name or without the domain.
Result<std::uint32_t> find_own_host(const Cluster& cluster, const std::string& file, const std::string& name) {
    for (const std::string& known : {name, name.substr(0, name.find('.'))})
        if (const auto found = cluster.find_host(known)) return *found;
    return error("this host is {}, and {} describes none of that name: add it, or correct its name there", name, file);
}

/// Tells the other nodes where this node runs, and learns where they run. A node that does not know reports that, and
/// all give up, so that the others do not wait for it.
Result<Placement> exchange_seats(const Result<Cluster>& cluster, const std::string& file, boot::Session& session) {
    constexpr std::uint32_t unknown = 0xffffffff;
    const boot::Standing& standing = session.standing();
    const auto host = cluster ? find_own_host(*cluster, file, standing.host) : Result<std::uint32_t>(cluster.error());
    SeatReport mine{unknown, 0, 0};
    if (host) mine = {*host, standing.slot, fingerprint_of(*cluster)};
    const auto told = session.exchange(bytes_of(mine));
    if (!host) return host.error();
    if (!told) return told.error();
    Placement placement;
    std::vector<std::uint32_t> nodes_on(cluster->hosts.size());
    for (Node node = 0; node < standing.nodes; ++node) {
        SeatReport report{};
        const bool read = read_value((*told)[node], report);
        if (read && report.host == unknown)
            return error("node {} cannot go on: {} does not describe its host, or cannot be read there", node, file);
        if (!read || report.cluster != mine.cluster || report.host >= cluster->hosts.size())
            return error("node {} has another cluster file: set {} to the same file on all nodes", node,
                         cluster_variable);
        if (report.slot != nodes_on[report.host]++)
            return error("two hosts have the name {} in {}: give each its own entry there",
                         cluster->hosts[report.host].name, file);
        placement.push_back({report.host, report.slot});
    }
    return placement;
}

Result<PlacedCluster> read_placed_cluster(const char* file, boot::Session& session) {
    auto cluster = cluster::read_cluster_file(file);
    auto placement = exchange_seats(cluster, file, session);
    if (!placement) return placement.error();
    return PlacedCluster{*std::move(cluster), *std::move(placement)};
}

/// "a, b, c", or the first few of many names.
std::string names_of(const std::vector<std::string>& hosts) {
    constexpr std::size_t shown_max = 8;
    const std::size_t shown = std::min(hosts.size(), shown_max);
    return fmt::format("{}{}", fmt::join(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                       shown < hosts.size() ? ", ..." : "");
}

/// An error if this node has no route to another one.
Result<void> check_routes(const Cluster& cluster, const Routing& routing, Node self) {
    for (Node to = 0; to < routing.nodes(); ++to) {
        const Route route = routing.route(self, to);
        if (route.kind != Route::Kind::none) continue;
        const auto host_of = [&](Node node) { return cluster.hosts[routing.placement()[node].host].name; };
        return error("node {} on {} and node {} on {} have no network in common, and no node that could pass on "
                     "messages; see kumi map",
                     self, host_of(self), to, host_of(to));
    }
    return {};
}

/// The nodes that send messages through this one.
std::vector<Node> find_nodes_served(const Routing& routing, Node self) {
    std::vector<bool> is_served; // by host: its nodes have the same routes
    std::vector<bool> is_known;
    std::vector<Node> served;
    for (Node from = 0; from < routing.nodes(); ++from) {
        const cluster::HostIndex host = routing.placement()[from].host;
        is_served.resize(std::max<std::size_t>(is_served.size(), host + 1));
        is_known.resize(is_served.size());
        for (Node to = 0; !is_known[host] && !is_served[host] && to < routing.nodes(); ++to)
            for (Node at = from; routing.route(at, to).kind == Route::Kind::relayed && !is_served[host];) {
                at = routing.route(at, to).next;
                is_served[host] = at == self;
            }
        is_known[host] = true;
        if (is_served[host]) served.push_back(from);
    }
    return served;
}

/// The relays on the paths from this node to each other one, and the nodes that this node relays for.
device::composite::CompositeDevice::Relays find_relays(const Cluster& cluster, const Placement& placement, Node self,
                                                       const std::vector<device::composite::Silent>& silent) {
    std::vector<cluster::Broken> broken;
    for (const device::composite::Silent& pair : silent) {
        if (pair.plan == 0) continue; // shared memory
        const auto network = static_cast<NetworkIndex>(pair.plan - 1);
        const cluster::HostIndex one = placement[pair.one].host, other = placement[pair.other].host;
        broken.push_back({one, other, network});
        broken.push_back({other, one, network});
    }
    const Routing routing(cluster, placement, broken);
    std::vector<device::composite::Path> paths(routing.nodes());
    for (Node to = 0; to < routing.nodes(); ++to)
        for (Route route = routing.route(self, to); route.kind == Route::Kind::relayed;
             route = routing.route(route.next, to))
            paths[to].push_back(route.next);
    return {std::move(paths), find_nodes_served(routing, self)};
}

/// KUMI_SILENCE, if it is set; else the value of the cluster file; else the default.
Result<Duration> find_silence_max(const Cluster& cluster) {
    const auto options = device::udp::options_from_environment();
    if (!options) return options.error();
    const bool is_told = std::getenv("KUMI_SILENCE") != nullptr;
    return is_told || !cluster.silence_seconds ? options->silence_max : std::chrono::seconds(*cluster.silence_seconds);
}

/// Makes the composite device: one plan for shared memory and one for each network between hosts of the job, equal on
/// all nodes.
Result<std::unique_ptr<pm::Device>> plan_composite(const Cluster& cluster, const Routing& routing, Node self) {
    const auto host_of = [&](Node node) { return routing.placement()[node].host; };
    const auto silence_max = find_silence_max(cluster);
    if (!silence_max) return silence_max.error();
    std::vector<device::composite::Plan> plans(1);
    plans[0].name = "shmem";
    for (Node node = 0; node < routing.nodes(); ++node)
        if (host_of(node) == host_of(self)) plans[0].members.push_back(node);
    if (plans[0].members.size() > 1 || routing.nodes() == 1) {
        auto shmem = make_shmem();
        if (!shmem) return shmem.error();
        plans[0].device = *std::move(shmem);
    }
    for (NetworkIndex network = 0; network < cluster.networks.size(); ++network) {
        device::composite::Plan& plan = plans.emplace_back();
        plan.name = cluster.networks[network].name;
        plan.is_measured = cluster.networks[network].is_measured;
        for (Node node = 0; node < routing.nodes(); ++node)
            if (cluster.hosts[host_of(node)].is_on(network)) plan.members.push_back(node);
        if (plan.members.size() < 2 || !cluster.hosts[host_of(self)].is_on(network)) continue;
        auto udp = make_udp(cluster.networks[network], cluster.hosts[host_of(self)].addresses[network], *silence_max);
        if (!udp) return udp.error();
        plan.device = *std::move(udp);
    }
    const auto joins = [routing, self](std::size_t plan, Node to) {
        if (plan == 0) return routing.placement()[self].host == routing.placement()[to].host;
        return to == self || routing.may_use(self, to, static_cast<NetworkIndex>(plan - 1));
    };
    auto device = std::make_unique<device::composite::CompositeDevice>(std::move(plans), joins);
    device->set_relays([cluster, routing, self](const std::vector<device::composite::Silent>& silent) {
        return find_relays(cluster, routing.placement(), self, silent);
    });
    const char* const stripes = std::getenv("KUMI_STRIPES");
    const std::string_view wanted = stripes != nullptr ? stripes : "yes";
    if (wanted != "yes" && wanted != "no") return error("KUMI_STRIPES={}: write yes or no", wanted);
    device->set_stripes(wanted == "yes");
    std::vector<std::string> names;
    for (Node node = 0; node < routing.nodes(); ++node)
        names.push_back(fmt::format("node {} on {}", node, cluster.hosts[host_of(node)].name));
    device->set_names(std::move(names));
    device->set_silence(*silence_max);
    return std::unique_ptr<pm::Device>(std::move(device));
}

Result<std::unique_ptr<pm::Device>> make_composite(boot::Session& session) {
    const boot::Standing& standing = session.standing();
    const char* const file = std::getenv(cluster_variable);
    if (standing.nodes_on_host == standing.nodes) { // shared memory is better than any network
        const Cluster alone{.networks = {},
                            .hosts = {{.name = standing.host, .slots = standing.nodes, .addresses = {}}}};
        return plan_composite(alone, Routing(alone, *cluster::place(alone, standing.nodes, cluster::Policy::pack())),
                              standing.node);
    }
    auto found = file != nullptr ? read_placed_cluster(file, session) : discover_cluster(session);
    if (!found) return found.error();
    const Routing routing(found->cluster, std::move(found->placement));
    if (auto good = check_routes(found->cluster, routing, standing.node); !good) return good.error();
    return plan_composite(found->cluster, routing, standing.node);
}

/// The device that connects all nodes, and whether nodes have their slot numbers on it.
struct Choice {
    std::unique_ptr<pm::Device> device;
    bool within_host = false;
};

Result<Choice> choose_device(boot::Session& session) {
    const boot::Standing& standing = session.standing();
    const bool one_host = standing.nodes_on_host == standing.nodes;
    const char* const text = std::getenv("KUMI_DEVICE");
    const std::string_view name = text != nullptr ? text : one_host ? "shmem" : "composite";
    if (name != "shmem" && name != "udp" && name != "composite")
        return error("KUMI_DEVICE={}: write shmem, udp or composite", name);
    if (name == "shmem" && !one_host)
        return error("KUMI_DEVICE=shmem: the nodes are on {} hosts ({}), and shared memory is within one host; unset "
                     "it",
                     standing.hosts.size(), names_of(standing.hosts));
    auto device = name == "shmem" ? make_shmem() : name == "udp" ? make_udp() : make_composite(session);
    if (!device) return device.error();
    return Choice{*std::move(device), name == "shmem"};
}

} // namespace

Result<std::unique_ptr<pm::Channel>> open_channel(boot::Session& session) {
    auto choice = choose_device(session);
    if (!choice) return choice.error();
    SessionMeeting meeting(session);
    const boot::Standing& standing = session.standing();
    return choice->device->open({.self = choice->within_host ? standing.slot : standing.node,
                                 .nodes = choice->within_host ? standing.nodes_on_host : standing.nodes,
                                 .cores_on_host = standing.cores_on_host,
                                 .meeting = meeting,
                                 .keys = standing.keys});
}

} // namespace kumi::job
