// Who is gone, and who is not.

#include "simulation/wire.hpp"

#include <gtest/gtest.h>
#include <set>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using simulation::forged;
using simulation::NetworkOptions;
using simulation::Wire;

NetworkOptions with_silence_of(Duration silence_max) {
    NetworkOptions options;
    options.endpoint.silence_max = silence_max;
    return options;
}

TEST(Fate, a_new_life_takes_nothing_that_was_meant_for_the_old_one) {
    NetworkOptions options;
    options.faults.delay_min = options.faults.delay_max = 1ms;
    Wire wire(options);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(wire.say(0, 1, "for the old one"));
    wire.wake(0);
    wire.run_for(500us);
    wire.restart(1, true);
    wire.run_for(1s);
    EXPECT_TRUE(wire.sizes.empty());
    EXPECT_GT(wire[1].drops().of(Drop::stale), 0u);
    ASSERT_TRUE(wire.say(0, 1, "for the new one"));
    wire.wake(0);
    wire.run_for(1s);
    EXPECT_EQ(wire.texts, std::vector<std::string>{"for the new one"});
}

TEST(Fate, nobody_takes_what_an_old_life_has_sent) {
    Wire wire;
    wire.restart(1, true);
    wire.inject(
        0, forged({.flags = flag::data, .source = 1, .destination = 0, .transmission = 1}, {0xFFFF'FFFF'0000'0000u}));
    wire.run_for(1s);
    EXPECT_TRUE(wire.sizes.empty());
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    EXPECT_EQ(wire[0].drops().of(Drop::stale), 1u);
}

TEST(Fate, a_peer_that_has_restarted_is_gone) {
    Wire wire;
    wire.restart(1, false);
    ASSERT_TRUE(wire.say(1, 0, "hello from the next life"));
    wire.wake(1);
    wire.run_for(1ms);
    EXPECT_EQ(wire[0].gone(1), Gone::restarted);
    EXPECT_EQ(wire[0].gone_count(), 1u);
    EXPECT_FALSE(wire.say(0, 1, "hello"));
    EXPECT_EQ(wire[0].try_reserve(1, 10), nullptr);
}

TEST(Fate, who_was_only_heard_is_told_goodbye_too) {
    Wire wire;
    ASSERT_TRUE(wire.say(1, 0, "a word"));
    wire.wake(1);
    wire.run_for(100us); // before node 0 has acknowledged it: node 1 would wait for that
    Series series;
    ASSERT_TRUE(wire[0].next_farewell(series, false));
    EXPECT_EQ(series.to, 1u);
    wire.inject(1, Bytes(series.packets[0].head, series.packets[0].bytes()));
    wire.run_for(100us);
    EXPECT_EQ(wire[1].gone(0), Gone::left);
}

TEST(Fate, a_peer_that_has_all_is_told_goodbye_while_another_is_still_waited_for) {
    NetworkOptions options;
    options.nodes = 3;
    Wire wire(options);
    for (const Node to : {1u, 2u}) ASSERT_TRUE(wire.say(0, to, "a word"));
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "that does not arrive"));
    wire.wake(0);
    wire.run_for(100ms);
    Series series;
    std::vector<Node> told;
    const auto tell = [&](bool more) {
        told.clear();
        while (wire[0].next_farewell(series, more)) told.push_back(series.to);
    };
    tell(true);
    EXPECT_EQ(told, std::vector<Node>{2u});
    tell(true);
    EXPECT_EQ(told, std::vector<Node>{}) << "once in a round";
    ASSERT_TRUE(wire.say(2, 0, "still there?")); // the farewell was lost
    wire.wake(2);
    wire.run_for(100ms);
    tell(true);
    EXPECT_EQ(told, std::vector<Node>{2u}) << "it is told again";
    tell(false);
    EXPECT_EQ(told, (std::vector<Node>{1u, 2u})) << "the last round is for all";
    tell(false);
    EXPECT_EQ(told, std::vector<Node>{});
}

TEST(Fate, a_peer_that_says_goodbye_has_left_and_what_it_sent_before_is_read) {
    Wire wire;
    ASSERT_TRUE(wire.say(1, 0, "the last word"));
    ASSERT_TRUE(wire.say(0, 1, "never mind"));
    wire.wake(0), wire.wake(1);
    wire.run_for(1ms);
    Series series;
    std::vector<Node> told;
    while (wire[1].next_farewell(series, false)) {
        told.push_back(series.to);
        wire.inject(series.to, Bytes(series.packets[0].head, series.packets[0].bytes()));
    }
    EXPECT_EQ(told, std::vector<Node>{0u}) << "whom it has talked to, once";
    wire.run_for(1ms);
    EXPECT_EQ(wire[0].gone(1), Gone::left);
    EXPECT_EQ(wire.sizes.size(), 2u);
    EXPECT_FALSE(wire.say(0, 1, "still there?"));
    wire.run_for(100s);
    EXPECT_TRUE(wire.is_silent());
}

/// The host of node 1 refuses every 50 ms. Node 1 is gone after `time`, and not before.
void expect_gone_when_refused_for(Duration time, Wire& wire) {
    for (Duration passed{0}; passed < time; passed += 50ms) {
        wire[0].on_refused(1, wire.now(0));
        EXPECT_EQ(wire[0].gone(1), Gone::no) << passed / 1ms << " ms";
        wire.run_for(passed + 50ms < time ? 50ms : 49ms);
    }
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    wire.run_for(25ms);
    EXPECT_EQ(wire[0].gone(1), Gone::refused);
}

TEST(Fate, a_peer_that_does_not_answer_for_300_ms_while_its_host_refuses_is_gone) {
    Wire wire;
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    expect_gone_when_refused_for(300ms, wire);
    EXPECT_TRUE(wire[0].all_arrived()) << "nothing is under way to anybody who could take it";
}

TEST(Fate, a_node_that_closes_believes_it_no_sooner) {
    Wire wire;
    wire.cut(0, 1, true);
    wire[0].begin_close();
    expect_gone_when_refused_for(300ms, wire);
}

TEST(Fate, one_word_of_a_host_is_not_enough_however_long_its_peer_is_silent) {
    for (const int words : {1, 20}) {
        Wire wire;
        wire.freeze(1, 20s);
        ASSERT_TRUE(wire.say(0, 1, "hello"));
        for (int i = 0; i < words; ++i) { // all of one moment
            wire[0].on_refused(1, wire.now(0));
            wire.run_for(2ms);
        }
        wire.run_for(19s);
        EXPECT_EQ(wire[0].gone(1), Gone::no);
        EXPECT_TRUE(wire.arrives(1, 3s));
    }
}

TEST(Fate, a_second_word_is_enough_if_it_comes_later_and_a_host_that_sends_few_is_asked_rarely) {
    Wire wire;
    wire.cut(0, 1, true);
    wire[0].on_refused(1, wire.now(0));
    const std::uint64_t packets = wire.packets();
    wire.run_for(100ms);
    wire[0].on_refused(1, wire.now(0));
    wire.run_for(150ms);
    EXPECT_EQ(wire[0].gone(1), Gone::no) << "it has time to answer";
    EXPECT_GE(wire.packets(), packets + 2);
    EXPECT_LE(wire.packets(), packets + 4);
    wire.run_for(80ms);
    EXPECT_EQ(wire[0].gone(1), Gone::refused);
}

TEST(Fate, a_quiet_peer_that_is_said_not_to_be_there_is_asked_and_its_answer_counts) {
    Wire wire;
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(1s);
    for (int i = 0; i < 1000; ++i) { // for 20 s
        const std::uint64_t packets = wire.packets();
        wire[0].on_refused(1, wire.now(0));
        wire.wake(0);
        wire.run_for(20ms);
        ASSERT_EQ(wire[0].gone(1), Gone::no) << i;
        if (i == 0) {
            EXPECT_GE(wire.packets(), packets + 2) << "a question and an answer";
        }
    }
    EXPECT_LT(wire.packets(), 1000u) << "and not for every such word";
}

TEST(Fate, a_host_that_refuses_for_a_while_and_then_no_more_ends_nothing) {
    Wire wire;
    wire.cut(0, 1, true);
    wire[0].on_refused(1, wire.now(0));
    wire.run_for(4s);
    wire[0].on_refused(1, wire.now(0));
    wire.run_for(20s);
    EXPECT_EQ(wire[0].gone(1), Gone::no) << "nothing is wanted of it, and nobody says any more that it is not there";
    const std::uint64_t packets = wire.packets();
    wire.run_for(20s);
    EXPECT_EQ(wire.packets(), packets) << "nor is it asked for ever";
    wire.cut(0, 1, false);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    EXPECT_TRUE(wire.arrives(1, 1s));
}

TEST(Fate, refusals_before_a_peer_has_answered_do_not_count_afterwards) {
    Wire wire;
    for (int i = 0; i < 5; ++i) wire[0].on_refused(1, wire.now(0)); // it was not there yet
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.run_for(1s);
    wire[0].on_refused(1, wire.now(0));
    EXPECT_EQ(wire[0].gone(1), Gone::no);
}

TEST(Fate, a_peer_that_is_silent_is_gone_after_the_stated_time) {
    Wire wire(with_silence_of(5s));
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(4900ms);
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    EXPECT_TRUE(wire[0].next_host_check().has_value()) << "its host was to be asked";
    EXPECT_FALSE(wire[0].next_host_check().has_value());
    wire.run_for(1200ms);
    EXPECT_EQ(wire[0].gone(1), Gone::silent);
    EXPECT_EQ(wire[0].bytes_used(), 0u);
    wire.run_for(100s);
    EXPECT_TRUE(wire.is_silent());
}

TEST(Fate, one_that_was_called_gone_learns_of_it_when_it_speaks_again) {
    Wire wire(with_silence_of(5s));
    ASSERT_TRUE(wire.say(0, 1, "some words before"));
    ASSERT_TRUE(wire.say(1, 0, "and some back"));
    wire.wake(0), wire.wake(1);
    wire.run_for(100ms);
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(7s);
    ASSERT_EQ(wire[0].gone(1), Gone::silent);
    wire.cut(0, 1, false);
    wire.run_for(100s);
    EXPECT_EQ(wire[1].gone(0), Gone::no) << "nobody has spoken";
    ASSERT_TRUE(wire.say(1, 0, "are you there?"));
    wire.wake(1);
    wire.run_for(1s);
    EXPECT_EQ(wire[1].gone(0), Gone::left);
    EXPECT_EQ(wire.texts.size(), 2u);
    wire.run_for(100s);
    EXPECT_TRUE(wire.is_silent()) << "they do not answer each other's farewells";
}

TEST(Fate, a_peer_that_nobody_asks_may_be_silent_for_ever) {
    Wire wire(with_silence_of(5s));
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(1h);
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "are you there?"));
    wire.wake(0);
    wire.run_for(3s);
    wire.cut(0, 1, false);
    EXPECT_TRUE(wire.arrives(2, 2s));
}

