// Threads that send and find no room, and the background that works for them.

#include "kumi/engine/progress/progress_loop.hpp"

#include "loopback/scripted_channel.hpp"
#include "loopback/threads.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace kumi::engine::waiting_for_room_test {
namespace {

using namespace std::chrono_literals;
using loopback::comes_true;
using loopback::far_away;
using loopback::is_background;

class SomeWork final : public Work {
public:
    std::function<std::size_t()> on_work = [] { return std::size_t{0}; };
    std::function<std::size_t()> on_take_in = [] { return std::size_t{0}; };

    Done work(const Turn&) noexcept override { return {.count = on_work()}; }
    std::size_t take_in(const Turn&) noexcept override { return on_take_in(); }
    bool prepare_sleep(const Turn&, bool) noexcept override { return true; }
    void end_sleep(const Turn&, bool) noexcept override {}
    Duration sleep_max() const noexcept override { return far_away; }
    bool run_tasks() noexcept override { return false; }
};

class WaitingForRoom : public testing::Test {
protected:
    loopback::ScriptedChannel channel{1};
    SomeWork work;
    ProgressLoop loop{channel, work, {}, {}};
};

TEST_F(WaitingForRoom, the_background_is_held_until_a_thread_waits_or_calls_it_or_the_time_is_over) {
    std::atomic<int> worked{0};
    work.on_work = [&]() -> std::size_t { return ++worked, 0; };
    const Instant begin = now();
    loop.start(100ms);
    ASSERT_TRUE(comes_true([&] { return worked != 0; }));
    EXPECT_GE(now() - begin, 100ms);
    loop.stop();

    ProgressLoop other(channel, work, {}, {});
    other.start(far_away);
    std::this_thread::sleep_for(20ms);
    const int before = worked;
    EXPECT_EQ(before, worked) << "nobody works";
    EXPECT_TRUE(other.serve_until([&] { return worked != before; }, now() + far_away));
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); })) << "the background, as the wait is over";
    other.stop();

    ProgressLoop third(channel, work, {}, {});
    third.start(far_away);
    {
        const Turn turn(third);
        third.on_duty(turn);
    }
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    third.stop();
}

TEST_F(WaitingForRoom, a_thread_that_waits_for_room_only_takes_in_and_the_background_works) {
    std::atomic<int> taken_in{0}, worked_here{0};
    std::atomic<bool> has_room{false};
    work.on_work = [&]() -> std::size_t {
        worked_here += is_background() ? 0 : 1;
        return 0;
    };
    work.on_take_in = [&]() -> std::size_t { return ++taken_in, 0; };
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    std::thread sender([&] { loop.wait_for_room([&](const Turn&) { return has_room.load(); }); });
    ASSERT_TRUE(comes_true([&] { return taken_in > 10; }));
    has_room = true;
    sender.join();
    EXPECT_EQ(worked_here, 0);
    loop.stop();
}

TEST_F(WaitingForRoom, the_background_works_all_the_time_while_threads_only_wait_for_room) {
    std::atomic<int> worked{0};
    std::atomic<bool> is_over{false};
    work.on_work = [&]() -> std::size_t { return worked += is_background() ? 1 : 0, 0; };
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    std::thread sender([&] { loop.wait_for_room([&](const Turn&) { return is_over.load(); }); });
    const int before = worked;
    const Instant begin = now();
    EXPECT_TRUE(comes_true([&] { return worked > before + 20; }));
    EXPECT_LT(now() - begin, far_away / 2);
    is_over = true;
    channel.wake();
    sender.join();
    loop.stop();
}

TEST_F(WaitingForRoom, a_background_that_sleeps_is_called_while_a_thread_only_waits_for_room) {
    std::atomic<bool> is_unread{false}, was_read{false};
    work.on_work = [&]() -> std::size_t {
        if (!is_unread.exchange(false)) return 0;
        was_read = true;
        return 1;
    };
    bool has_come = false;
    work.on_take_in = [&]() -> std::size_t {
        if (std::exchange(has_come, true)) return 0;
        is_unread = true;
        const Turn turn(loop);
        loop.call(turn);
        return 1;
    };
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    loop.wait_for_room([&](const Turn&) { return was_read.load(); });
    EXPECT_TRUE(was_read);
    loop.stop();
}

