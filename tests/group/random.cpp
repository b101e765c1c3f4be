// Jobs at random, in every world: KUMI_SEED=N is the first of the seeds, of which there are KUMI_SEEDS.

#include "group/random_job.hpp"

#include <cstdlib>

namespace kumi::group_test {
namespace {

class RandomGroups : public GroupTest {
protected:
    static constexpr Node nodes = 6;

    static std::uint64_t seeds() {
        const char* const wanted = std::getenv("KUMI_SEEDS");
        return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 2;
    }
    static void run_job(const RandomJob& job) {
        run(nodes, [&](Channel& channel) {
            Participant(channel, job, {.keepalive_every = std::chrono::milliseconds(50)}).run();
        });
    }
};

TEST_P(RandomGroups, all_arrives_once_and_in_order_and_is_answered) {
    for (std::uint64_t i = 0; i < seeds(); ++i) {
        const testing::ScopedTrace trace(__FILE__, __LINE__, "seed " + std::to_string(seed() + i));
        run_job(RandomJob(seed() + i, nodes, 25, 100'000));
        if (testing::Test::HasFailure()) return;
    }
}

/// In worlds whose nodes may leave. In shared memory nobody is ever known to be gone: there, whoever starts nodes ends
/// the job. And who relays does not leave.
class RandomLosses : public RandomGroups {};

std::vector<World> worlds_of_leavers() {
    std::vector<World> fitting = worlds();
    std::erase_if(fitting, [](const World& world) {
        return !world.name.starts_with("udp") && world.name != "composite_networks";
    });
    return fitting;
}

TEST_P(RandomLosses, who_leaves_is_missing_and_all_others_have_it) {
    for (std::uint64_t i = 0; i < seeds(); ++i) {
        const testing::ScopedTrace trace(__FILE__, __LINE__, "seed " + std::to_string(seed() + i));
        RandomJob job(seed() + i, nodes, 15, 100'000);
        std::mt19937_64 random(seed() + i);
        job.leavers = {static_cast<Node>(random() % nodes)};
        job.leave_after = random() % 15;
        run_job(job);
        if (testing::Test::HasFailure()) return;
    }
}

KUMI_ENGINE_WORLDS(RandomGroups);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RandomLosses); // of MPI's ranks none may leave
INSTANTIATE_TEST_SUITE_P(Worlds, RandomLosses, testing::ValuesIn(worlds_of_leavers()),
                         [](const testing::TestParamInfo<World>& world) { return world.param.name; });

} // namespace
} // namespace kumi::group_test
