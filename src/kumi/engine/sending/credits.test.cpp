#include "kumi/engine/sending/credits.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

TEST(Credits, a_request_may_be_sent_while_fewer_than_the_limit_are_under_way) {
    Credits credits(3);
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(credits.may_request(1, 5));
        credits.on_requested(1, {});
    }
    EXPECT_FALSE(credits.may_request(1, 5));
    EXPECT_TRUE(credits.may_request(1, 6));
    EXPECT_TRUE(credits.may_request(2, 5)) << "each node has its own";
    EXPECT_FALSE(credits.may_request(2, 0));
    EXPECT_TRUE(credits.on_told(1, 1));
    EXPECT_TRUE(credits.may_request(1, 5));
    credits.set_blocked(1, true);
    EXPECT_FALSE(credits.may_request(1, 5));
    EXPECT_TRUE(credits.may_request(2, 5));
    credits.set_blocked(1, false);
    EXPECT_TRUE(credits.may_request(1, 5));
}

TEST(Credits, nodes_that_owe_something_are_found_among_those_that_were_asked) {
    Credits credits(200);
    const auto owing = [&] {
        std::vector<Node> nodes;
        credits.for_each_owing([&](Node node) { nodes.push_back(node); });
        return nodes;
    };
    EXPECT_EQ(owing(), std::vector<Node>{});
    for (const Node node : {3u, 64u, 199u}) credits.on_requested(node, {});
    credits.on_waiting(5);
    EXPECT_EQ(owing(), (std::vector<Node>{3, 5, 64, 199}));
    EXPECT_TRUE(credits.on_told(64, 1));
    EXPECT_EQ(owing(), (std::vector<Node>{3, 5, 199}));
    credits.on_waited(5);
    credits.on_requested(5, {}); // it has left now
    credits.on_requested(64, {});
    EXPECT_EQ(owing(), (std::vector<Node>{3, 5, 64, 199}));
    (void)credits.give_up(199);
    EXPECT_EQ(owing(), (std::vector<Node>{3, 5, 64}));
}

TEST(Credits, requests_that_wait_count_as_not_handled_and_have_their_numbers) {
    Credits credits(3);
    EXPECT_TRUE(credits.all_handled());
    credits.on_requested(1, {});
    credits.on_waiting(1);
    credits.on_waiting(1);
    EXPECT_EQ(credits.requested(1), 1u);
    EXPECT_EQ(credits.last_request(1), 3u);
    EXPECT_EQ(credits.last_request(2), 0u);
    EXPECT_TRUE(credits.on_told(1, 1));
    EXPECT_EQ(credits.under_way(1), 0u);
    EXPECT_FALSE(credits.all_handled(1));
    EXPECT_FALSE(credits.all_handled());
    EXPECT_TRUE(credits.all_handled(2));
    for (int i = 0; i < 2; ++i) {
        credits.on_requested(1, {});
        credits.on_waited(1);
    }
    EXPECT_EQ(credits.last_request(1), 3u);
    EXPECT_FALSE(credits.has_handled(1, 3));
    EXPECT_TRUE(credits.has_handled(1, 1));
    EXPECT_TRUE(credits.on_told(1, 3));
    EXPECT_TRUE(credits.has_handled(1, 3));
    EXPECT_TRUE(credits.all_handled(1));
    EXPECT_TRUE(credits.all_handled());
}

TEST(Credits, counts_wrap_and_what_makes_no_sense_is_not_believed) {
    Credits credits(2);
    for (std::uint64_t sent = 0; sent < 200'000; sent += 100) {
        for (int i = 0; i < 100; ++i) credits.on_requested(1, {});
        ASSERT_FALSE(credits.on_told(1, static_cast<std::uint16_t>(sent + 101)));
        ASSERT_FALSE(credits.on_told(1, static_cast<std::uint16_t>(sent - 1)));
        ASSERT_EQ(credits.handled(1), sent);
        ASSERT_TRUE(credits.on_told(1, static_cast<std::uint16_t>(sent + 100)));
        ASSERT_TRUE(credits.on_told(1, static_cast<std::uint16_t>(sent + 100))) << "no news";
        ASSERT_EQ(credits.handled(1), sent + 100);
    }
}

