#include "kumi/device/composite/letters/path_search.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

TEST(PathSearch, seeks_get_wider_and_rarer_while_nothing_is_found) {
    PathSearch search;
    const Instant start{1h};
    EXPECT_FALSE(search.is_on());
    EXPECT_EQ(search.seek(start, 5), PathSearch::first_fan);
    search.on_sent(start);
    EXPECT_EQ(search.since(), start);
    EXPECT_FALSE(search.seek(start + PathSearch::again_min - 1ns, 6));
    EXPECT_EQ(search.seek(start + PathSearch::again_min, 6), PathSearch::first_fan + 1);
    search.on_sent(start + 2s);
    EXPECT_FALSE(search.seek(start + 2s + 600ms, 7)) << "a quarter of 2.6 s is 650 ms";
    EXPECT_TRUE(search.seek(start + 2s + 700ms, 7));
    for (int i = 0; i < 100; ++i) search.on_sent(start + 1h);
    EXPECT_FALSE(search.seek(start + 1h + 999ms, 8));
    EXPECT_EQ(search.seek(start + 1h + 1s, 8), PathSearch::fan_max);
}

TEST(PathSearch, answers_to_seeks_of_an_earlier_search_do_not_count) {
    PathSearch search;
    search.seek(Instant{1h}, 5);
    search.on_sent(Instant{1h});
    search.end();
    EXPECT_FALSE(search.is_on());
    search.seek(Instant{2h}, 9);
    EXPECT_FALSE(search.is_answer(8));
    EXPECT_TRUE(search.is_answer(9));
    EXPECT_TRUE(search.is_answer(10));
}

TEST(PathSearch, a_restart_counts_only_while_a_search_is_on) {
    PathSearch search;
    search.restart(Instant{2h});
    EXPECT_EQ(search.since(), never);
    search.seek(Instant{1h}, 0);
    search.restart(Instant{2h});
    EXPECT_EQ(search.since(), Instant{2h});
}

TEST(PathSearch, a_shorter_path_is_sought_half_as_often_each_time) {
    PathSearch search;
    Instant clock{1h};
    for (const Duration pause : {2s, 4s, 8s, 16s, 32s, 32s}) {
        EXPECT_EQ(search.seek_shorter(clock, 1), PathSearch::fan_max);
        search.on_sent(clock);
        EXPECT_FALSE(search.seek_shorter(clock + pause - 1ns, 1));
        clock += pause;
    }
    EXPECT_FALSE(search.is_on()) << "the path that is in use works";
}

TEST(SeenSeeks, a_seek_is_news_again_only_by_a_shorter_way) {
    SeenSeeks seen;
    EXPECT_TRUE(seen.is_news(3, 2));
    EXPECT_FALSE(seen.is_news(3, 2));
    EXPECT_FALSE(seen.is_news(3, 3));
    EXPECT_TRUE(seen.is_news(3, 1));
    EXPECT_FALSE(seen.is_news(3, 2));
    for (Sequence other = 10; other < 18; ++other) EXPECT_TRUE(seen.is_news(other, 1));
    EXPECT_TRUE(seen.is_news(3, 2)) << "forgotten by now";
}

} // namespace
} // namespace kumi::device::composite
