#include "kumi/group/plan/tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <queue>

namespace kumi::group {
namespace {

const std::vector<Pace> paces = {{1, 1}, {1, 1.5}, {0.3, 1.2}, {1, 2}, {0.2, 1.3}, {1, 6.1}, {0.7, 100}, {1e-3, 1e4}};

/// When the last of so many has it, if all do as children_of() says. A tree depends on the number of its members only.
class Walk {
public:
    explicit Walk(const Pace& pace) : pace_(pace) {}
    double time(Node members) {
        if (members < 2) return 0;
        if (const auto known = times_.find(members); known != times_.end()) return known->second;
        double last = 0;
        double sent = 0;
        for (const RankRange& part : children_of({0, members}, pace_)) {
            last = std::max(last, sent + pace_.hop + time(part.end - part.begin));
            sent += pace_.gap;
        }
        return times_[members] = last;
    }

private:
    Pace pace_;
    std::map<Node, double> times_;
};

double binomial_time(Node members, const Pace& pace) {
    double last = 0;
    double sent = 0;
    for (; members > 1; members -= members / 2, sent += pace.gap)
        last = std::max(last, sent + pace.hop + binomial_time(members / 2, pace));
    return last;
}

/// By trying: whoever has the message sends it on, and the next one to get it is whoever can get it first.
std::vector<double> best_times(Node members, const Pace& pace) {
    std::priority_queue<double, std::vector<double>, std::greater<>> arrivals;
    std::vector<double> times{0, 0};
    arrivals.push(pace.hop);
    while (times.size() <= members) {
        const double time = arrivals.top();
        arrivals.pop();
        times.push_back(time);
        arrivals.push(time + pace.gap);
        arrivals.push(time + pace.hop);
    }
    return times;
}

void expect_parts(RankRange whole, const Pace& pace) {
    Node end = whole.end;
    for (const RankRange& part : children_of(whole, pace)) {
        ASSERT_EQ(part.end, end);
        ASSERT_LT(part.begin, part.end);
        end = part.begin;
    }
    ASSERT_EQ(end, std::min(whole.begin + 1, whole.end));
}

TEST(Tree, one_alone_sends_to_nobody) {
    EXPECT_TRUE(children_of({5, 6}, {}).empty());
    EXPECT_TRUE(children_of({5, 5}, {}).empty());
    EXPECT_EQ(time_of(1, {}), 0);
    EXPECT_EQ(time_of(0, {}), 0);
    EXPECT_EQ(children_of({5, 7}, {}), (std::vector<RankRange>{{6, 7}}));
    EXPECT_EQ(time_of(2, {.gap = 2, .hop = 3}), 3);
}

TEST(Tree, children_share_all_but_the_root_in_runs) {
    for (const Pace& pace : paces) {
        for (Node members = 1; members <= 200; ++members) expect_parts({7, 7 + members}, pace);
        for (const Node members : {1000u, 4097u, 100'000u}) expect_parts({0, members}, pace);
    }
}

TEST(Tree, the_part_of_a_child_is_what_it_would_be_anywhere) {
    for (const Pace& pace : paces) {
        const std::vector<RankRange> here = children_of({0, 77}, pace);
        std::vector<RankRange> there = children_of({1000, 1077}, pace);
        for (RankRange& part : there) part.begin -= 1000, part.end -= 1000;
        EXPECT_EQ(here, there);
    }
}

TEST(Tree, takes_the_time_that_it_says) {
    for (const Pace& pace : paces) {
        SCOPED_TRACE(pace.hop);
        Walk walk(pace);
        for (Node members = 1; members <= 300; ++members)
            ASSERT_NEAR(walk.time(members), time_of(members, pace), 1e-6 * pace.hop) << members;
        for (const Node members : {1000u, 4096u, 4097u, 100'000u})
            ASSERT_NEAR(walk.time(members), time_of(members, pace), 1e-6 * pace.hop) << members;
    }
}

TEST(Tree, no_other_is_sooner) {
    for (const Pace& pace : paces) {
        SCOPED_TRACE(pace.hop);
        const std::vector<double> best = best_times(2000, pace);
        for (Node members = 1; members <= 2000; members += 1 + members / 100)
            ASSERT_NEAR(time_of(members, pace), best[members], 1e-6 * pace.hop) << members;
        for (const Node members : {2u, 3u, 16u, 100u, 5000u, 100'000u}) {
            const double slack = 1e-6 * pace.hop;
            ASSERT_LE(time_of(members, pace), binomial_time(members, pace) + slack) << members;
            ASSERT_LE(time_of(members, pace), pace.hop + (members - 2) * pace.gap + slack) << members;
        }
    }
}

TEST(Tree, without_overlap_it_takes_as_many_rounds_as_a_binomial_tree) {
    for (Node members = 2; members <= 5000; members += 1 + members / 50)
        ASSERT_EQ(time_of(members, {1, 1}), std::bit_width(members - 1)) << members;
    EXPECT_EQ(time_of(1u << 31, {1, 1}), 31);
    EXPECT_EQ(time_of(std::numeric_limits<Node>::max(), {1, 1}), 32);
    EXPECT_EQ(children_of({0, 16}, {1, 1}), (std::vector<RankRange>{{8, 16}, {4, 8}, {2, 4}, {1, 2}}));
}

TEST(Tree, with_long_hops_it_is_flat) {
    const std::vector<RankRange> children = children_of({0, 100}, {.gap = 1e-9, .hop = 1});
    ASSERT_EQ(children.size(), 99u);
    EXPECT_EQ(children.front(), (RankRange{99, 100}));
    EXPECT_EQ(children_of({0, 1000}, {.gap = 1e-300, .hop = 1e300}).size(), 999u);
}

TEST(Tree, a_pace_that_makes_no_sense_is_one) {
    const std::vector<RankRange> binomial = children_of({0, 100}, {1, 1});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double bad : {0.0, -1.0, nan, -nan, std::numeric_limits<double>::infinity()}) {
        EXPECT_EQ(children_of({0, 100}, {bad, bad}), binomial);
        EXPECT_EQ(time_of(100, {bad, bad}), 7);
        EXPECT_EQ(time_of(100, {bad, 4}), time_of(100, {1, 4}));
    }
    EXPECT_EQ(children_of({0, 100}, {5, 1}), binomial);
    EXPECT_EQ(time_of(100, {5, 1}), 7);
}

} // namespace
} // namespace kumi::group
