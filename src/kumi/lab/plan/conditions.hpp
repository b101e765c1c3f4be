#pragma once

// The changes that were made to a lab's networks since it came up. Pure.

#include "kumi/lab/plan/plan.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kumi::lab {

/// One change. Plain bytes: the process that carried it out writes it to the keeper.
struct Change {
    enum class Kind : std::uint8_t { link, mute, loss, rate } kind = Kind::link;
    std::uint32_t host = 0; // of link and mute
    std::uint32_t network = 0;
    bool on = false;                   // the link is up, the port is mute
    double loss_percent = 0;           // of loss
    std::uint64_t bits_per_second = 0; // of rate
};

struct Conditions {
    std::set<std::pair<std::uint32_t, std::uint32_t>> down; // host and network
    std::set<std::pair<std::uint32_t, std::uint32_t>> mute;
    std::vector<double> loss_percent; // by network, as the next
    std::vector<std::uint64_t> bits_per_second;

    explicit Conditions(const Plan& plan);
    void apply(const Change& change);

    /// Whether that network counts or drops frames one by one. Then none may be longer than a wire's.
    bool by_the_frame(std::uint32_t network) const;
};

/// For people: hosts with their addresses, networks with what is wrong with them. `pids` are those of the hosts' first
/// processes, 0 for a host that has died.
std::string describe(const Plan& plan, const Conditions& conditions, const std::vector<pid_t>& pids);

} // namespace kumi::lab