TEST(Fate, with_no_limit_a_peer_may_be_silent_for_ever_though_it_is_asked) {
    Wire wire(with_silence_of(0s));
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(1h);
    wire.cut(0, 1, false);
    EXPECT_TRUE(wire.arrives(1, 2s));
}

TEST(Fate, one_that_was_stopped_for_an_hour_calls_nobody_gone) {
    Wire wire(with_silence_of(5s));
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(2s);
    wire.freeze(0, 1h);
    wire.run_for(1h);
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    wire.cut(0, 1, false);
    EXPECT_TRUE(wire.arrives(1, 2s));
    EXPECT_EQ(wire[0].gone(1), Gone::no);
}

TEST(Fate, one_whose_clock_jumps_calls_nobody_gone) {
    Wire wire(with_silence_of(5s));
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(100ms);
    wire.jump_clock(0, 10h);
    wire.run_for(100ms);
    wire.cut(0, 1, false);
    EXPECT_TRUE(wire.arrives(1, 2s));
}

TEST(Fate, a_frozen_peer_whose_host_answers_is_not_gone) {
    Wire wire(with_silence_of(5s));
    wire.on_turn = [&](Node node) {
        while (const auto asked = wire[node].next_host_check()) wire[node].on_host_alive(*asked);
    };
    wire.freeze(1, 300s);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(299s);
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    EXPECT_TRUE(wire.arrives(1, 2s));
    wire.run_for(2s);
    EXPECT_TRUE(wire[0].all_arrived());
    EXPECT_EQ(wire.sizes.size(), 1u);
}

