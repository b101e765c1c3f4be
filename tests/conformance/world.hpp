#pragma once

// A world is a way of having nodes: a device, opened at all its ends, each end driven by a thread or a process of its
// own. The conformance suite runs in every world; a new device adds one here.

#include "kumi/base/clock.hpp"
#include "kumi/pm/channel.hpp"
#include "sanitized.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace kumi::conformance {

using Body = std::function<void(pm::Channel&)>;

struct World {
    std::string name;
    /// Opens `nodes` ends, runs `body` on all at once, and waits. A failed expectation in any of them fails the test.
    std::function<void(pm::Node nodes, const Body& body)> run;
    /// Which optional powers every channel of this world has: pm::JointSleep and pm::RemoteMemory.
    bool has_joint_sleep = false;
    bool has_remote_memory = false;
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
