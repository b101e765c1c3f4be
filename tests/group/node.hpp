#pragma once

// A node of a test: an engine with groups on an end of some world's channel.

#include "engine/node.hpp"

#include "kumi/group/gather.hpp"
#include "kumi/group/group.hpp"
#include "kumi/group/groups.hpp"

#include <functional>
#include <random>

namespace kumi::group_test {

using conformance::World;
using engine_test::deadline;
using engine_test::exchange;
using engine_test::expect_code;
using engine_test::expect_error;
using engine_test::good;
using engine_test::is_pattern;
using engine_test::pattern;
using engine_test::scale;
using engine_test::seed;
using engine_test::settle;
using engine_test::Setup;
using engine_test::worlds;
using group::Arrival;
using group::Groups;
using group::Set;
using group::Topology;
using pm::Channel;
using pm::Node;

/// Handlers are added to `handlers` before open().
struct Member {
    Handlers handlers;
    std::optional<Groups> groups; // from open() on
    std::optional<engine::Engine> engine;

    /// Without costs they are measured.
    void open(Channel& channel, const Setup& setup = {}, Topology topology = {},
              std::optional<group::Costs> costs = group::Costs{}, std::optional<group::Way> way = {}) {
        auto dispatcher = good(engine::Dispatcher::open(channel, std::move(handlers), setup.options()));
        groups.emplace(*dispatcher, std::move(topology), group::Settings{costs, way});
        engine.emplace(std::move(dispatcher));
        engine->dispatcher().loop().start(); // not before: handlers reach their engine
    }
    ~Member() { engine.reset(); } // before the groups
};

/// All nodes meet, but not at a barrier: a barrier of all nodes is the same as that of a group of all nodes.
inline void meet(Member& member, engine_test::Place where = engine_test::Place::here()) {
    good(member.engine->memory().segment<std::uint64_t>(1), where);
}

/// A test that runs in every world, with some nodes that have groups.
class GroupTest : public engine_test::EngineTest {
protected:
    /// Each node is a member of a group of all nodes, and the nodes settle after the body. What the body has lent to a
    /// call, such as a buffer, must not be in use any more when the body returns.
    static void run_group(Node nodes, const std::function<void(Member&, group::Group&)>& body) {
        run(nodes, [&](Channel& channel) {
            Member member;
            member.open(channel);
            group::Group all = good(member.groups->group(Set::range(0, nodes)));
            body(member, all);
            settle(*member.engine);
        });
    }
};

inline Set random_set(std::mt19937_64& random, Node nodes) {
    Set set;
    const auto chance = 1 + random() % 4;
    for (Node node = 0; node < nodes; ++node)
        if (random() % 4 < chance) set.add(node);
    if (set.empty()) set.add(static_cast<Node>(random() % nodes));
    return set;
}

/// Small ones mostly; some that go whole, and some that go in blocks.
inline std::size_t random_size(std::mt19937_64& random, std::size_t largest) {
    switch (random() % 8) {
    case 0: return 0;
    case 1: return random() % 20'000;
    case 2: return random() % (largest + 1);
    default: return random() % 200;
    }
}

} // namespace kumi::group_test
