#include "kumi/device/composite/letters/own_letters.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

Letter letter_of(Sequence sequence, std::size_t bytes) {
    Letter letter(bytes);
    Envelope head{};
    head.sequence = sequence;
    std::memcpy(letter.data(), &head, sizeof head);
    return letter;
}

class Own : public testing::Test {
protected:
    void push(Sequence first, Sequence end, std::size_t bytes = 1000) {
        for (Sequence i = first; i != end; ++i) own.push(letter_of(i, bytes));
    }
    /// Gives all that may be given, and answers their numbers.
    std::vector<Sequence> give() {
        std::vector<Sequence> given;
        for (; own.next() != nullptr; own.on_given(clock)) given.push_back(head_of(*own.next()).sequence);
        return given;
    }

    OwnLetters own;
    Instant clock{1h};
};

using Numbers = std::vector<Sequence>;

TEST_F(Own, letters_are_given_in_order_and_kept_until_they_have_arrived) {
    push(5, 8);
    EXPECT_EQ(own.bytes(), 3000u);
    EXPECT_EQ(give(), (Numbers{5, 6, 7}));
    EXPECT_EQ(own.size(), 3u);
    EXPECT_FALSE(own.on_arrived(5, clock)) << "everything before 5";
    EXPECT_TRUE(own.on_arrived(7, clock));
    EXPECT_EQ(own.size(), 1u);
    EXPECT_EQ(own.bytes(), 1000u);
    push(8, 9);
    EXPECT_EQ(give(), Numbers{8});
    EXPECT_TRUE(own.on_arrived(9, clock));
    EXPECT_TRUE(own.empty());
    EXPECT_EQ(own.bytes(), 0u);
}

TEST_F(Own, no_more_are_given_than_the_window_allows) {
    push(0, 10, 16 << 10);
    EXPECT_EQ(give(), (Numbers{0, 1, 2, 3})) << "64 KiB";
    EXPECT_TRUE(own.on_arrived(1, clock + 100ms));
    EXPECT_EQ(give(), (Numbers{4, 5, 6, 7, 8})) << "128 KiB, as nothing waits longer than it must";
    EXPECT_TRUE(own.on_arrived(9, clock + 100ms));
    EXPECT_EQ(give(), Numbers{9});
}

TEST_F(Own, one_letter_is_given_whatever_its_size) {
    push(0, 3, 1 << 20);
    EXPECT_EQ(give(), Numbers{0});
    EXPECT_TRUE(own.on_arrived(1, clock));
    EXPECT_EQ(give(), Numbers{1});
}

TEST_F(Own, letters_that_a_device_kept_go_before_all_others) {
    push(3, 5);
    give();
    Letters kept;
    kept.push_back(letter_of(1, 100));
    kept.push_back(letter_of(2, 200));
    own.put_back(std::move(kept));
    EXPECT_EQ(own.bytes(), 2300u);
    EXPECT_EQ(give(), (Numbers{1, 2, 3, 4}));
}

TEST_F(Own, a_device_takes_them_one_by_one) {
    push(0, 2);
    EXPECT_EQ(head_of(own.front()).sequence, 0u);
    own.pop_front();
    EXPECT_EQ(head_of(own.front()).sequence, 1u);
    EXPECT_EQ(own.bytes(), 1000u);
    own.pop_front();
    EXPECT_TRUE(own.empty());
    push(2, 3);
    EXPECT_EQ(give(), Numbers{2}) << "a relay";
}

TEST_F(Own, what_has_arrived_is_not_given_again) {
    push(0, 4);
    give();
    own.begin_again();
    EXPECT_TRUE(own.on_arrived(3, clock));
    EXPECT_EQ(give(), Numbers{3});
    EXPECT_TRUE(own.on_arrived(4, clock));
    EXPECT_EQ(own.bytes(), 0u);
    push(4, 100, 1000);
    EXPECT_EQ(give().size(), 65u) << "the window is 64 KiB, and empty";
}

TEST_F(Own, an_arrival_of_what_was_never_given_is_not_believed) {
    push(0, 100);
    ASSERT_EQ(give().size(), 65u);
    own.begin_again();
    own.on_arrived(99, clock);
    EXPECT_EQ(own.size(), 35u);
    Letters kept;
    kept.push_back(letter_of(200, 100));
    own.clear();
    own.put_back(std::move(kept));
    EXPECT_TRUE(own.on_arrived(201, clock)) << "the device may have sent it";
    EXPECT_TRUE(own.empty());
}

