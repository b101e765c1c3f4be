#include "kumi/lab/plan/plan.hpp"

#include "kumi/lab/plan/rate.hpp"
#include "kumi/lab/plan/subnet.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/ranges.h>

namespace kumi::lab {
namespace {

constexpr std::size_t interface_name_bytes_max = 15; // IFNAMSIZ without the zero at its end
constexpr std::size_t host_name_bytes_max = 64;
constexpr unsigned neighbour_again_ms = 100;
constexpr std::size_t hosts_max = 1000; // the system takes 1024 ports on a bridge at most

/// The network's own name where an interface may be called so.
std::string interface_name(const std::string& network, std::uint32_t index) {
    const bool taken = network == "lo" || network == "all" || network == "default"; // the last two by /proc/sys/net
    if (network.size() <= interface_name_bytes_max && std::isalnum(static_cast<unsigned char>(network[0])) && !taken)
        return network;
    return fmt::format("net{}", index);
}

/// "a0, a1 or front".
std::string choice(const std::vector<std::string>& names) {
    if (names.empty()) return "none";
    if (names.size() == 1) return names.front();
    return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

template <class List>
Result<std::uint32_t> find_by_name(const List& list, std::string_view name, const char* kind) {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < list.size(); ++i) {
        if (list[i].name == name) return i;
        names.push_back(list[i].name);
    }
    return error("there is no {} \"{}\" in the lab; write {}", kind, name, choice(names));
}

class Planner {
public:
    explicit Planner(const cluster::Cluster& cluster) : cluster_(cluster) {}

    Result<Plan> make() {
        if (cluster_.networks.empty())
            return error("the cluster file describes no network; write [[network]] and its name");
        for (const cluster::Host& host : cluster_.hosts) {
            if (host.name.size() > host_name_bytes_max)
                return error("the host name {} is too long; {} letters are the most", host.name, host_name_bytes_max);
            plan_.hosts.push_back({host.name, {}});
        }
        if (!cluster_.find_host(front_end)) plan_.hosts.push_back({front_end, {}});
        if (plan_.hosts.size() > hosts_max)
            return error("{} hosts are too many; a lab has {} at most", plan_.hosts.size(), hosts_max);
        for (std::uint32_t network = 0; network < cluster_.networks.size(); ++network)
            if (auto done = add_network(network); !done) return done.error();
        write_names();
        return std::move(plan_);
    }

private:
    Result<void> add_network(std::uint32_t index) {
        const cluster::Network& network = cluster_.networks[index];
        const auto wrong = [&](const Error& why) { return error("network \"{}\": {}", network.name, why.text()); };
        plan_.networks.push_back({network.name, fmt::format("n{}", index), network.mtu, network.bits_per_second});
        std::vector<IpAddress> members;
        for (const cluster::Host& host : cluster_.hosts) {
            if (!host.is_on(index)) continue;
            const auto address = IpAddress::parse(host.addresses[index]);
            if (!address)
                return wrong(error("{} of {} is no address that the lab can give", host.addresses[index], host.name));
            members.push_back(*address);
        }
        if (members.empty()) return {}; // a bridge that nobody is on
        const auto subnet = subnet_of(members);
        if (!subnet) return wrong(subnet.error());
        if (auto done = keep_apart(index, *subnet); !done) return done;
        std::size_t member = 0;
        for (std::uint32_t host = 0; host < cluster_.hosts.size(); ++host)
            if (cluster_.hosts[host].is_on(index)) add_port(index, host, members[member++], *subnet);
        if (plan_.hosts.size() > cluster_.hosts.size())
            add_port(index, static_cast<std::uint32_t>(cluster_.hosts.size()), highest_free(*subnet, members), *subnet);
        return {};
    }

    /// A host that is on two networks must be able to tell by an address which of them it belongs to.
    Result<void> keep_apart(std::uint32_t index, const Subnet& subnet) {
        for (const auto& [other, taken] : subnets_)
            if (subnet.overlaps(taken))
                return error("the networks \"{}\" ({}) and \"{}\" ({}) overlap; give one of them other addresses",
                             cluster_.networks[other].name, taken.text(), cluster_.networks[index].name, subnet.text());
        if (subnet.overlaps({*IpAddress::parse("127.0.0.0"), 8}))
            return error("network \"{}\": {} is every host's own; give it other addresses",
                         cluster_.networks[index].name, subnet.text());
        subnets_.emplace_back(index, subnet);
        return {};
    }

    void add_port(std::uint32_t network, std::uint32_t host, const IpAddress& address, const Subnet& subnet) {
        plan_.hosts[host].ports.push_back({.network = network,
                                           .name = fmt::format("n{}h{}", network, host),
                                           .interface = interface_name(cluster_.networks[network].name, network),
                                           .address = address.text(),
                                           .subnet_bits = subnet.bits});
    }

