// Thousands of random schedules over the reliable protocol; see simulation/seeds.hpp for others than the usual ones.

#include "simulation/reliable_schedule.hpp"
#include "simulation/seeds.hpp"

#include <gtest/gtest.h>

namespace kumi::simulation {
namespace {

#if defined(KUMI_ADDRESS_SANITIZER) || defined(KUMI_THREAD_SANITIZER)
constexpr std::uint64_t schedules_usually = 40;
#else
constexpr std::uint64_t schedules_usually = 2000;
#endif

void run(std::uint64_t seed) {
    ReliableSchedule schedule(seed);
    if (const auto failure = schedule.run()) ADD_FAILURE() << *failure << "\n  " << schedule.describe();
}

/// Every fourth seed, so that four tests share the work.
void run_quarter(std::uint64_t quarter) {
    for_each_seed(schedules_usually, [&](std::uint64_t seed) {
        if (seed % 4 == quarter) run(seed);
    });
}

TEST(Reliable, messages_arrive_once_in_order_and_whole_in_the_first_quarter_of_schedules) { run_quarter(0); }
TEST(Reliable, messages_arrive_once_in_order_and_whole_in_the_second_quarter_of_schedules) { run_quarter(1); }
TEST(Reliable, messages_arrive_once_in_order_and_whole_in_the_third_quarter_of_schedules) { run_quarter(2); }
TEST(Reliable, messages_arrive_once_in_order_and_whole_in_the_fourth_quarter_of_schedules) { run_quarter(3); }

} // namespace
} // namespace kumi::simulation
