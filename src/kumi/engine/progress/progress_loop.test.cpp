// Who is woken, and by what. A thread that nobody wakes would sleep until `far_away`, which no test waits for. Wake-ups
// are counted where the channel sees them, and a follower that was not woken is one that came back only then.

#include "kumi/engine/progress/progress_loop.hpp"

#include "loopback/scripted_channel.hpp"
#include "loopback/threads.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace kumi::engine {
namespace {

using namespace std::chrono_literals;
using loopback::comes_true;
using loopback::far_away;
using loopback::ScriptedChannel;

/// Does what the test says, and counts.
class ScriptedWork final : public Work {
public:
    std::function<std::size_t()> on_work = [] { return std::size_t{0}; };
    std::function<bool()> on_prepare = [] { return true; };
    std::function<void()> task;
    Duration longest = far_away;
    std::atomic<int> threads_asleep{0}; // of the program: between prepare_sleep() and end_sleep(), which have the turn
    std::atomic<unsigned> background_looks{0};
    std::atomic<bool> has_task{false};

    Done work(const Turn&) noexcept override {
        if (loopback::is_background()) ++background_looks;
        const std::size_t count = on_work();
        return {count, has_task};
    }
    bool prepare_sleep(const Turn&, bool is_background) noexcept override {
        if (!on_prepare()) return false;
        if (!is_background) ++threads_asleep;
        return true;
    }
    void end_sleep(const Turn&, bool is_background) noexcept override {
        if (!is_background) --threads_asleep;
    }
    Duration sleep_max() const noexcept override { return longest; }
    bool run_tasks() noexcept override {
        task();
        return true;
    }
};

class ProgressLoopTest : public testing::Test {
protected:
    ScriptedChannel channel{1};
    ScriptedWork work;
    ProgressLoop loop{channel, work, {}, {}};

    /// A thread that waits for `done`; nobody but the test makes it true.
    class Waiter {
    public:
        Waiter(ProgressLoop& loop, std::function<bool()> done)
            : thread_([&loop, done = std::move(done), this] {
                  const Instant end = now() + far_away;
                  was_done_ = loop.serve_until(done, end);
                  was_in_time_ = now() < end;
                  is_over_ = true;
              }) {}
        ~Waiter() {
            if (thread_.joinable()) thread_.join();
        }
        bool is_over() const { return is_over_; }
        std::thread::id id() const { return thread_.get_id(); }
        /// It came back, and not because its time was over.
        bool was_woken() {
            thread_.join();
            return was_done_ && was_in_time_;
        }

    private:
        bool was_done_ = false, was_in_time_ = false;
        std::atomic<bool> is_over_{false};
        std::thread thread_;
    };