TEST(Credits, a_question_is_open_until_more_was_told) {
    Credits credits(2);
    EXPECT_FALSE(credits.may_ask(1)) << "there is nothing to be told";
    credits.on_requested(1, {});
    credits.on_requested(1, {});
    EXPECT_TRUE(credits.may_ask(1));
    credits.on_asking(1);
    EXPECT_FALSE(credits.may_ask(1));
    EXPECT_TRUE(credits.on_told(1, 0));
    EXPECT_FALSE(credits.may_ask(1)) << "no news";
    EXPECT_TRUE(credits.on_told(1, 1));
    EXPECT_TRUE(credits.may_ask(1));
    EXPECT_TRUE(credits.on_told(1, 2));
    EXPECT_FALSE(credits.may_ask(1));
}

TEST(Credits, what_was_handled_here_is_to_be_told_when_it_is_half_of_what_may_be_under_way) {
    Credits credits(2);
    for (std::uint32_t i = 1; i < requests_max / 2; ++i) EXPECT_FALSE(credits.on_handled(1)) << i;
    EXPECT_TRUE(credits.on_handled(1));
    EXPECT_EQ(credits.handled_here(1), requests_max / 2);
    credits.on_telling(1, true);
    EXPECT_FALSE(credits.on_handled(1)) << "a message that tells this waits already";
    EXPECT_EQ(credits.told(1), 0u) << "it has not left";
    credits.on_told_all(1);
    EXPECT_TRUE(credits.on_handled(1));
    credits.note_told(1, credits.handled_here(1));
    EXPECT_EQ(credits.told(1), requests_max / 2 + 2);
    for (std::uint32_t i = 1; i < requests_max / 2; ++i) EXPECT_FALSE(credits.on_handled(1)) << i;
    EXPECT_TRUE(credits.on_handled(1)) << "counted from what was told";
}

TEST(Credits, a_node_that_asks_is_to_be_told_now_or_when_there_is_news) {
    Credits credits(2);
    EXPECT_FALSE(credits.on_asked(1)) << "there is no news";
    EXPECT_TRUE(credits.on_handled(1));
    credits.on_telling(1, false);
    EXPECT_FALSE(credits.on_handled(1)) << "it was told";
    EXPECT_TRUE(credits.on_asked(1));
    credits.on_telling(1, false);
    credits.note_told(1, 2);
    EXPECT_FALSE(credits.on_handled(1));
}

TEST(Credits, what_a_lost_node_owes_is_not_waited_for) {
    Credits credits(3);
    for (const Node to : {1u, 2u}) credits.on_requested(to, {});
    credits.on_waiting(1);
    EXPECT_FALSE(credits.has_handled(1, 2));
    credits.give_up(1);
    EXPECT_TRUE(credits.is_lost(1));
    EXPECT_FALSE(credits.is_lost(2));
    EXPECT_TRUE(credits.all_handled(1));
    EXPECT_TRUE(credits.has_handled(1, 2));
    EXPECT_FALSE(credits.all_handled()) << "node 2 still owes";
    EXPECT_TRUE(credits.on_told(1, 5)) << "what it said before comes late";
    EXPECT_EQ(credits.handled(1), 1u) << "and does not count";
    EXPECT_TRUE(credits.on_told(2, 1));
    EXPECT_TRUE(credits.all_handled());
}

TEST(Credits, requests_that_passed_a_held_one_are_counted_when_nothing_is_held) {
    Credits credits(3);
    (void)credits.on_handled(1);
    credits.on_kept(1, 0, true);
    EXPECT_FALSE(credits.on_handled(1));
    credits.on_kept(1, 0, true);
    EXPECT_FALSE(credits.on_handled(1));
    EXPECT_FALSE(credits.on_handled(2));
    EXPECT_EQ(credits.handled_here(1), 1u);
    EXPECT_EQ(credits.handled_here(2), 1u) << "each node has its own";
    EXPECT_FALSE(credits.on_kept_handled(1, true));
    EXPECT_EQ(credits.handled_here(1), 2u);
    EXPECT_FALSE(credits.on_kept_handled(1, true));
    EXPECT_EQ(credits.handled_here(1), 5u);
    EXPECT_FALSE(credits.on_handled(1));
    EXPECT_EQ(credits.handled_here(1), 6u) << "nothing is held any more";
}

TEST(Credits, calls_in_line_keep_nothing_back_and_do_not_pass_what_is_held) {
    Credits credits(2);
    credits.on_kept(1, 0, false);
    (void)credits.on_handled(1);
    EXPECT_EQ(credits.handled_here(1), 1u);
    credits.on_kept(1, 0, true);
    EXPECT_FALSE(credits.on_kept_handled(1, false));
    EXPECT_EQ(credits.handled_here(1), 1u);
    EXPECT_FALSE(credits.on_kept_handled(1, true));
    EXPECT_EQ(credits.handled_here(1), 3u);
    credits.on_kept(1, 0, false);
    EXPECT_FALSE(credits.on_kept_handled(1, false));
    EXPECT_EQ(credits.handled_here(1), 4u);
}