TEST_F(Own, only_the_first_copy_of_a_letter_is_timed) {
    push(0, 200);
    ASSERT_EQ(give().size(), 65u);
    own.begin_again();
    clock += 10s;
    ASSERT_EQ(give().size(), 65u);
    own.on_arrived(65, clock); // whichever copies
    EXPECT_EQ(give().size(), 65u) << "it is as large as before";
    own.on_arrived(66, clock);
    EXPECT_EQ(give().size(), 67u) << "twice as large, and 64 are under way";
}

TEST_F(Own, on_another_path_all_are_given_again_and_counted) {
    push(0, 3);
    EXPECT_EQ(own.on_new_path(clock), 0u) << "none was given";
    give();
    EXPECT_EQ(own.on_new_path(clock), 3u);
    EXPECT_EQ(give(), (Numbers{0, 1, 2}));
    EXPECT_TRUE(own.on_arrived(3, clock));
}

TEST_F(Own, each_asks_for_its_arrival) {
    push(0, 2);
    own.ask_for_arrivals();
    for (; own.next() != nullptr; own.on_given(clock)) EXPECT_EQ(head_of(*own.next()).asks, 1);
}

TEST_F(Own, time_counts_from_the_first_look_and_from_each_arrival) {
    own.look(clock);
    EXPECT_EQ(own.unanswered(clock + 1s), 0s) << "nothing is waited for";
    push(0, 2);
    own.look(clock);
    own.look(clock + 1s);
    EXPECT_EQ(own.unanswered(clock + 2s), 2s);
    give();
    own.on_arrived(1, clock + 3s);
    EXPECT_EQ(own.unanswered(clock + 4s), 1s);
    own.on_arrived(2, clock + 5s);
    own.look(clock + 5s);
    EXPECT_EQ(own.unanswered(clock + 9s), 0s);
}

TEST_F(Own, what_nobody_acknowledges_is_overdue_after_300_ms_and_then_twice_as_late_each_time) {
    push(0, 2);
    own.look(clock);
    EXPECT_FALSE(own.is_overdue(clock + 1h)) << "no relay was given anything";
    for (Duration wait = 300ms; wait < 1min; wait *= 2) {
        give();
        EXPECT_FALSE(own.is_overdue(clock + wait));
        EXPECT_TRUE(own.is_overdue(clock + wait + 1us)) << wait.count();
        clock += wait + 1us;
        own.on_timeout();
        EXPECT_FALSE(own.is_overdue(clock + 1h)) << "it is to be given again first";
        if (wait > 300ms * 64) break;
    }
    give();
    EXPECT_TRUE(own.is_overdue(clock + 300ms * 128 + 1us)) << "but no later";
    own.on_arrived(1, clock);
    EXPECT_FALSE(own.is_overdue(clock + 300ms));
}

TEST_F(Own, while_the_window_allows_more_nothing_is_overdue) {
    push(0, 1);
    own.look(clock);
    give();
    push(1, 2);
    EXPECT_FALSE(own.is_overdue(clock + 1h)) << "the relay has no room";
    push(2, 100);
    give();
    ASSERT_EQ(own.next(), nullptr);
    EXPECT_TRUE(own.is_overdue(clock + 1h)) << "the window is full";
}

TEST_F(Own, where_arrivals_are_far_apart_they_are_waited_for_longer_up_to_a_second) {
    push(0, 3);
    own.look(clock);
    give();
    own.on_arrived(1, clock += 200ms);
    EXPECT_FALSE(own.is_overdue(clock + 800ms));
    EXPECT_TRUE(own.is_overdue(clock + 801ms));
    own.on_arrived(2, clock += 10s);
    EXPECT_FALSE(own.is_overdue(clock + 1s));
    EXPECT_TRUE(own.is_overdue(clock + 1001ms));
}

TEST_F(Own, cleared_it_is_as_new) {
    push(0, 3);
    give();
    own.clear();
    EXPECT_TRUE(own.empty());
    EXPECT_EQ(own.bytes(), 0u);
    EXPECT_EQ(own.next(), nullptr);
    EXPECT_FALSE(own.is_overdue(clock + 1h));
    push(3, 4);
    EXPECT_EQ(give(), Numbers{3});
}

} // namespace
} // namespace kumi::device::composite