TEST_F(WaitingForRoom, without_a_background_a_thread_that_waits_for_room_works_itself) {
    int worked = 0;
    work.on_work = [&]() -> std::size_t { return ++worked, 1; };
    loop.wait_for_room([&](const Turn&) { return worked == 3; });
    EXPECT_EQ(worked, 3);
}

TEST_F(WaitingForRoom, a_thread_that_sleeps_goes_on_with_a_borrowed_turn_and_the_channel_s_sleep_is_ended_later) {
    std::mutex mutex;
    std::atomic<bool> is_called{false}, is_in_handler{false}, was_borrowed{false};
    std::optional<std::thread::id> background;
    work.on_work = [&]() -> std::size_t {
        if (!is_background() || !is_called.exchange(false)) return 0;
        background = std::this_thread::get_id();
        const Turn turn(loop.turn_lock());
        const Lending lending(turn);
        is_in_handler = true;
        const std::lock_guard lock(mutex);
        return 1;
    };
    loop.start();
    std::thread sender([&] {
        const std::lock_guard lock(mutex);
        loop.wait_for_room([&](const Turn& turn) {
            EXPECT_EQ(turn.is_inner(), turn.is_borrowed());
            return was_borrowed = turn.is_borrowed();
        });
    });
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep() && channel.sleeper() == sender.get_id(); }));
    is_called = true;
    {
        const Turn turn(loop);
        loop.on_duty(turn);
    }
    ASSERT_TRUE(comes_true([&] { return is_in_handler.load(); }));
    sender.join();
    EXPECT_TRUE(was_borrowed);
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep() && channel.sleeper() == background; }))
        << "the background has ended that sleep, and sleeps itself";
    loop.stop();
}

TEST_F(WaitingForRoom, threads_that_wait_behind_an_abandoned_sleep_are_woken) {
    std::mutex mutex;
    std::atomic<bool> was_borrowed{false}, is_over{false};
    loop.start();
    std::thread sender([&] {
        const std::lock_guard lock(mutex);
        loop.wait_for_room([&](const Turn& turn) { return was_borrowed = turn.is_borrowed(); });
    });
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep() && channel.sleeper() == sender.get_id(); }));
    std::thread follower([&] { loop.serve_until([&] { return is_over.load(); }, now() + 3 * far_away); });
    std::this_thread::sleep_for(50ms); // it sleeps, too, but not on the channel
    loop.serve_until(
        [&](const Turn& turn) {
            const Lending lending(turn);
            channel.wake(); // the sender, which goes on with a borrowed turn
            const std::lock_guard lock(mutex);
            return true;
        },
        now() + far_away);
    sender.join();
    EXPECT_TRUE(was_borrowed);
    const Instant begin = now();
    EXPECT_TRUE(comes_true([&] { return channel.is_asleep() && channel.sleeper() == follower.get_id(); }));
    EXPECT_LT(now() - begin, far_away / 2);
    is_over = true;
    {
        const Turn turn(loop);
        loop.wake_waiters(turn);
    }
    follower.join();
    loop.stop();
}

TEST_F(WaitingForRoom, a_thread_that_cannot_get_the_turn_for_long_says_why_that_may_be) {
    ProgressLoop other(channel, work, {}, {.stuck_after = 1ms});
    testing::internal::CaptureStderr();
    std::atomic<bool> has_it{false}, is_over{false};
    std::thread holder([&] {
        const Turn turn(other);
        has_it = true;
        while (!is_over) std::this_thread::sleep_for(1ms);
    });
    ASSERT_TRUE(comes_true([&] { return has_it.load(); }));
    std::thread helper([&] {
        std::this_thread::sleep_for(1s); // a busy machine lets a thread that looks run seldom
        is_over = true;
    });
    { const Turn turn(other); }
    holder.join();
    helper.join();
    EXPECT_NE(testing::internal::GetCapturedStderr().find("mutex"), std::string::npos);
}

} // namespace
} // namespace kumi::engine::waiting_for_room_test