    /// So many threads sleep: with the turn, none of them is on its way there.
    bool sleep_now(int count) {
        return comes_true([&] {
            const Turn turn(loop);
            return work.threads_asleep == count;
        });
    }
    void wake() {
        const Turn turn(loop);
        loop.wake_waiters(turn);
    }
};

TEST_F(ProgressLoopTest, the_first_that_waits_sleeps_on_the_channel_and_is_woken_there) {
    std::atomic<bool> came{false};
    Waiter waiter(loop, [&] { return came.load(); });
    ASSERT_TRUE(sleep_now(1));
    EXPECT_EQ(channel.sleeper(), waiter.id());
    came = true;
    wake();
    EXPECT_EQ(channel.wakes(), 1u);
    EXPECT_TRUE(waiter.was_woken());
    EXPECT_EQ(channel.slept_out(), 0u);
    wake();
    EXPECT_EQ(channel.wakes(), 1u) << "nobody waits any more";
}

TEST_F(ProgressLoopTest, those_that_follow_are_woken_too) {
    std::atomic<bool> is_over{false}, came{false};
    Waiter first(loop, [&] { return is_over.load(); });
    ASSERT_TRUE(sleep_now(1));
    Waiter second(loop, [&] { return came.load(); }), third(loop, [&] { return came.load(); });
    ASSERT_TRUE(sleep_now(3));
    EXPECT_EQ(channel.sleeps(), 1u) << "one sleeps on the channel, the others do not";
    came = true;
    wake();
    EXPECT_TRUE(second.was_woken());
    EXPECT_TRUE(third.was_woken());
    EXPECT_FALSE(first.is_over());
    ASSERT_TRUE(sleep_now(1)) << "the first has looked, and sleeps again";
    is_over = true;
    wake();
    EXPECT_TRUE(first.was_woken());
    EXPECT_EQ(channel.slept_out(), 0u);
}

TEST_F(ProgressLoopTest, whoever_does_some_work_wakes_those_that_wait) {
    std::atomic<bool> is_over{false}, is_done{false};
    Waiter first(loop, [&] { return is_over.load(); });
    ASSERT_TRUE(sleep_now(1));
    Waiter second(loop, [&] { return is_done.load(); });
    ASSERT_TRUE(sleep_now(2));
    const void* const me = base::thread_mark();
    work.on_work = [&, me]() -> std::size_t { return base::thread_mark() == me && !is_done.exchange(true) ? 1 : 0; };
    EXPECT_TRUE(loop.serve_until([&] { return is_done.load(); }, now() + far_away));
    EXPECT_TRUE(second.was_woken());
    EXPECT_GE(channel.wakes(), 1u) << "the one on the channel too";
    ASSERT_TRUE(sleep_now(1));
    is_over = true;
    channel.ring();
    EXPECT_TRUE(first.was_woken());
}

TEST_F(ProgressLoopTest, when_the_sleeper_on_the_channel_leaves_one_that_follows_takes_its_place) {
    std::atomic<bool> is_over{false}, came{false};
    Waiter first(loop, [&] { return is_over.load(); });
    ASSERT_TRUE(sleep_now(1));
    Waiter second(loop, [&] { return came.load(); });
    ASSERT_TRUE(sleep_now(2));
    is_over = true;
    channel.ring();
    EXPECT_TRUE(first.was_woken());
    EXPECT_TRUE(comes_true([&] { return channel.sleeper() == second.id(); })) << "what arrives would wake nobody";
    ASSERT_TRUE(sleep_now(1));
    came = true;
    channel.ring();
    EXPECT_TRUE(second.was_woken());
}

TEST_F(ProgressLoopTest, what_happens_while_a_thread_falls_asleep_is_not_missed) {
    bool came = false;
    work.on_prepare = [&] { return came = true; };
    EXPECT_TRUE(loop.serve_until([&] { return came; }, now() + far_away));
    EXPECT_EQ(channel.sleeps(), 0u) << "it looks once more after it has said that it sleeps";
    EXPECT_EQ(work.threads_asleep, 0);
}

TEST_F(ProgressLoopTest, nobody_sleeps_while_there_is_something_to_do_first) {
    int refused = 0;
    work.on_prepare = [&] { return ++refused > 3; };
    work.longest = 1ms;
    EXPECT_TRUE(loop.serve_until([&] { return refused == 4; }, now() + far_away));
    EXPECT_EQ(channel.sleeps(), 0u);
    channel.deliver(0, {});
    EXPECT_FALSE(loop.serve_until([] { return false; }, now() + 2ms)) << "nobody polls it here";
    EXPECT_EQ(channel.sleeps(), 0u) << "a message is there already";
}

TEST_F(ProgressLoopTest, nobody_sleeps_for_longer_than_may_be) {
    work.longest = 1ms;
    int looks = 0;
    EXPECT_TRUE(loop.serve_until([&] { return ++looks == 50; }, now() + far_away));
    EXPECT_GE(channel.slept_out(), 1u);
}

TEST_F(ProgressLoopTest, a_wait_in_vain_ends_at_its_deadline) {
    const Instant end = now() + 5ms;
    EXPECT_FALSE(loop.serve_until([] { return false; }, end));
    EXPECT_GE(now(), end);
    EXPECT_TRUE(loop.serve_until([] { return true; }, now() - 1s)) << "what is done needs no time";
}

TEST_F(ProgressLoopTest, a_channel_that_cannot_be_slept_on_jointly_is_looked_at_again_and_again) {
    ScriptedChannel alone(1);
    alone.is_joint = false;
    ProgressLoop other(alone, work, {}, {});
    int looks = 0;
    EXPECT_TRUE(other.serve_until([&] { return ++looks == 50; }, now() + far_away));
    EXPECT_GE(alone.slept_out(), 1u);
}

TEST_F(ProgressLoopTest, a_thread_has_the_turn_once_and_others_not_meanwhile) {
    EXPECT_FALSE(loop.has_turn());
    {
        const Turn turn(loop);
        EXPECT_TRUE(loop.has_turn());
        EXPECT_FALSE(turn.is_inner());
        {
            const Turn inner(loop);
            EXPECT_TRUE(inner.is_inner());
        }
        EXPECT_TRUE(loop.has_turn()) << "the inner one gives nothing back";
        std::thread([&] { EXPECT_FALSE(loop.has_turn()); }).join();
    }
    EXPECT_FALSE(loop.has_turn());
}

TEST_F(ProgressLoopTest, threads_take_the_turn_one_at_a_time) {
    constexpr int rounds = 2000, threads = 3;
    int count = 0; // not atomic
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread)
        all.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                const Turn turn(loop);
                ++count;
            }
        });
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(count, rounds * threads);
}

