#include "kumi/group/table/sequences.hpp"

#include <gtest/gtest.h>
#include <random>
#include <set>

namespace kumi::group {
namespace {

TEST(Sequences, each_is_seen_once_in_whatever_order_they_come) {
    Sequences sequences;
    std::mt19937_64 random(1);
    std::set<std::uint64_t> model;
    std::uint64_t base = 1;
    for (int i = 0; i < 20'000; ++i) {
        base += random() % 3;
        const std::uint64_t sequence = base + random() % (Sequences::window / 2); // no master has more under way
        ASSERT_EQ(sequences.was_seen(sequence), model.contains(sequence)) << sequence;
        sequences.add(sequence);
        model.insert(sequence);
        ASSERT_TRUE(sequences.was_seen(sequence));
    }
}

TEST(Sequences, what_the_window_has_left_behind_counts_as_seen) {
    Sequences sequences;
    sequences.add(Sequences::window + 10);
    EXPECT_TRUE(sequences.was_seen(10));
    EXPECT_FALSE(sequences.was_seen(11));
    EXPECT_FALSE(sequences.was_seen(Sequences::window + 11));
    sequences.add(10 * Sequences::window); // far ahead: nothing of the old window is left
    EXPECT_FALSE(sequences.was_seen(10 * Sequences::window - 1));
    EXPECT_TRUE(sequences.was_seen(9 * Sequences::window));
}

TEST(Sequences, what_is_given_up_is_missed_until_it_comes_after_all) {
    Sequences sequences;
    sequences.add(7);
    EXPECT_FALSE(sequences.was_missed(7));
    EXPECT_TRUE(sequences.was_missed(6)); // it has never come
    sequences.miss(7);
    EXPECT_TRUE(sequences.was_missed(7));
    sequences.add(7 + Sequences::window); // the same place
    EXPECT_FALSE(sequences.was_missed(7 + Sequences::window));
    EXPECT_FALSE(sequences.was_missed(7));
}

TEST(Sequences, of_those_that_the_window_has_left_behind_nobody_knows_whether_they_were_missed) {
    Sequences sequences;
    sequences.add(Sequences::window + 7);
    sequences.miss(Sequences::window + 7);
    EXPECT_TRUE(sequences.was_missed(8));                      // the oldest in it
    EXPECT_FALSE(sequences.was_missed(7));                     // whose place the newest has
    EXPECT_FALSE(sequences.was_missed(Sequences::window + 8)); // one that is still to come
    sequences.add(Sequences::window + 7);                      // it comes after all
    EXPECT_FALSE(sequences.was_missed(Sequences::window + 7));
}

TEST(Sequences, what_comes_before_the_beginning_is_too_late) {
    Sequences sequences;
    sequences.add(20);
    sequences.begin_at(15);
    EXPECT_TRUE(sequences.was_seen(14));
    EXPECT_FALSE(sequences.was_seen(15));
    sequences.begin_at(3); // never back
    EXPECT_EQ(sequences.oldest(), 15u);
}

} // namespace
} // namespace kumi::group
