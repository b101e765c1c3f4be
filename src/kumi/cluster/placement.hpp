#pragma once

// Decides on which host each node runs. As in the paper, a job of four nodes on hosts with four processors can be
// placed in three ways: one node on each of four hosts, two on each of two, or four on one.

#include "kumi/cluster/cluster.hpp"

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::cluster {

/// Where one node runs.
struct Seat {
    HostIndex host = 0;
    std::uint32_t slot = 0; // number of the node on its host

    friend bool operator==(const Seat&, const Seat&) = default;
};

/// The seats of all nodes, by node. On each host slots are in the order of nodes. place() numbers the nodes of a host
/// consecutively; other launchers may not.
using Placement = std::vector<Seat>;

class Policy {
public:
    static Policy pack() noexcept { return Policy(Kind::pack, 0); }     // fill one host, then the next
    static Policy spread() noexcept { return Policy(Kind::spread, 0); } // as evenly as slots allow
    static Policy per_host(std::uint32_t count) noexcept { return Policy(Kind::per_host, count); }
    /// Parses "pack", "spread" or "2-per-host".
    static Result<Policy> parse(std::string_view text);

    std::string text() const;

private:
    friend Result<Placement> place(const Cluster& cluster, std::uint32_t nodes, Policy policy);
    enum class Kind : std::uint8_t { pack, spread, per_host };
    Policy(Kind kind, std::uint32_t count) noexcept : kind_(kind), count_(count) {}

    Kind kind_;
    std::uint32_t count_; // per host
};

/// Places `nodes` nodes. An error if there are not enough slots.
Result<Placement> place(const Cluster& cluster, std::uint32_t nodes, Policy policy);

} // namespace kumi::cluster