TEST_F(ProgressLoopTest, a_condition_that_throws_ends_the_wait_and_the_sleep_that_it_prepared) {
    struct Stop {};
    bool is_prepared = false;
    work.on_prepare = [&] { return is_prepared = true; };
    const auto done = [&]() -> bool {
        if (is_prepared) throw Stop{};
        return false;
    };
    EXPECT_THROW(loop.serve_until(done, now() + far_away), Stop);
    EXPECT_EQ(work.threads_asleep, 0);
    EXPECT_FALSE(loop.has_turn());
}

TEST_F(ProgressLoopTest, tasks_run_without_the_turn) {
    bool had_turn = true;
    work.on_work = [&]() -> std::size_t { return work.has_task ? 1 : 0; };
    work.has_task = true;
    work.task = [&] {
        had_turn = loop.has_turn();
        work.has_task = false;
    };
    EXPECT_TRUE(loop.serve_until([&] { return !work.has_task; }, now() + far_away));
    EXPECT_FALSE(had_turn);
}

// ---- the background

TEST_F(ProgressLoopTest, the_background_sleeps_on_the_channel_and_works_when_something_comes) {
    std::atomic<int> handled{0};
    std::atomic<bool> came{false};
    work.on_work = [&]() -> std::size_t { return came.exchange(false) ? ++handled, 1 : 0; };
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    EXPECT_NE(channel.sleeper(), std::this_thread::get_id());
    came = true;
    channel.ring();
    EXPECT_TRUE(comes_true([&] { return handled == 1; }));
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    loop.stop();
    EXPECT_EQ(channel.slept_out(), 0u) << "it was woken to end";
}

TEST_F(ProgressLoopTest, a_thread_that_waits_takes_the_background_s_place_on_the_channel) {
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    std::atomic<bool> came{false};
    Waiter waiter(loop, [&] { return came.load(); });
    ASSERT_TRUE(comes_true([&] { return channel.sleeper() == waiter.id(); }));
    ASSERT_TRUE(sleep_now(1));
    EXPECT_EQ(channel.wakes(), 1u) << "it is asked once";
    came = true;
    channel.ring();
    EXPECT_TRUE(waiter.was_woken());
    EXPECT_TRUE(comes_true([&] { return channel.is_asleep() && channel.sleeper() != waiter.id(); }))
        << "and comes back when nobody waits";
    loop.stop();
    EXPECT_EQ(channel.slept_out(), 0u);
}

TEST_F(ProgressLoopTest, the_background_naps_while_a_thread_waits_unless_it_is_called) {
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    std::atomic<bool> came{false};
    Waiter waiter(loop, [&] { return came.load(); });
    ASSERT_TRUE(comes_true([&] { return channel.sleeper() == waiter.id(); }));
    ASSERT_TRUE(sleep_now(1));
    const unsigned before = work.background_looks;
    std::this_thread::sleep_for(5ms); // some naps; it may look late, and not at all
    EXPECT_EQ(work.background_looks, before);
    {
        const Turn turn(loop);
        loop.on_duty(turn);
    }
    EXPECT_TRUE(comes_true([&] { return work.background_looks > before; }));
    came = true;
    channel.ring();
    EXPECT_TRUE(waiter.was_woken());
}