TEST(Fate, a_host_is_asked_before_its_peer_is_called_gone_however_short_the_silence) {
    for (const Duration silence : {200ms, 400ms, 1000ms, 2000ms}) {
        Wire wire(with_silence_of(silence));
        wire.on_turn = [&](Node node) {
            while (const auto asked = wire[node].next_host_check()) wire[node].on_host_alive(*asked);
        };
        wire.freeze(1, 30s);
        ASSERT_TRUE(wire.say(0, 1, "hello"));
        wire.wake(0);
        wire.run_for(29s);
        EXPECT_EQ(wire[0].gone(1), Gone::no) << silence.count();
        EXPECT_TRUE(wire.arrives(1, 3s));
    }
}

TEST(Fate, a_message_that_was_being_written_when_its_peer_went_is_dropped) {
    Wire wire;
    ASSERT_NE(wire[0].try_reserve(1, 100), nullptr);
    wire.inject(0, forged({.flags = flag::farewell, .source = 1, .destination = 0, .transmission = 1}, {}));
    wire.run_for(1ms);
    wire[0].commit(1, 100, wire.now(0));
    wire[0].flush();
    wire.run_for(1s);
    EXPECT_EQ(wire[0].bytes_used(), 0u);
    EXPECT_EQ(wire.packets(), 0u);
}

