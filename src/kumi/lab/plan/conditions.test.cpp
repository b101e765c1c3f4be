#include "kumi/lab/plan/conditions.hpp"

#include <gtest/gtest.h>

namespace kumi::lab {
namespace {

Plan small_plan() {
    Plan plan;
    plan.networks = {{"fast", "n0", 9000, 0}, {"lan", "n1", 1500, 100'000'000}};
    plan.hosts = {{"a0", {{.network = 0, .address = "10.0.0.1"}, {.network = 1, .address = "10.0.1.1"}}},
                  {"front", {{.network = 1, .address = "10.0.1.254"}}}};
    return plan;
}

TEST(Conditions, are_those_of_the_plan_at_first) {
    const Plan plan = small_plan();
    EXPECT_EQ(describe(plan, Conditions(plan), {11, 12}), "network fast: no limit, mtu 9000\n"
                                                          "network lan: 100mbit, mtu 1500\n"
                                                          "host a0    pid 11  fast 10.0.0.1  lan 10.0.1.1\n"
                                                          "host front pid 12  lan 10.0.1.254\n");
}

TEST(Conditions, show_what_was_done_and_forget_what_was_undone) {
    const Plan plan = small_plan();
    Conditions conditions(plan);
    conditions.apply({.kind = Change::Kind::link, .host = 0, .network = 1, .on = false});
    conditions.apply({.kind = Change::Kind::mute, .host = 0, .network = 0, .on = true});
    conditions.apply({.kind = Change::Kind::loss, .network = 0, .loss_percent = 0.5});
    conditions.apply({.kind = Change::Kind::rate, .network = 1, .bits_per_second = 64'000});
    EXPECT_EQ(describe(plan, conditions, {11, 0}), "network fast: no limit, mtu 9000, loses 0.5 %\n"
                                                   "network lan: 64kbit, mtu 1500\n"
                                                   "host a0    pid 11  fast 10.0.0.1 (mute)  lan 10.0.1.1 (down)\n"
                                                   "host front has died  lan 10.0.1.254\n");
    conditions.apply({.kind = Change::Kind::link, .host = 0, .network = 1, .on = true});
    conditions.apply({.kind = Change::Kind::mute, .host = 0, .network = 0, .on = false});
    EXPECT_TRUE(conditions.down.empty() && conditions.mute.empty());
}

TEST(Conditions, frames_are_looked_at_one_by_one_where_they_are_limited_or_lost) {
    const Plan plan = small_plan();
    Conditions conditions(plan);
    EXPECT_FALSE(conditions.by_the_frame(0));
    EXPECT_TRUE(conditions.by_the_frame(1));
    conditions.apply({.kind = Change::Kind::loss, .network = 0, .loss_percent = 1});
    EXPECT_TRUE(conditions.by_the_frame(0));
}

TEST(Conditions, rates_are_shown_in_the_largest_unit_that_they_reach) {
    const Plan plan = small_plan();
    Conditions conditions(plan);
    for (const auto& [bits, text] : {std::pair{1'000'000'000ul, "1gbit"},
                                     {999'000'000ul, "999mbit"},
                                     {1'000'000ul, "1mbit"},
                                     {999'000ul, "999kbit"},
                                     {2'500'000'000ul, "2.5gbit"}}) {
        conditions.apply({.kind = Change::Kind::rate, .network = 1, .bits_per_second = bits});
        EXPECT_NE(describe(plan, conditions, {1, 2}).find(fmt::format("network lan: {}, mtu 1500\n", text)),
                  std::string::npos)
            << describe(plan, conditions, {1, 2});
    }
}

TEST(Conditions, a_cable_and_its_silence_are_a_hosts_own_on_one_network) {
    const Plan plan = small_plan();
    Conditions conditions(plan);
    conditions.apply({.kind = Change::Kind::link, .host = 1, .network = 1, .on = false});
    conditions.apply({.kind = Change::Kind::link, .host = 1, .network = 1, .on = false});
    EXPECT_TRUE(conditions.down.contains({1, 1}));
    EXPECT_FALSE(conditions.down.contains({0, 1}) || conditions.down.contains({1, 0}));
    EXPECT_TRUE(conditions.mute.empty());
    conditions.apply({.kind = Change::Kind::mute, .host = 1, .network = 1, .on = true});
    conditions.apply({.kind = Change::Kind::link, .host = 1, .network = 1, .on = true});
    EXPECT_TRUE(conditions.down.empty());
    EXPECT_TRUE(conditions.mute.contains({1, 1})) << "it stays mute when its cable is back";
    conditions.apply({.kind = Change::Kind::mute, .host = 1, .network = 1, .on = false});
    EXPECT_TRUE(conditions.mute.empty());
}

TEST(Conditions, frames_are_counted_one_by_one_while_some_are_lost_or_the_rate_is_limited) {
    const Plan plan = small_plan();
    Conditions conditions(plan);
    EXPECT_FALSE(conditions.by_the_frame(0));
    EXPECT_TRUE(conditions.by_the_frame(1)) << "it has a rate";
    conditions.apply({.kind = Change::Kind::loss, .network = 0, .loss_percent = 0.1});
    EXPECT_TRUE(conditions.by_the_frame(0));
    conditions.apply({.kind = Change::Kind::loss, .network = 0, .loss_percent = 0});
    conditions.apply({.kind = Change::Kind::rate, .network = 1, .bits_per_second = 0});
    EXPECT_FALSE(conditions.by_the_frame(0) || conditions.by_the_frame(1));
}

} // namespace
} // namespace kumi::lab