// A background that leaves the work to the thread works only when the system stops that thread for longer than a nap.
TEST_F(ProgressLoopTest, the_background_works_while_a_thread_makes_calls_that_need_not_wait) {
    constexpr int arrivals = 1000;
    std::atomic<bool> came{false};
    std::atomic<int> handled{0};
    work.on_work = [&]() -> std::size_t {
        return loopback::is_background() && came.exchange(false) ? ++handled, 1 : 0;
    };
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    const Instant end = now() + far_away;
    for (int i = 1; i <= arrivals && now() < end; ++i) {
        came = true;
        channel.ring();
        while (handled < i && now() < end) EXPECT_TRUE(loop.serve_until([] { return true; }, end));
    }
    EXPECT_EQ(handled, arrivals);
    loop.stop();
}

TEST_F(ProgressLoopTest, whoever_sleeps_on_the_channel_is_called_to_what_goes_on_though_nothing_comes) {
    std::atomic<bool> came{false};
    {
        const Turn turn(loop);
        loop.call(turn);
    }
    EXPECT_EQ(channel.wakes(), 0u) << "nobody sleeps";
    Waiter waiter(loop, [&] { return came.load(); });
    ASSERT_TRUE(sleep_now(1));
    {
        const Turn turn(loop);
        came = true;
        loop.call(turn);
    }
    EXPECT_EQ(channel.wakes(), 1u);
    EXPECT_TRUE(waiter.was_woken());
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    const unsigned before = work.background_looks;
    {
        const Turn turn(loop);
        loop.call(turn);
    }
    EXPECT_EQ(channel.wakes(), 2u);
    EXPECT_TRUE(comes_true([&] { return work.background_looks > before; }));
}

TEST_F(ProgressLoopTest, who_is_called_soon_is_woken_from_sleep_and_not_from_a_short_nap) {
    loop.start();
    ASSERT_TRUE(comes_true([&] { return channel.is_asleep(); }));
    const auto call_soon = [&] {
        const Turn turn(loop);
        loop.call_soon(turn);
    };
    unsigned before = work.background_looks;
    call_soon();
    EXPECT_EQ(channel.wakes(), 1u);
    EXPECT_TRUE(comes_true([&] { return work.background_looks > before; }));
    std::atomic<bool> came{false};
    Waiter waiter(loop, [&] { return came.load(); });
    ASSERT_TRUE(comes_true([&] { return channel.sleeper() == waiter.id(); }));
    ASSERT_TRUE(sleep_now(1));
    const unsigned wakes = channel.wakes();
    came = true;
    call_soon();
    EXPECT_EQ(channel.wakes(), wakes + 1) << "a thread that sleeps does what there is to do";
    EXPECT_TRUE(waiter.was_woken());
    before = work.background_looks;
    call_soon();
    EXPECT_TRUE(comes_true([&] { return work.background_looks > before; })) << "it comes by itself";
}

TEST_F(ProgressLoopTest, what_is_to_be_done_soon_is_left_to_a_thread_that_waits_awake) {
    ProgressLoop spinning(channel, work, {.spin_max = std::chrono::hours(1)}, {});
    std::atomic<unsigned> looks{0};
    std::atomic<bool> came{false};
    Waiter waiter(spinning, [&] { return ++looks != 0 && came; });
    ASSERT_TRUE(comes_true([&] { return looks > 1; }));
    spinning.start();
    std::this_thread::sleep_for(50ms); // the background's naps are long now
    for (int i = 0; i < 50; ++i) {
        std::this_thread::sleep_for(1ms);
        const Turn turn(spinning);
        spinning.call_soon(turn);
    }
    EXPECT_EQ(work.background_looks, 0u);
    came = true;
    EXPECT_TRUE(waiter.was_woken());
    EXPECT_TRUE(comes_true([&] { return work.background_looks != 0; })) << "nobody waits any more";
}

TEST_F(ProgressLoopTest, without_a_background_nobody_looks) {
    ProgressLoop quiet(channel, work, {}, {.in_background = false});
    quiet.start();
    {
        const Turn turn(quiet);
        quiet.on_duty(turn);
        quiet.call(turn);
        quiet.call_soon(turn);
    }
    quiet.stop();
    EXPECT_EQ(work.background_looks, 0u);
    EXPECT_EQ(channel.wakes(), 0u);
}

} // namespace
} // namespace kumi::engine
