#pragma once

// Machines that SimGrid simulates: dragonflies of groups of nodes. Inside a group, adaptive routing spreads packets
// over all links, which together are fast enough: only the ports of nodes are a bottleneck. Between two groups there is
// one link, which may be slow.

#include <array>
#include <string_view>
#include <vector>

namespace simgrid::s4u {
class Host;
} // namespace simgrid::s4u

namespace kumi::bench {

struct Machine {
    std::string_view name;
    int groups;
    int nodes_in_group;
    double group_gb;     // GB/s between two groups
    int spare_nodes = 0; // in the last group, for masters that are no members

    int member_nodes() const { return groups * nodes_in_group; }
    int nodes() const { return member_nodes() + spare_nodes; }
};

/// Three machines: the paper's Cray XC30, of whose 360 nodes, which are one group, 256 took part; a machine of many
/// groups joined by fast links; a machine whose links between groups one node alone can fill.
inline constexpr std::array machines{Machine{"xc30", 1, 256, 0, 1}, Machine{"large", 16, 256, 100},
                                     Machine{"thin", 4, 256, 10}};

/// Makes the machine in the present simulation. Nodes are in the order of groups.
std::vector<simgrid::s4u::Host*> build(const Machine& machine);

} // namespace kumi::bench
