#pragma once

// A job in one thread that loses one node at some time, as the seed says.

#include "engine/one_thread.hpp"
#include "group/node.hpp"

#include <random>

namespace kumi::group_test {

class OneLoss {
public:
    OneLoss(std::uint64_t seed, const engine_test::OneThread::Options& options)
        : fate(seed + 1000), nodes(options.nodes), victim(static_cast<Node>(fate() % nodes)), when(fate() % 30),
          world(options), staying_(nodes) {
        world.steps_between = 150;
        world.meanwhile = [this] {
            if (++steps_ == when) world.lose(victim);
        };
    }
    OneLoss(const OneLoss&) = delete;
    OneLoss& operator=(const OneLoss&) = delete;

    std::mt19937_64 fate;
    const Node nodes;
    const Node victim;
    const std::uint64_t when;
    engine_test::OneThread world;

    /// A node that has done its part stays until all others have done theirs, or it is lost.
    void stay(const Channel& channel, Member& member) {
        --staying_;
        member.engine->wait_until([&] { return staying_ == 0 || world.is_lost(channel.self()); });
    }
    std::string text() const { return fmt::format("lost {} at {}", victim, when); }

private:
    std::uint64_t steps_ = 0;
    std::size_t staying_; // nodes that have not done their part
};

} // namespace kumi::group_test
