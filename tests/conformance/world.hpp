#pragma once

// A world is a way of having nodes: a device, opened at all its ends, each end driven by a thread or a process of its
// own. The conformance suite runs in every world; a new device adds one here.

#include "kumi/base/clock.hpp"
#include "kumi/pm/channel.hpp"
#include "loopback/sanitized.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kumi::conformance {

using Body = std::function<void(pm::Channel&)>;

struct World {
    std::string name;
    /// Opens `nodes` ends, runs `body` on all at once, and waits. A failed expectation in any of them fails the test.
    std::function<void(pm::Node nodes, const Body& body)> run;
    /// Which optional powers every channel of this world has: pm::JointSleep and pm::RemoteMemory.
    bool has_joint_sleep = false;
    bool has_remote_memory = false;
    /// As run(), but each node is a process that opens its end itself, and the processes of `victims` are killed when
    /// their body returns. Empty where nodes are threads of one process.
    std::function<void(pm::Node nodes, const std::vector<pm::Node>& victims, const Body& body)> run_and_kill = {};
    /// A node whose channel closes, or that dies, is lost to the others within this time, also to those that send
    /// nothing to it.
    Duration told_max = std::chrono::seconds(1);
    /// What a node has sent arrives though it is killed at once. Networks have to repeat what gets lost.
    bool delivers_for_the_dead = false;
};

/// For test names.
inline void PrintTo(const World& world, std::ostream* out) { *out << world.name; }

/// Every world there is.
std::vector<World> worlds();

/// Nothing in a test may take longer: a hang is a failure that says where.
inline Instant deadline() { return now() + std::chrono::seconds(sanitized ? 60 : 20); }

/// The seed of this run's random choices, as simulation/seeds.hpp has it. Printed when a test fails.
std::uint64_t seed();

} // namespace kumi::conformance