TEST(Credits, a_node_that_asked_is_told_when_something_that_is_kept_counts) {
    Credits credits(2);
    credits.on_kept(1, 0, true);
    credits.on_kept(1, 0, false);
    EXPECT_FALSE(credits.on_asked(1)) << "there is no news";
    EXPECT_FALSE(credits.on_handled(1)) << "this is none";
    EXPECT_FALSE(credits.on_kept_handled(1, false)) << "nor is this";
    EXPECT_TRUE(credits.on_kept_handled(1, true));
    credits.on_telling(1, false);
    credits.note_told(1, 3);
    credits.on_kept(1, 0, true);
    EXPECT_FALSE(credits.on_kept_handled(1, true)) << "it was told";
    for (std::uint32_t i = 1; i < requests_max / 2 - 1; ++i) credits.on_kept(1, 0, true);
    for (std::uint32_t i = 1; i < requests_max / 2 - 1; ++i) EXPECT_FALSE(credits.on_kept_handled(1, true)) << i;
    credits.on_kept(1, 0, true);
    EXPECT_TRUE(credits.on_kept_handled(1, true)) << "half of what may be under way";
}

TEST(Credits, what_is_kept_counts_as_the_largest_pressure_of_it_and_of_what_passed_it) {
    Credits credits(2);
    EXPECT_EQ(credits.pressure_of_kept(1), 0u);
    (void)credits.on_handled(1, 5);
    EXPECT_EQ(credits.pressure_of_kept(1), 0u) << "nothing is kept";
    credits.on_kept(1, 2, true);
    credits.on_kept(1, 1, true);
    EXPECT_EQ(credits.pressure_of_kept(1), 2u);
    (void)credits.on_handled(1, 4);
    (void)credits.on_handled(1, 3);
    EXPECT_EQ(credits.pressure_of_kept(1), 4u);
    (void)credits.on_kept_handled(1, true);
    EXPECT_EQ(credits.pressure_of_kept(1), 4u) << "one is still held";
    (void)credits.on_kept_handled(1, true);
    EXPECT_EQ(credits.pressure_of_kept(1), 0u);
    credits.on_kept(1, 6, false);
    credits.on_kept(1, 0, true);
    EXPECT_EQ(credits.pressure_of_kept(1), 6u) << "it is counted after the held one";
}

/// The threads of the requests that a lost node has not handled, as far as it has told.
std::vector<std::uint32_t> threads_of_lost(Credits& credits, Node lost) {
    std::vector<std::uint32_t> threads;
    for (const Header& header : credits.give_up(lost)) threads.push_back(thread_of(header));
    return threads;
}

TEST(Credits, a_lost_node_leaves_the_headers_of_requests_that_it_has_not_told_to_have_handled) {
    Credits credits(3);
    EXPECT_TRUE(threads_of_lost(credits, 0).empty());
    for (std::uint32_t thread = 1; thread <= 5; ++thread) credits.on_requested(1, {0, 0, thread << 1 | 1});
    for (std::uint32_t thread = 11; thread <= 15; ++thread) credits.on_requested(2, {0, 0, thread << 1 | 1});
    EXPECT_TRUE(credits.on_told(1, 2));
    EXPECT_EQ(threads_of_lost(credits, 1), (std::vector<std::uint32_t>{3, 4, 5}));
    EXPECT_TRUE(threads_of_lost(credits, 1).empty()) << "once";
    EXPECT_EQ(threads_of_lost(credits, 2), (std::vector<std::uint32_t>{11, 12, 13, 14, 15})) << "those of each node";
}

TEST(Credits, headers_are_there_for_as_many_requests_as_may_be_under_way_and_after_any_number) {
    constexpr std::uint32_t most = requests_max + pressure_max * requests_per_pressure;
    Credits credits(3);
    std::uint32_t thread = 0;
    for (int round = 0; round < 7; ++round) {
        for (std::uint32_t i = 0; i < most; ++i) {
            credits.on_requested(1, {0, 0, ++thread << 1 | 1});
            credits.on_requested(2, {0, 0, 1});
        }
        if (round < 6) {
            ASSERT_TRUE(credits.on_told(1, static_cast<std::uint16_t>(thread)));
        }
    }
    const auto threads = threads_of_lost(credits, 1);
    ASSERT_EQ(threads.size(), most);
    for (std::uint32_t i = 0; i < most; ++i) EXPECT_EQ(threads[i], thread - most + 1 + i);
}

} // namespace
} // namespace kumi::engine