    /// A host's plain name is its address on the last network that it is on: the one that most others are on, too.
    void write_names() {
        plan_.names = "127.0.0.1 localhost\n::1 localhost\n";
        for (const PlannedHost& host : plan_.hosts)
            for (auto port = host.ports.rbegin(); port != host.ports.rend(); ++port)
                plan_.names +=
                    fmt::format("{} {}{}-{}\n", port->address, port == host.ports.rbegin() ? host.name + " " : "",
                                host.name, plan_.networks[port->network].name);
    }

    const cluster::Cluster& cluster_;
    Plan plan_;
    std::vector<std::pair<std::uint32_t, Subnet>> subnets_;
};

} // namespace

Result<Plan> Plan::make(const cluster::Cluster& cluster) { return Planner(cluster).make(); }

Result<std::uint32_t> Plan::find_host(std::string_view name) const { return find_by_name(hosts, name, "host"); }

Result<std::uint32_t> Plan::find_network(std::string_view name) const {
    return find_by_name(networks, name, "network");
}

Result<Port> Plan::find_port(std::string_view host, std::string_view network) const {
    const auto host_index = find_host(host);
    if (!host_index) return host_index.error();
    const auto network_index = find_network(network);
    if (!network_index) return network_index.error();
    std::vector<std::string> joined;
    for (const Port& port : hosts[*host_index].ports) {
        if (port.network == *network_index) return port;
        joined.push_back(networks[port.network].name);
    }
    return error("{} is not on {}; write {}", host, network, choice(joined));
}

std::string switch_links(const Plan& plan, const std::vector<pid_t>& hosts) {
    KUMI_ASSERT(hosts.size() == plan.hosts.size());
    std::string lines;
    for (const PlannedNetwork& network : plan.networks) {
        // Without snooping every multicast goes to all ports: no router here would ask which hosts want it.
        lines +=
            fmt::format("link add name {} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n", network.bridge);
        lines += fmt::format("link set dev {} mtu {} up\n", network.bridge, network.mtu);
    }
    for (std::size_t host = 0; host < hosts.size(); ++host)
        for (const Port& port : plan.hosts[host].ports) {
            const PlannedNetwork& network = plan.networks[port.network];
            lines += fmt::format("link add name {} mtu {} type veth peer name {} mtu {} netns {}\n", port.name,
                                 network.mtu, port.interface, network.mtu, hosts[host]);
            lines += fmt::format("link set dev {} master {} up\n", port.name, network.bridge);
        }
    return lines;
}

std::string host_links(const PlannedHost& host) {
    std::string lines = "link set dev lo up\n";
    for (const Port& port : host.ports) {
        // nodad: the address is usable at once, not after the system has asked around for a second.
        const bool is_ipv6 = port.address.find(':') != std::string::npos;
        lines += fmt::format("address add {}/{} dev {}{}\n", port.address, port.subnet_bits, port.interface,
                             is_ipv6 ? " nodad" : "");
        lines += fmt::format("link set dev {} up\n", port.interface);
        // When a cable comes out the kernel forgets its neighbours' addresses. Its question for them is lost while the
        // cable is out, and it would ask again after a second only: a cable that is back in would carry nothing until
        // then.
        lines += fmt::format("ntable change name {} dev {} retrans {}\n", is_ipv6 ? "ndisc_cache" : "arp_cache",
                             port.interface, neighbour_again_ms);
    }
    return lines;
}

std::string shaping(std::string_view interface, std::uint64_t bits_per_second, std::uint32_t mtu) {
    if (bits_per_second == 0) return fmt::format("qdisc replace dev {} root noqueue\n", interface);
    return fmt::format("qdisc replace dev {} root tbf rate {}bit burst {}b latency 20ms\n", interface, bits_per_second,
                       burst_bytes(bits_per_second, mtu));
}

std::string loss_rules(const PlannedNetwork& network, double percent) {
    constexpr long sides = 1'000'000;
    // Added first, so that there is one to delete.
    std::string rules = fmt::format("add table bridge {0}\ndelete table bridge {0}\n", network.bridge);
    const long losing = std::lround(percent / 100 * static_cast<double>(sides));
    if (losing == 0) return rules;
    const std::string dice = losing == sides ? "" : fmt::format("numgen random mod {} < {} ", sides, losing);
    // Of what comes in by a port of this network: a rule that asks for the bridge's own name needs a kernel that has
    // it.
    return rules + fmt::format("table bridge {0} {{\n chain loss {{\n  type filter hook forward priority 0;\n"
                               "  iifname \"{0}h*\" {1}counter drop\n }}\n}}\n",
                               network.bridge, dice);
}

} // namespace kumi::lab