TEST(Fate, usually_a_silent_peer_is_gone_after_60_s_and_its_host_is_asked_from_the_half_of_that_on) {
    Wire wire;
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(29900ms);
    EXPECT_FALSE(wire[0].next_host_check().has_value());
    wire.run_for(350ms); // it looks four times in a second
    EXPECT_EQ(wire[0].next_host_check(), std::optional<Node>(1));
    wire.run_for(3s);
    EXPECT_FALSE(wire[0].next_host_check().has_value()) << "a sixteenth of the time has not passed since";
    wire.run_for(2s);
    EXPECT_TRUE(wire[0].next_host_check().has_value());
    wire.run_for(24650ms);
    EXPECT_EQ(wire[0].gone(1), Gone::no) << "59.9 s";
    wire.run_for(350ms);
    EXPECT_EQ(wire[0].gone(1), Gone::silent);
}

TEST(Fate, a_host_that_answers_starts_the_time_anew) {
    Wire wire(with_silence_of(10s));
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(9s);
    ASSERT_TRUE(wire[0].next_host_check().has_value());
    wire[0].on_host_alive(1);
    wire.run_for(9s);
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    wire.run_for(2500ms);
    EXPECT_EQ(wire[0].gone(1), Gone::silent);
}

NetworkOptions with_alternatives() {
    NetworkOptions options = with_silence_of(5s);
    options.endpoint.has_alternatives = true;
    return options;
}

TEST(Fate, where_there_are_other_ways_a_silent_peer_is_not_gone_and_what_it_has_not_got_is_kept) {
    Wire wire(with_alternatives());
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(4s);
    EXPECT_FALSE(wire[0].is_silent(1));
    wire.run_for(3s);
    EXPECT_TRUE(wire[0].is_silent(1));
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    wire.cut(0, 1, false);
    EXPECT_TRUE(wire.arrives(1, 2s));
    wire.run_for(10ms);
    EXPECT_FALSE(wire[0].is_silent(1)) << "it has answered";
}

TEST(Fate, where_there_are_other_ways_what_a_peer_that_refuses_has_not_got_is_kept_until_it_is_given_up) {
    Wire wire(with_alternatives());
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(1ms);
    const auto unarrived = [&] {
        std::size_t count = 0;
        wire[0].sender(1).each_unarrived([&](Bytes message) { count += text_of(message) == "hello" ? 1 : 0; });
        return count;
    };
    for (int i = 0; i < 2; ++i) wire[0].on_refused(1, wire.now(0) + i * 300ms);
    EXPECT_EQ(wire[0].gone(1), Gone::refused);
    EXPECT_EQ(unarrived(), 1u);
    wire.inject(0, forged({.source = 1, .destination = 0, .transmission = 1}, {}));
    const std::uint64_t packets = wire.packets();
    wire.run_for(1s);
    EXPECT_EQ(wire.packets(), packets) << "by this way it is told nothing, nor is anything sent again";
    wire[0].give_up(1);
    EXPECT_EQ(unarrived(), 0u);
    EXPECT_EQ(wire[0].gone(1), Gone::refused);
    EXPECT_EQ(wire[0].bytes_used(), 0u);
}

TEST(Fate, how_long_a_peer_owes_an_answer_is_known) {
    Wire wire;
    const auto owed = [&] { return wire[0].unanswered(1, wire.now(0)); };
    EXPECT_EQ(owed(), 0s);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.run_for(10ms);
    EXPECT_EQ(owed(), 0s) << "it has answered";
    wire.run_for(1s);
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.wake(0);
    wire.run_for(3s);
    EXPECT_EQ(owed(), 3s);
    ASSERT_TRUE(wire.say(0, 1, "hello again"));
    wire.run_for(1s);
    EXPECT_EQ(owed(), 4s) << "since the first question";
    wire.inject(0, forged({.source = 1, .destination = 0, .transmission = 1000}, {}));
    wire.run_for(1s);
    EXPECT_EQ(owed(), 1s) << "a word of it is an answer, though it was not this that was asked";
}

TEST(Fate, a_peer_that_is_introduced_again_is_granted_what_is_its_own_and_heard_from_the_start) {
    Wire wire;
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(wire.send_bytes(1, 0, 20'000));
    ASSERT_TRUE(wire.arrives(5, 1s));
    wire.restart(1, true);
    EXPECT_EQ(wire[0].credits().outstanding(1), wire[0].introduction().credit_guaranteed);
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    ASSERT_TRUE(wire.send_bytes(1, 0, 20'000));
    ASSERT_TRUE(wire.send_bytes(0, 1, 30'000));
    wire.wake(0);
    EXPECT_TRUE(wire.arrives(7, 1s));
    wire.run_for(1s);
    EXPECT_TRUE(wire[0].all_arrived() && wire[1].all_arrived());
}

TEST(Fate, every_reason_has_a_name_of_its_own) {
    std::set<std::string> names;
    for (int i = 0; i < 6; ++i) names.insert(name_of(static_cast<Gone>(i)));
    EXPECT_EQ(names.size(), 6u);
}

} // namespace
} // namespace kumi::reliable
