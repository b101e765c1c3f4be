// A thread sleeps on the channel, and another does something that it may wait for. Each wake-up is counted at the
// channel; and who was not woken comes back only after `far_away`.

#include "kumi/engine/dispatcher.hpp"

#include "kumi/engine/call/invoke.hpp"
#include "loopback/victim.hpp"
#include "loopback/windows.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <pthread.h>
#include <string_view>
#include <thread>
#include <vector>

namespace kumi::engine::waking_test {
namespace {

using namespace std::chrono_literals;
using loopback::comes_true;
using loopback::far_away;
using loopback::Sleeper;
using loopback::Victim;
using loopback::Windows;

constexpr OperationId asked{7, 9}; // a peer's own

TEST(DispatcherWaking, a_poll_that_handled_something_wakes_those_that_wait_and_another_does_not) {
    std::atomic<int> handled{0};
    Handlers handlers;
    handlers.add("take", [&](Call&) { ++handled; });
    Victim victim(std::move(handlers));
    Sleeper sleeper(victim, [&](Instant end) {
        return victim.dispatcher->progress().wait_until([&] { return handled == 1; }, end);
    });
    EXPECT_EQ(victim.dispatcher->progress().poll(), 0u);
    EXPECT_EQ(victim.channel.wakes(), 0u);
    victim.hears(1, Kind::first_handler, true);
    EXPECT_EQ(victim.dispatcher->progress().poll(), 1u);
    EXPECT_EQ(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper.was_woken());
}

TEST(DispatcherWaking, what_comes_while_all_threads_wait_for_room_is_handled_by_the_background) {
    std::atomic<int> handled{0};
    std::atomic<bool> was_background{false};
    Handlers handlers;
    const auto take = handlers.add("take", [&](Call&) {
        char name[16] = {};
        ::pthread_getname_np(::pthread_self(), name, sizeof name);
        was_background = std::string_view(name) == "kumi-progress";
        ++handled;
    });
    Victim victim(std::move(handlers), {.in_background = true});
    std::vector<std::thread> senders;
    std::atomic<int> refused{0};
    for (int i = 0; i < 2; ++i)
        senders.emplace_back([&] {
            while (victim.engine->send(1, take)) {} // until node 1 is lost
            ++refused;
        });
    ASSERT_TRUE(comes_true([&] { return victim.under_way(1) == requests_max && victim.channel.is_asleep(); }));
    for (int round = 1; round <= 3; ++round) {
        std::this_thread::sleep_for(5ms);
        victim.hears(2, Kind::first_handler, true);
        const Instant start = now();
        EXPECT_TRUE(comes_true([&] { return handled == round; }));
        EXPECT_LT(now() - start, 5s);
        EXPECT_TRUE(was_background);
    }
    EXPECT_EQ(refused, 0);
    victim.channel.lose(1);
    victim.channel.ring();
    for (std::thread& sender : senders) sender.join();
    EXPECT_EQ(refused, 2);
}

TEST(DispatcherWaking, a_look_at_a_barrier_that_handled_something_wakes_those_that_wait) {
    std::atomic<int> handled{0};
    Handlers handlers;
    handlers.add("take", [&](Call&) { ++handled; });
    Victim victim(std::move(handlers));
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    Sleeper sleeper(victim, [&](Instant end) {
        return victim.dispatcher->progress().wait_until([&] { return handled == 1; }, end);
    });
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
    EXPECT_EQ(victim.channel.wakes(), 0u);
    victim.hears(1, Kind::first_handler, true);
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
    EXPECT_EQ(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper.was_woken());
}

TEST(DispatcherWaking, who_syncs_is_woken_when_what_it_waits_for_is_forgotten) {
    Handlers handlers;
    const auto square = handlers.function("square", [](long value) { return value * value; });
    Victim victim(std::move(handlers));
    std::uint64_t number = 0;
    Sleeper sleeper(victim, [&](Instant end) {
        const auto asked_for =
            victim.dispatcher->calls().ask(1, square.index(), write_archive(3L), [](const Result<Bytes>&) {});
        EXPECT_TRUE(asked_for);
        number = *asked_for;
        victim.handled[1] = 1;
        victim.hears(1, Kind::credit);
        return victim.dispatcher->operations().sync(end).has_value();
    });
    EXPECT_TRUE(victim.dispatcher->progress().forget(number));
    EXPECT_EQ(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper.was_woken());
}

TEST(DispatcherWaking, what_a_function_has_changed_is_looked_at_when_it_returns) {
    std::atomic<bool> has_changed{false};
    std::optional<Sleeper> sleeper;
    Victim* self = nullptr;
    Handlers handlers;
    handlers.function("change", [&](int) {
        sleeper.emplace(*self, [&](Instant end) {
            return self->dispatcher->progress().wait_until([&] { return has_changed.load(); }, end);
        });
        has_changed = true;
    });
    Victim victim(std::move(handlers));
    self = &victim;
    victim.hears(1, Kind::ask, Ask{asked, 0, 0}, write_archive(1));
    victim.dispatcher->progress().poll();
    ASSERT_TRUE(sleeper);
    EXPECT_EQ(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper->was_woken());
}

TEST(DispatcherWaking, who_waits_for_a_future_is_woken_when_another_thread_completes_it) {
    Victim victim;
    Promise<int> promise(&victim.dispatcher->progress());
    Future<int> future = promise.future();
    Sleeper sleeper(victim, [&](Instant end) { return future.get(end).has_value(); });
    promise.complete(5);
    EXPECT_EQ(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper.was_woken());
}

TEST(DispatcherWaking, whoever_sleeps_is_called_to_run_what_is_to_run_later) {
    std::atomic<bool> has_run{false};
    Handlers handlers;
    handlers.function("note", [&](int) {});
    Victim victim(std::move(handlers));
    Sleeper sleeper(victim, [&](Instant end) {
        return victim.dispatcher->progress().wait_until([&] { return has_run.load(); }, end);
    });
    {
        const auto turn = victim.dispatcher->take_turn();
        victim.dispatcher->calls().run_later(turn, 0, write_archive(1),
                               [&](const Result<std::vector<std::byte>>& answer) { has_run = answer.has_value(); });
    }
    EXPECT_GE(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper.was_woken());
}

// ---- flags that this node sets itself

class DispatcherFlags : public testing::Test {
protected:
    DispatcherFlags() {
        const auto made = victim.dispatcher->segments().add(4096);
        EXPECT_TRUE(made);
        id = made->id;
        flag = reinterpret_cast<Flag*>(made->bytes.data());
        counter = reinterpret_cast<Counter*>(made->bytes.data() + 64);
    }
    void expect_wake(const Flag& awaited, Flag value, const std::function<void()>& what) {
        const unsigned before = victim.channel.wakes();
        Sleeper sleeper(victim,
                        [&](Instant end) { return victim.dispatcher->flags().wait(awaited, value, end).has_value(); });
        what();
        EXPECT_EQ(victim.channel.wakes(), before + 1);
        EXPECT_TRUE(sleeper.was_woken());
    }

