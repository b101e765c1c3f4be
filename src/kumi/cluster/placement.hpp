#pragma once

// Which node runs where. The paper leaves a job of four on hosts with four processors three ways: one on each of four
// hosts, two on each of two, four on one.

#include "kumi/cluster/cluster.hpp"

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::cluster {

/// One node's place.
struct Seat {
    HostIndex host = 0;
    std::uint32_t slot = 0; // its number among the nodes of the host

    friend bool operator==(const Seat&, const Seat&) = default;
};

/// By node. Slots of a host are in the order of its nodes. place() gives the nodes of a host numbers in a row; other
/// launchers may not.
using Placement = std::vector<Seat>;

class Policy {
public:
    static Policy pack() noexcept { return Policy(Kind::pack, 0); }     // fill a host, then the next
    static Policy spread() noexcept { return Policy(Kind::spread, 0); } // as evenly as slots allow
    static Policy per_host(std::uint32_t count) noexcept { return Policy(Kind::per_host, count); }
    /// "pack", "spread", "2-per-host".
    static Result<Policy> parse(std::string_view text);

    std::string text() const;

private:
    friend Result<Placement> place(const Cluster& cluster, std::uint32_t nodes, Policy policy);
    enum class Kind : std::uint8_t { pack, spread, per_host };
    Policy(Kind kind, std::uint32_t count) noexcept : kind_(kind), count_(count) {}

    Kind kind_;
    std::uint32_t count_; // per host
};

/// Seats `nodes` nodes; refuses if there are not enough slots.
Result<Placement> place(const Cluster& cluster, std::uint32_t nodes, Policy policy);

} // namespace kumi::cluster
