#pragma once

// The cluster with its nodes and their routes, drawn for people or written for programs.

#include "kumi/cluster/routing.hpp"

#include <string>

namespace kumi::tools {

/// For a terminal: networks, hosts, the routing table in the paper's notation, and why other ways were not taken.
std::string map_as_text(const cluster::Cluster& cluster, const cluster::Routing& routing);
/// Everything, with every route and every way that was rejected.
std::string map_as_json(const cluster::Cluster& cluster, const cluster::Routing& routing);
/// A picture: hosts on their networks, and the table in the networks' colours.
std::string map_as_svg(const cluster::Cluster& cluster, const cluster::Routing& routing);
/// One route, with all that was considered.
std::string describe_route(const cluster::Cluster& cluster, const cluster::Routing& routing, cluster::Node from,
                           cluster::Node to);

} // namespace kumi::tools