    Victim victim;
    SegmentId id = 0;
    Flag* flag = nullptr;
    Counter* counter = nullptr;
};

TEST_F(DispatcherFlags, a_thread_that_waits_for_a_flag_is_woken_by_whatever_sets_it) {
    const global_ptr<std::byte> here{0, id, 0};
    expect_wake(*flag, 1, [&] {
        ASSERT_TRUE(victim.dispatcher->memory().put(here, {}, {Notice::Kind::set, id, 0, 1}));
    });
    expect_wake(*flag, 2, [&] { ASSERT_TRUE(victim.dispatcher->memory().atomic(here, {Atomic::add, 8, 1, 0})); });
    const std::byte byte{};
    expect_wake(*flag, 3, [&] {
        ASSERT_TRUE(
            victim.dispatcher->memory().put_strided({0, id, 512}, &byte, {1, 1, 0, 0}, {Notice::Kind::set, id, 0, 3}));
    });
    counter->missing = 1;
    expect_wake(counter->flag, 1, [&] {
        ASSERT_TRUE(victim.dispatcher->memory().put(here, {}, {Notice::Kind::count, id, 64, 0}));
    });
    counter->missing = -3; // they came before they were expected
    counter->flag = 0;
    expect_wake(counter->flag, 1, [&] { victim.dispatcher->flags().expect(*counter, 3); });
}

TEST_F(DispatcherFlags, nobody_is_woken_by_data_without_a_notice_or_by_one_arrival_of_several) {
    counter->missing = 2;
    Sleeper sleeper(victim,
                    [&](Instant end) { return victim.dispatcher->flags().wait(counter->flag, 1, end).has_value(); });
    ASSERT_TRUE(victim.dispatcher->memory().put({0, id, 512}, bytes_of(std::uint64_t{5}), {}));
    ASSERT_TRUE(victim.dispatcher->memory().put({0, id, 512}, {}, {Notice::Kind::count, id, 64, 0}));
    EXPECT_EQ(victim.channel.wakes(), 0u);
    ASSERT_TRUE(victim.dispatcher->memory().put({0, id, 512}, {}, {Notice::Kind::count, id, 64, 0}));
    EXPECT_EQ(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper.was_woken());
}

TEST(DispatcherWaking, other_nodes_of_the_host_see_whether_this_one_sleeps) {
    Windows windows(2, 1 << 20, {0, 1});
    Victim victim({}, {.nodes = 2, .memory = &windows});
    const auto& page = *reinterpret_cast<SharedPage*>(windows.direct(0, 0));
    EXPECT_EQ(page.watching, 0u);
    std::atomic<bool> is_over{false};
    Sleeper sleeper(victim, [&](Instant end) {
        return victim.dispatcher->progress().wait_until([&] { return is_over.load(); }, end);
    });
    EXPECT_EQ(page.watching, 1u);
    is_over = true;
    victim.channel.ring();
    EXPECT_TRUE(sleeper.was_woken());
    EXPECT_EQ(page.watching, 0u) << "nobody needs to nudge it any more";
}

TEST(DispatcherWaking, what_another_thread_s_transfer_takes_along_is_told_to_those_that_wait_for_it) {
    Victim victim;
    const auto made = victim.dispatcher->segments().add(8192);
    ASSERT_TRUE(made);
    const std::vector<std::byte> content(5000);
    Flag given = 0;
    victim.hears(1, Kind::want, Want{3, {landing_bit, 0, 0}, 5000, asked});
    victim.poll();
    victim.channel.refuse(1);
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(3, 1, content, &given, 1));
    Sleeper sleeper(victim, [&](Instant end) { return victim.dispatcher->flags().wait(given, 1, end).has_value(); });
    victim.channel.refuse(1, false);
    ASSERT_TRUE(victim.dispatcher->memory().start_put({1, made->id, 0}, content, {}));
    EXPECT_EQ(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper.was_woken());
}

// ---- losses, and nodes that are silent

TEST(DispatcherWaking, who_waits_for_a_node_is_woken_when_another_thread_finds_it_lost) {
    Victim victim;
    Sleeper sleeper(victim, [&](Instant end) {
        const auto all = victim.dispatcher->barriers().barrier(end);
        return !all && all.error().text() == "barrier: node 1 has left, or is lost";
    });
    victim.channel.lose(1);
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    EXPECT_EQ(victim.channel.wakes(), 1u);
    EXPECT_TRUE(sleeper.was_woken());
}

TEST(DispatcherWaking, who_waits_is_woken_now_and_then_to_speak_to_those_it_waits_for) {
    Victim victim;
    Sleeper sleeper(victim, [&](Instant end) { return victim.dispatcher->barriers().barrier(end).has_value(); });
    victim.channel.take_sent();
    const unsigned sleeps = victim.channel.sleeps();
    victim.time = far_away.count();
    for (int i = 0; i < 256; ++i) victim.dispatcher->progress().poll();
    EXPECT_EQ(victim.channel.wakes(), 1u);
    ASSERT_TRUE(comes_true([&] { return victim.channel.sleeps() > sleeps; })) << "it has looked, and sleeps again";
    std::vector<Node> nudged;
    for (const auto& nudge : victim.sent(Kind::nudge)) nudged.push_back(nudge.to);
    std::ranges::sort(nudged); // in any order
    EXPECT_EQ(nudged, (std::vector<Node>{1, 2}));
    victim.hears(2, Kind::step, BarrierStep{0, 0, 0, 0, 0}, {}, false);
    victim.hears(1, Kind::step, BarrierStep{0, 0, 1, 0, 0}, {}, false);
    victim.channel.ring();
    EXPECT_TRUE(sleeper.was_woken());
}

} // namespace
} // namespace kumi::engine::waking_test
