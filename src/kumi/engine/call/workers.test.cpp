#include "kumi/engine/call/workers.hpp"

#include "kumi/base/clock.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <latch>
#include <semaphore>

namespace kumi::engine {
namespace {

using namespace std::chrono_literals;

/// Waits until `done()`, for some seconds at most.
template <class Done>
bool eventually(Done&& done) {
    for (const Instant end = now() + 20s; now() < end; std::this_thread::sleep_for(1ms))
        if (done()) return true;
    return done();
}

bool add(Workers& workers, Workers::Task task) { return workers.add(task); }

/// As the progress loop does around a wait of this thread.
template <class Wait>
void wait_observed(Wait&& wait) {
    WaitObserver* const observer = WaitObserver::of_this_thread();
    ASSERT_NE(observer, nullptr) << "not on a worker";
    observer->begin_wait();
    wait();
    observer->end_wait();
}

TEST(Workers, run_each_task_once_and_begin_in_order) {
    std::vector<int> begun;
    {
        Workers workers(1);
        for (int i = 0; i < 100; ++i)
            EXPECT_TRUE(add(workers, [&begun, i](bool may_run) {
                EXPECT_TRUE(may_run);
                begun.push_back(i); // one at a time
            }));
        std::latch last(1);
        EXPECT_TRUE(add(workers, [&](bool) { last.count_down(); }));
        last.wait();
    }
    ASSERT_EQ(begun.size(), 100u);
    EXPECT_TRUE(std::ranges::is_sorted(begun));
}

TEST(Workers, run_so_many_at_once_and_no_more) {
    std::atomic<int> inside{0}, most{0}, done{0};
    std::counting_semaphore<> go(0);
    Workers workers(3); // ends before what its tasks use
    for (int i = 0; i < 12; ++i)
        add(workers, [&](bool) {
            const int now_inside = ++inside;
            for (int seen = most; seen < now_inside && !most.compare_exchange_weak(seen, now_inside);) {}
            go.acquire();
            --inside;
            ++done;
        });
    EXPECT_TRUE(eventually([&] { return inside == 3; }));
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(inside, 3);
    go.release(12);
    EXPECT_TRUE(eventually([&] { return done == 12; }));
    EXPECT_EQ(most, 3);
}

TEST(Workers, a_task_that_waits_makes_room_for_others_in_any_order) {
    std::binary_semaphore first_may_go(0), all_done(0);
    std::atomic<int> inner{0};
    Workers workers(1);
    add(workers, [&](bool) {
        wait_observed([&] { first_may_go.acquire(); }); // for the last one
        all_done.release();
    });
    for (int i = 0; i < 50; ++i)
        add(workers, [&](bool) {
            ++inner;
            if (inner == 50) wait_observed([&] { first_may_go.release(); });
        });
    EXPECT_TRUE(all_done.try_acquire_for(20s));
    EXPECT_EQ(inner, 50);
}

TEST(Workers, nested_deeper_than_there_are_threads_refuse_instead_of_hanging) {
    constexpr std::size_t most = 5;
    std::atomic<int> ran{0}, refused{0};
    std::counting_semaphore<> go(0);
    std::counting_semaphore<> again(0);
    std::function<void(bool)> nest;
    Workers workers(2, most);
    nest = [&](bool may_run) {
        if (!may_run) {
            ++refused;
            return go.release(100);
        }
        ++ran;
        add(workers, nest);
        wait_observed([&] { go.acquire(); });
    };
    add(workers, nest);
    EXPECT_TRUE(eventually([&] { return refused == 1; }));
    EXPECT_EQ(ran, static_cast<int>(most));
    // Afterwards there is room again.
    EXPECT_TRUE(eventually([&] {
        add(workers, [&](bool may_run) {
            if (may_run) again.release();
        });
        return again.try_acquire_for(1ms);
    }));
}

TEST(Workers, that_are_stopped_wait_for_what_runs_and_drop_what_has_not_begun) {
    std::atomic<bool> is_over{false};
    std::binary_semaphore has_begun(0);
    Workers workers(1);
    auto held = std::make_shared<int>(0);
    add(workers, [&](bool) {
        has_begun.release();
        std::this_thread::sleep_for(30ms);
        is_over = true;
    });
    add(workers, [held](bool) { ADD_FAILURE() << "it was dropped"; });
    has_begun.acquire();
    workers.stop();
    EXPECT_TRUE(is_over);
    EXPECT_EQ(held.use_count(), 1) << "what a dropped task holds is let go";
    EXPECT_TRUE(add(workers, [](bool) { ADD_FAILURE() << "after the end"; })) << "and so is what comes later";
}

TEST(Workers, other_threads_have_no_observer) { EXPECT_EQ(WaitObserver::of_this_thread(), nullptr); }

} // namespace
} // namespace kumi::engine
