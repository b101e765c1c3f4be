#pragma once

// The cluster file, and the short form of it on a command line.
//
//   silence = 60             # seconds until a node that answers by no network is lost; 0: never
//
//   [[network]]              # the best first, or by `priority = 10`, more is better
//   name = "myrinet"
//   device = "udp"           # what drives it
//   letter = "M"             # in maps; the name's first letter unless told
//   encrypt = false
//   topology = "all"         # or "chain", "ring", "tree", "torus 4x2": only neighbours talk directly
//   options = { buffer = "4M" }
//
//   [[host]]
//   name = "a[0-3]"          # four hosts
//   slots = 2                # nodes that each may run
//   address.myrinet = "10.77.1.[1-4]"

#include "kumi/cluster/cluster.hpp"

#include "kumi/base/result.hpp"

#include <string>
#include <string_view>

namespace kumi::cluster {

/// Reads a cluster file. Errors start with "FILE:LINE:COLUMN: " and say what to write instead.
Result<Cluster> read_cluster_file(const std::string& path);
/// Parses a text; `name` is the name of the file in errors.
Result<Cluster> parse_cluster(std::string_view text, const std::string& name);

/// Parses a list of hosts and their slots, such as "a,b:2,c[0-3]:4". It names no networks.
Result<Cluster> parse_host_list(std::string_view text);

} // namespace kumi::cluster
