#include "kumi/pm/wait.hpp"

#include "kumi/base/sync/futex.hpp"
#include "loopback/scripted_channel.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace kumi::pm {
namespace {

using namespace std::chrono_literals;
using loopback::ScriptedChannel;

constexpr auto ignore = [](Message&) {};

// ---- Patience

TEST(Patience, a_node_spins_where_the_host_has_a_core_for_each_and_not_where_it_has_one_too_few) {
    EXPECT_GT(patience_for(4, 4).spin_max, Duration{0});
    EXPECT_EQ(patience_for(5, 4).spin_max, Duration{0});
    EXPECT_GT(patience_for(1, 4).spin_max, Duration{0});
}

TEST(Patience, a_node_yields_where_it_does_not_spin) {
    EXPECT_GT(patience_for(5, 4).yields_max, 0u);
    EXPECT_EQ(patience_for(4, 4).yields_max, 0u);
}

// ---- Idling

using Step = Idling::Step;

/// How many steps are not `sleep`, before the first that is.
unsigned steps_awake(Idling& idling, Duration each = {}) {
    for (unsigned steps = 0; steps < 1'000'000; ++steps) {
        if (idling.next() == Step::sleep) return steps;
        if (each > Duration{0}) std::this_thread::sleep_for(each);
    }
    return ~0u;
}

TEST(Idling, without_a_core_of_its_own_a_thread_yields_as_often_as_it_may_and_sleeps) {
    for (unsigned attempt = 0;; ++attempt) { // a thread that does not run for long yields less often
        Idling idling({.yields_max = 16});
        EXPECT_EQ(idling.next(), Step::yield);
        const unsigned more = steps_awake(idling);
        if (more != 15 && attempt < 20) continue;
        EXPECT_EQ(more, 15u);
        break;
    }
    Idling at_once({});
    EXPECT_EQ(at_once.next(), Step::sleep);
}

TEST(Idling, yields_that_take_long_end_early) {
    Idling idling({.yields_max = 100});
    EXPECT_LT(steps_awake(idling, 1ms), 10u);
}

TEST(Idling, a_thread_with_a_core_looks_often_and_yields_now_and_then_for_as_long_as_it_is_to_spin) {
    Idling idling({2ms}, 8);
    const Instant start = now();
    for (int round = 0; round < 2; ++round) {
        for (int look = 0; look < 7; ++look) EXPECT_EQ(idling.next(), Step::look);
        if (const Step step = idling.next(); now() < start + 1ms) {
            EXPECT_EQ(step, Step::yield);
        }
    }
    EXPECT_LT(steps_awake(idling), ~0u);
    EXPECT_GE(now(), start + 2ms);
}

TEST(Idling, knows_the_time_when_it_is_to_sleep) {
    for (const Patience patience : {Patience{}, Patience{.yields_max = 5}, Patience{.spin_max = 20us}}) {
        Idling idling(patience);
        const Instant start = now();
        steps_awake(idling);
        EXPECT_GE(idling.time(), start + patience.spin_max);
        EXPECT_LE(idling.time(), now());
    }
}

TEST(Idling, after_a_long_sleep_in_which_nothing_came_it_sleeps_on) {
    for (const unsigned polls_per_clock : {8u, 64u})
        for (const Patience patience : {Patience{.yields_max = 20}, Patience{.spin_max = 100us}}) {
            Idling idling(patience, polls_per_clock);
            steps_awake(idling);
            std::this_thread::sleep_for(20ms);
            idling.end_sleep();
            EXPECT_EQ(idling.next(), Step::sleep);
            std::this_thread::sleep_for(20ms);
            idling.end_sleep();
            EXPECT_EQ(idling.next(), Step::sleep);
            idling.reset();
            EXPECT_NE(idling.next(), Step::sleep) << "something came";
        }
}

TEST(Idling, after_a_short_sleep_the_wait_begins_anew) {
    for (const Patience patience : {Patience{.yields_max = 20}, Patience{.spin_max = 100us}}) {
        Step step = Step::sleep;
        for (int attempt = 0; attempt < 20 && step == Step::sleep; ++attempt) { // one of them is not interrupted
            Idling idling(patience);
            steps_awake(idling);
            idling.end_sleep();
            step = idling.next();
        }
        EXPECT_NE(step, Step::sleep);
    }
}

TEST(Idling, in_a_simulation_counts_looks_and_not_time) {
    Idling idling({.yields_max = 16, .ignores_time = true});
    EXPECT_EQ(steps_awake(idling, 1ms), 16u);
    std::this_thread::sleep_for(20ms);
    idling.end_sleep();
    EXPECT_EQ(steps_awake(idling), 16u) << "a long sleep is as any other";
}

// ---- poll_until

TEST(PollUntil, hands_out_messages_until_it_is_done) {
    for (const Duration spin : {0us, 20us}) {
        ScriptedChannel channel(2);
        for (int i = 0; i < 3; ++i) channel.deliver(1, {});
        int handled = 0;
        EXPECT_TRUE(poll_until(
            channel, [&](Message&) { ++handled; }, [&] { return handled == 3; }, {spin}, now() + 10s));
        EXPECT_EQ(channel.sleeps(), 0u);
        EXPECT_TRUE(poll_until(
            channel, ignore, [] { return true; }, {spin}, now() - 1s))
            << "what is done needs no time";
    }
}

TEST(PollUntil, ends_at_its_deadline_and_not_before) {
    for (const Duration spin : {0us, 20us}) {
        ScriptedChannel channel(2);
        const Instant end = now() + 50ms;
        EXPECT_FALSE(poll_until(
            channel, ignore, [] { return false; }, {spin}, end));
        EXPECT_GE(now(), end);
        EXPECT_GE(channel.slept_out(), 1u) << "it slept";
    }
}

TEST(PollUntil, a_sleep_ends_when_the_channel_is_woken) {
    ScriptedChannel channel(2);
    std::atomic<bool> is_done{false};
    std::thread waker([&] {
        while (!channel.is_asleep()) std::this_thread::yield();
        is_done = true;
        channel.wake();
    });
    const Instant end = now() + 10s;
    EXPECT_TRUE(poll_until(
        channel, ignore, [&] { return is_done.load(); }, {}, end));
    EXPECT_LT(now(), end);
    waker.join();
}

TEST(PollUntil, nobody_sleeps_while_there_is_something_to_do) {
    ScriptedChannel channel(2);
    channel.wake(); // before the sleep: that one does not begin
    int looks = 0;
    EXPECT_TRUE(poll_until(
        channel, ignore, [&] { return ++looks == 3; }, {}, now() + 3ms));
    EXPECT_LE(channel.sleeps(), 1u);
}

// ---- what channels do for their callers

TEST(Channel, messages_of_several_pieces_arrive_as_one) {
    ScriptedChannel channel(2);
    const auto text = [](std::string_view of) { return bytes_of(of); };
    EXPECT_TRUE(channel.try_send(1, text("whole")));
    EXPECT_TRUE(static_cast<Channel&>(channel).try_send(1, text("head "), text("and body")));
    EXPECT_TRUE(static_cast<Channel&>(channel).try_send(1, text("one"), text(""), text(", two"), text(", three")));
    EXPECT_TRUE(static_cast<Channel&>(channel).try_send(1, text(""), text("")));
    channel.refuse(1);
    EXPECT_FALSE(channel.try_send(1, text("whole")));
    EXPECT_FALSE(static_cast<Channel&>(channel).try_send(1, text("a"), text("b")));
    EXPECT_FALSE(static_cast<Channel&>(channel).try_send(1, text("a"), text("b"), text("c")));
    std::vector<std::string> sent;
    for (const auto& letter : channel.take_sent()) sent.emplace_back(text_of(letter.bytes));
    EXPECT_EQ(sent, (std::vector<std::string>{"whole", "head and body", "one, two, three", ""}));
}

// ---- block

TEST(Block, a_word_is_slept_on_while_it_has_its_value) {
    std::atomic<std::uint32_t> word{5};
    const Instant end = now() + 10s;
    block({.word = &word, .value = 4}, end);
    EXPECT_LT(now(), end) << "it has another";
    std::thread changer([&] {
        word = 6;
        base::futex_wake(word);
    });
    while (word == 5) block({.word = &word, .value = 5}, end);
    EXPECT_LT(now(), end);
    changer.join();
    const Instant soon = now() + 2ms;
    block({.word = &word, .value = 6}, soon);
    block({.deadline = now() + 2ms, .word = &word, .value = 6}, end); // the channel's own comes first
    EXPECT_LT(now(), end);
}

/// Both ends of a pipe.
struct Pipe {
    Pipe() { EXPECT_EQ(::pipe(ends), 0); }
    ~Pipe() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    void ring() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
    int ends[2];
};

TEST(Block, a_descriptor_or_the_bell_ends_it) {
    const Pipe quiet, loud;
    loud.ring();
    const Instant end = now() + 10s;
    block({.descriptor = loud.ends[0]}, end);
    block({.descriptor = loud.ends[0], .bell = quiet.ends[0]}, never);
    block({.descriptor = quiet.ends[0], .bell = loud.ends[0]}, end);
    block({.bell = loud.ends[0]}, end);
    EXPECT_LT(now(), end);
}

TEST(Block, that_one_may_write_ends_it_only_where_that_was_asked_for) {
    const Pipe pipe; // has room
    const Instant end = now() + 10s;
    block({.descriptor = pipe.ends[1], .or_writable = true}, end);
    EXPECT_LT(now(), end);
    const Instant soon = now() + 3ms;
    block({.descriptor = pipe.ends[1]}, soon);
    EXPECT_GE(now(), soon);
}

TEST(Block, a_deadline_that_has_passed_is_no_sleep_and_the_earlier_of_two_counts) {
    const Pipe pipe;
    const Instant end = now() + 10s;
    block({.descriptor = pipe.ends[0]}, now() - 1s);
    block({.descriptor = pipe.ends[0], .deadline = now() + 2ms}, never);
    block({.descriptor = pipe.ends[0], .deadline = never}, now() + 2ms);
    EXPECT_LT(now(), end);
}

} // namespace
} // namespace kumi::pm
