#include "simulated/machine.hpp"

#include <simgrid/s4u.hpp>
#include <string>

namespace kumi::bench {
namespace {

namespace sg = simgrid::s4u;

constexpr double port_bytes_s = 10e9;   // each way
constexpr double port_seconds = 0.4e-6; // to the middle of the group; 1.2 us from end to end, with the time of MPI
constexpr double group_link_seconds = 0.3e-6;
constexpr double own_bytes_s = 40e9; // from a node to itself
constexpr double own_seconds = 0.1e-6;

struct Group {
    sg::NetZone* zone;
    simgrid::kernel::routing::NetPoint* middle;
};

Group build_group(int number, int nodes, sg::NetZone* machine, std::vector<sg::Host*>& hosts) {
    auto* const zone = sg::create_star_zone("group" + std::to_string(number));
    zone->set_parent(machine);
    auto* const middle = zone->create_router("middle" + std::to_string(number));
    for (int i = 0; i < nodes; ++i) {
        const std::string name = "node" + std::to_string(hosts.size());
        auto* const host = zone->create_host(name, 1e9);
        auto* const port = zone->create_split_duplex_link(name + "_port", port_bytes_s)->set_latency(port_seconds);
        auto* const own = zone->create_link(name + "_own", own_bytes_s)
                              ->set_latency(own_seconds)
                              ->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
        zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {{port, sg::LinkInRoute::Direction::UP}},
                        true);
        zone->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr, {sg::LinkInRoute(own)}, false);
        hosts.push_back(host);
    }
    zone->seal();
    return {zone, middle};
}

} // namespace

std::vector<sg::Host*> build(const Machine& machine) {
    auto* const whole = sg::create_full_zone(std::string(machine.name));
    std::vector<sg::Host*> hosts;
    std::vector<Group> groups;
    for (int number = 0; number < machine.groups; ++number) {
        const bool is_last = number + 1 == machine.groups;
        groups.push_back(
            build_group(number, machine.nodes_in_group + (is_last ? machine.spare_nodes : 0), whole, hosts));
    }
    for (const Group& from : groups) {
        for (const Group& to : groups) {
            if (from.zone == to.zone) continue;
            const std::string name = from.zone->get_name() + "_to_" + to.zone->get_name();
            auto* const link = whole->create_link(name, machine.group_gb * 1e9)->set_latency(group_link_seconds);
            whole->add_route(from.zone->get_netpoint(), to.zone->get_netpoint(), from.middle, to.middle,
                             {sg::LinkInRoute(link)}, false);
        }
    }
    whole->seal();
    return hosts;
}

} // namespace kumi::bench
