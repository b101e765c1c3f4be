// Thousands of random schedules over the reliable protocol. KUMI_SEEDS=<count> runs more or fewer, KUMI_SEED=<n> one.

#include "simulation/reliable_schedule.hpp"

#include <cstdlib>
#include <gtest/gtest.h>

namespace kumi::simulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t schedules_usually = 100;
#else
constexpr std::uint64_t schedules_usually = 4000;
#endif

std::optional<std::uint64_t> number_from(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::strtoull(text, nullptr, 10));
}

void run(std::uint64_t seed) {
    ReliableSchedule schedule(seed);
    if (const auto failure = schedule.run())
        ADD_FAILURE() << *failure << "\n  replay: KUMI_SEED=" << seed << " simulation_tests\n  " << schedule.describe();
}

/// Every fourth seed, so that four tests share the work.
void run_quarter(std::uint64_t quarter) {
    if (const auto one = number_from("KUMI_SEED")) {
        if (*one % 4 == quarter) run(*one);
        return;
    }
    const std::uint64_t seeds = number_from("KUMI_SEEDS").value_or(schedules_usually);
    for (std::uint64_t seed = quarter; seed < seeds && !testing::Test::HasFailure(); seed += 4) run(seed);
}

TEST(Reliable, messages_arrive_once_in_order_and_whole_in_the_first_quarter_of_schedules) { run_quarter(0); }
TEST(Reliable, messages_arrive_once_in_order_and_whole_in_the_second_quarter_of_schedules) { run_quarter(1); }
TEST(Reliable, messages_arrive_once_in_order_and_whole_in_the_third_quarter_of_schedules) { run_quarter(2); }
TEST(Reliable, messages_arrive_once_in_order_and_whole_in_the_fourth_quarter_of_schedules) { run_quarter(3); }

} // namespace
} // namespace kumi::simulation
