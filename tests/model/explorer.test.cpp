// Litmus tests: small programs whose outcomes under the C++ memory model are known. Each is asked both ways, that the
// explorer shows the weak outcomes it should and none that it must not, since a model that shows too little would
// prove anything. A random test compares the reduced search with the full one.

#include "explorer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace kumi::model {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto acq_rel = std::memory_order_acq_rel;
constexpr auto seq_cst = std::memory_order_seq_cst;

using Results = std::vector<int>;
using Fence = void (*)();

void no_fence() {}

/// The state every litmus test shares: two atomics, one plain, and what the threads saw.
struct Shared {
    Atomic<int> x;
    Atomic<int> y;
    Plain<int> data{0};
    Results seen = Results(4, -1);
};

using Body = std::function<void(Shared&)>;

Scenario litmus(const std::vector<Body>& bodies, const Body& finally = {}) {
    auto shared = std::make_shared<Shared>();
    Scenario scenario;
    for (const Body& body : bodies) scenario.threads.push_back([shared, body] { body(*shared); });
    if (finally) scenario.finally = [shared, finally] { finally(*shared); };
    return scenario;
}

/// Everything the threads can see between them.
std::set<Results> outcomes_of(const std::vector<Body>& bodies, Limits limits = {}) {
    std::set<Results> outcomes;
    const auto collect = [&](Shared& shared) { outcomes.insert(shared.seen); };
    const Outcome outcome = explore([&] { return litmus(bodies, collect); }, limits);
    EXPECT_TRUE(outcome.complete) << outcome.failure.value_or("too many executions");
    return outcomes;
}

Outcome explore_litmus(const std::vector<Body>& bodies) {
    return explore([&] { return litmus(bodies); });
}

bool is_race(const Outcome& outcome) { return outcome.failure && outcome.failure->starts_with("data race on"); }

bool both_zero_in_store_buffering(std::memory_order store, std::memory_order load, Fence left, Fence right) {
    const auto outcomes = outcomes_of({
        [=](Shared& s) { s.x.store(1, store), left(), s.seen[0] = s.y.load(load); },
        [=](Shared& s) { s.y.store(1, store), right(), s.seen[1] = s.x.load(load); },
    });
    EXPECT_TRUE(outcomes.contains({1, 1, -1, -1}));
    EXPECT_TRUE(outcomes.contains({0, 1, -1, -1}));
    EXPECT_TRUE(outcomes.contains({1, 0, -1, -1}));
    return outcomes.contains({0, 0, -1, -1});
}

TEST(store_buffering, shows_both_zero_without_fences) {
    EXPECT_TRUE(both_zero_in_store_buffering(relaxed, relaxed, no_fence, no_fence));
    EXPECT_TRUE(both_zero_in_store_buffering(release, acquire, no_fence, no_fence));
}

TEST(store_buffering, never_shows_both_zero_with_full_fences_or_seq_cst) {
    EXPECT_FALSE(both_zero_in_store_buffering(relaxed, relaxed, Memory::full_fence, Memory::full_fence));
    EXPECT_FALSE(both_zero_in_store_buffering(seq_cst, seq_cst, no_fence, no_fence));
}

TEST(store_buffering, shows_both_zero_if_one_side_has_no_fence) {
    EXPECT_TRUE(both_zero_in_store_buffering(relaxed, relaxed, Memory::full_fence, no_fence));
    EXPECT_TRUE(both_zero_in_store_buffering(relaxed, relaxed, no_fence, Memory::full_fence));
}

TEST(store_buffering, shows_both_zero_if_only_the_stores_or_only_the_loads_are_seq_cst) {
    EXPECT_TRUE(both_zero_in_store_buffering(seq_cst, acquire, no_fence, no_fence));
    EXPECT_TRUE(both_zero_in_store_buffering(release, seq_cst, no_fence, no_fence));
}

TEST(store_buffering, needs_one_heavy_fence_for_a_light_one) {
    EXPECT_FALSE(both_zero_in_store_buffering(relaxed, relaxed, Memory::light_fence, Memory::heavy_fence));
    EXPECT_FALSE(both_zero_in_store_buffering(relaxed, relaxed, Memory::heavy_fence, Memory::light_fence));
    EXPECT_FALSE(both_zero_in_store_buffering(relaxed, relaxed, Memory::heavy_fence, Memory::heavy_fence));
    EXPECT_TRUE(both_zero_in_store_buffering(relaxed, relaxed, Memory::light_fence, Memory::light_fence));
}

TEST(store_buffering, never_shows_both_zero_between_a_fence_and_a_seq_cst_access) {
    const auto outcomes = outcomes_of({
        [](Shared& s) { s.x.store(1, relaxed), Memory::full_fence(), s.seen[0] = s.y.load(relaxed); },
        [](Shared& s) { s.y.store(1, seq_cst), s.seen[1] = s.x.load(seq_cst); },
    });
    EXPECT_FALSE(outcomes.contains({0, 0, -1, -1}));
}

std::vector<Body> message_passing(std::memory_order store, std::memory_order load, Fence before, Fence after) {
    return {
        [=](Shared& s) { s.x.store(1, relaxed), before(), s.y.store(1, store); },
        [=](Shared& s) { s.seen[0] = s.y.load(load), after(), s.seen[1] = s.x.load(relaxed); },
    };
}

bool stale_message(std::memory_order store, std::memory_order load, Fence before = no_fence, Fence after = no_fence) {
    const auto outcomes = outcomes_of(message_passing(store, load, before, after));
    EXPECT_TRUE(outcomes.contains({1, 1, -1, -1}));
    EXPECT_TRUE(outcomes.contains({0, 0, -1, -1}));
    return outcomes.contains({1, 0, -1, -1});
}

TEST(message_passing, shows_a_stale_message_unless_released_and_acquired) {
    EXPECT_TRUE(stale_message(relaxed, relaxed));
    EXPECT_TRUE(stale_message(release, relaxed));
    EXPECT_TRUE(stale_message(relaxed, acquire));
    EXPECT_FALSE(stale_message(release, acquire));
}

TEST(message_passing, may_use_a_fence_on_either_side) {
    EXPECT_FALSE(stale_message(relaxed, acquire, Memory::full_fence));
    EXPECT_FALSE(stale_message(release, relaxed, no_fence, Memory::full_fence));
    EXPECT_FALSE(stale_message(relaxed, relaxed, Memory::full_fence, Memory::full_fence));
    EXPECT_TRUE(stale_message(relaxed, relaxed, Memory::full_fence, no_fence));
    EXPECT_TRUE(stale_message(relaxed, relaxed, no_fence, Memory::full_fence));
}

Outcome plain_message(std::memory_order store, std::memory_order load) {
    return explore_litmus({
        [=](Shared& s) { s.data.set(7), s.y.store(1, store); },
        [=](Shared& s) {
            if (s.y.load(load) == 1) check(s.data.get() == 7, "old data");
        },
    });
}

TEST(message_passing, races_on_plain_data_unless_released_and_acquired) {
    EXPECT_TRUE(is_race(plain_message(relaxed, relaxed)));
    EXPECT_TRUE(is_race(plain_message(release, relaxed)));
    EXPECT_TRUE(is_race(plain_message(relaxed, acquire)));
    EXPECT_TRUE(plain_message(release, acquire).complete);
    EXPECT_TRUE(plain_message(seq_cst, seq_cst).complete);
}

TEST(plain, races_if_written_after_the_message_was_released) {
    EXPECT_TRUE(is_race(explore_litmus({
        [](Shared& s) { s.y.store(1, release), s.data.set(7); },
        [](Shared& s) {
            if (s.y.load(acquire) == 1) s.data.get();
        },
    })));
}

Outcome overwrite_after_read(std::memory_order store, std::memory_order load) {
    return explore_litmus({
        [=](Shared& s) { s.data.get(), s.y.store(1, store); },
        [=](Shared& s) {
            if (s.y.load(load) == 1) s.data.set(7);
        },
    });
}

TEST(plain, races_if_overwritten_before_its_reader_has_released_it) {
    EXPECT_TRUE(is_race(overwrite_after_read(relaxed, acquire)));
    EXPECT_TRUE(is_race(overwrite_after_read(release, relaxed)));
    EXPECT_TRUE(overwrite_after_read(release, acquire).complete);
}

TEST(plain, may_be_read_by_many_at_once) {
    const Body read = [](Shared& s) { s.data.get(), s.x.load(relaxed), s.data.get(); };
    EXPECT_TRUE(explore_litmus({read, read, read}).complete);
}

TEST(plain, races_are_not_hidden_by_full_fences_alone) {
    EXPECT_TRUE(is_race(explore_litmus({
        [](Shared& s) { s.data.set(7), Memory::full_fence(); },
        [](Shared& s) { Memory::full_fence(), s.data.get(); },
    })));
}

TEST(plain, races_though_a_heavy_fence_may_have_come_in_time) {
    // The interrupt comes between the first thread's store and load, but maybe before set(): y need not carry the data.
    EXPECT_TRUE(is_race(explore_litmus({
        [](Shared& s) {
            s.x.store(1, relaxed), s.data.set(7);
            if (s.x.load(relaxed) == 2) s.y.store(1, relaxed);
        },
        [](Shared& s) {
            if (s.x.load(relaxed) == 0) return;
            Memory::heavy_fence();
            s.x.store(2, relaxed);
            if (s.y.load(acquire) == 1) s.data.get();
        },
    })));
}

TEST(plain, is_released_by_a_heavy_fence_that_comes_after_it) {
    const auto outcome = explore_litmus({
        [](Shared& s) {
            s.data.set(7), s.x.store(1, relaxed);
            if (s.x.load(relaxed) == 2) s.y.store(1, relaxed);
        },
        [](Shared& s) {
            if (s.x.load(relaxed) == 0) return;
            Memory::heavy_fence();
            s.x.store(2, relaxed);
            if (s.y.load(acquire) == 1) s.data.get();
        },
    });
    EXPECT_TRUE(outcome.complete) << outcome.failure.value_or("");
}

TEST(plain, is_ordered_before_a_heavy_fence_of_a_thread_that_saw_a_later_store) {
    const auto outcome = explore_litmus({
        [](Shared& s) { s.data.set(7), s.x.store(1, relaxed); },
        [](Shared& s) {
            if (s.x.load(relaxed) == 0) return;
            Memory::heavy_fence();
            s.data.get();
        },
    });
    EXPECT_TRUE(outcome.complete) << outcome.failure.value_or("");
}

TEST(plain, races_if_the_heavy_fence_comes_before_the_look) {
    EXPECT_TRUE(is_race(explore_litmus({
        [](Shared& s) { s.data.set(7), s.x.store(1, relaxed); },
        [](Shared& s) {
            Memory::heavy_fence();
            if (s.x.load(relaxed) == 1) s.data.get();
        },
    })));
}

TEST(plain, is_ordered_after_the_heavy_fence_of_a_thread_by_a_later_store) {
    const auto outcome = explore_litmus({
        [](Shared& s) { s.data.set(7), Memory::heavy_fence(), s.x.store(1, relaxed); },
        [](Shared& s) {
            if (s.x.load(relaxed) == 1) s.data.get();
        },
    });
    EXPECT_TRUE(outcome.complete) << outcome.failure.value_or("");
}

TEST(plain, races_if_a_thread_writes_after_its_heavy_fence) {
    EXPECT_TRUE(is_race(explore_litmus({
        [](Shared& s) { Memory::heavy_fence(), s.data.set(7), s.x.store(1, relaxed); },
        [](Shared& s) {
            if (s.x.load(relaxed) == 1) s.data.get();
        },
    })));
}

TEST(coherence, two_loads_never_see_writes_backwards) {
    const auto outcomes = outcomes_of({
        [](Shared& s) { s.x.store(1, relaxed), s.x.store(2, relaxed); },
        [](Shared& s) { s.seen[0] = s.x.load(relaxed), s.seen[1] = s.x.load(relaxed); },
    });
    EXPECT_EQ(outcomes, (std::set<Results>{
                            {0, 0, -1, -1}, {0, 1, -1, -1}, {0, 2, -1, -1}, {1, 1, -1, -1}, {1, 2, -1, -1},
                            {2, 2, -1, -1}}));
}

TEST(coherence, a_thread_sees_its_own_store) {
    EXPECT_TRUE(explore_litmus({[](Shared& s) {
                                    s.x.store(1, relaxed);
                                    check(s.x.load(relaxed) != 0, "own store lost");
                                },
                                [](Shared& s) { s.x.store(2, relaxed); }})
                    .complete);
}

TEST(coherence, two_readers_agree_on_the_order_of_one_atomics_writes) {
    const auto outcomes = outcomes_of({
        [](Shared& s) { s.x.store(1, relaxed); },
        [](Shared& s) { s.x.store(2, relaxed); },
        [](Shared& s) { s.seen[0] = s.x.load(relaxed), s.seen[1] = s.x.load(relaxed); },
        [](Shared& s) { s.seen[2] = s.x.load(relaxed), s.seen[3] = s.x.load(relaxed); },
    });
    EXPECT_TRUE(outcomes.contains({1, 2, 1, 2}));
    EXPECT_TRUE(outcomes.contains({2, 1, 2, 1}));
    EXPECT_FALSE(outcomes.contains({1, 2, 2, 1}));
}

bool readers_disagree(std::memory_order store, std::memory_order load, Fence between = no_fence) {
    const auto outcomes = outcomes_of({
        [=](Shared& s) { s.x.store(1, store); },
        [=](Shared& s) { s.y.store(1, store); },
        [=](Shared& s) { s.seen[0] = s.x.load(load), between(), s.seen[1] = s.y.load(load); },
        [=](Shared& s) { s.seen[2] = s.y.load(load), between(), s.seen[3] = s.x.load(load); },
    });
    return outcomes.contains({1, 0, 1, 0});
}

TEST(independent_writes, are_seen_in_different_orders_unless_seq_cst) {
    EXPECT_TRUE(readers_disagree(release, acquire));
    EXPECT_TRUE(readers_disagree(seq_cst, acquire));
    EXPECT_FALSE(readers_disagree(seq_cst, seq_cst));
    EXPECT_FALSE(readers_disagree(relaxed, seq_cst));   // what one seq_cst load saw, the next one must not miss
    EXPECT_FALSE(readers_disagree(relaxed, relaxed, Memory::full_fence));
}

TEST(load_buffering, is_not_shown) {
    const auto outcomes = outcomes_of({
        [](Shared& s) { s.seen[0] = s.x.load(relaxed), s.y.store(1, relaxed); },
        [](Shared& s) { s.seen[1] = s.y.load(relaxed), s.x.store(1, relaxed); },
    });
    EXPECT_FALSE(outcomes.contains({1, 1, -1, -1}));
}

Outcome message_through(const Body& relay) {
    return explore_litmus({
        [](Shared& s) { s.data.set(7), s.y.store(1, release); },
        relay,
        [](Shared& s) {
            if (s.y.load(acquire) == 2) s.data.get();
        },
    });
}

TEST(release_sequence, goes_on_through_a_relaxed_update_but_not_through_a_store) {
    const auto by_update = message_through([](Shared& s) {
        int expected = 1;
        s.y.compare_exchange_strong(expected, 2, relaxed);
    });
    EXPECT_TRUE(by_update.complete) << by_update.failure.value_or("");
    EXPECT_TRUE(is_race(message_through([](Shared& s) {
        if (s.y.load(relaxed) == 1) s.y.store(2, relaxed);
    })));
}

TEST(exchange, gives_the_token_to_one_thread_only) {
    const auto outcomes = outcomes_of({
        [](Shared& s) { s.seen[0] = s.x.exchange(1, relaxed); },
        [](Shared& s) { s.seen[1] = s.x.exchange(1, relaxed); },
    });
    EXPECT_EQ(outcomes, (std::set<Results>{{0, 1, -1, -1}, {1, 0, -1, -1}}));
}

TEST(fetch_add, loses_no_count) {
    const Body add = [](Shared& s) { s.x.fetch_add(1, relaxed), s.x.fetch_add(1, relaxed); };
    const auto total = [](Shared& s) { check(s.x.load() == 6, "count lost"); };
    EXPECT_TRUE(explore([&] { return litmus({add, add, add}, total); }).complete);
}

TEST(bit_updates, keep_the_other_bits) {
    const auto total = [](Shared& s) { check(s.x.load() == 5, "bit lost"); };
    const std::vector<Body> bodies{
        [](Shared& s) { s.x.fetch_or(1, relaxed); },
        [](Shared& s) { s.x.fetch_or(4, relaxed); },
        [](Shared& s) { s.x.fetch_or(2, relaxed), s.x.fetch_and(~2, relaxed); },
    };
    EXPECT_TRUE(explore([&] { return litmus(bodies, total); }).complete);
}

TEST(compare_exchange, may_fail_on_an_old_value_but_never_succeed_on_one) {
    const auto outcomes = outcomes_of({
        [](Shared& s) { s.x.store(1, relaxed), s.y.store(1, relaxed); },
        [](Shared& s) {
            s.seen[0] = s.y.load(relaxed);
            int expected = 1;
            s.seen[1] = s.x.compare_exchange_strong(expected, 2, relaxed) ? 1 : 0;
            s.seen[2] = s.x.exchange(3, relaxed);
            int zero = 0;
            s.seen[3] = s.x.compare_exchange_strong(zero, 4, relaxed) ? 1 : 0;
        },
    });
    EXPECT_TRUE(outcomes.contains({1, 0, 1, 0}));   // stale failure: the store is there, as the exchange shows
    EXPECT_TRUE(outcomes.contains({1, 1, 2, 0}));
    for (const Results& seen : outcomes) EXPECT_EQ(seen[3], 0);
}

TEST(choose, tries_every_number) {
    std::set<unsigned> tried;
    const auto outcome = explore([&] {
        return Scenario{{[&] { tried.insert(choose(3) * 10 + (choose() ? 1 : 0)); }}, {}};
    });
    EXPECT_TRUE(outcome.complete);
    EXPECT_EQ(outcome.executions, 6U);
    EXPECT_EQ(tried, (std::set<unsigned>{0, 1, 10, 11, 20, 21}));
}

TEST(assume, drops_executions_that_only_wait) {
    std::set<Results> outcomes;
    const auto outcome = explore([&] {
        return litmus({[](Shared& s) { s.data.set(7), s.y.store(1, release); },
                       [](Shared& s) { assume(s.y.load(acquire) == 1), s.seen[0] = s.data.get(); }},
                      [&](Shared& s) { outcomes.insert(s.seen); });
    });
    EXPECT_TRUE(outcome.complete);
    EXPECT_EQ(outcomes, (std::set<Results>{{7, -1, -1, -1}}));
}

TEST(assume, lets_the_other_threads_fail) {
    EXPECT_EQ(explore_litmus({[](Shared& s) { s.x.fetch_add(1), assume(false); },
                              [](Shared& s) { check(s.x.load() == 0, "seen"); }})
                  .failure,
              "seen");
}

TEST(finally, sees_the_newest_values) {
    const Body add = [](Shared& s) { s.x.store(s.x.load(relaxed) + 1, relaxed); };
    std::set<int> totals;
    EXPECT_TRUE(explore([&] { return litmus({add, add}, [&](Shared& s) { totals.insert(s.x.load(relaxed)); }); })
                    .complete);
    EXPECT_EQ(totals, (std::set<int>{1, 2}));
}

TEST(a_failure, replays_from_its_choices) {
    const auto make = [] {
        return litmus({message_passing(relaxed, acquire, no_fence, no_fence)[0], [](Shared& s) {
                           if (s.y.load(acquire) == 1) check(s.x.load(relaxed) == 1, "stale message");
                       }});
    };
    const Outcome found = explore(make);
    ASSERT_EQ(found.failure, "stale message");
    EXPECT_FALSE(found.complete);
    const Outcome again = replay(make, found.choices);
    EXPECT_EQ(again.failure, found.failure);
    EXPECT_EQ(again.choices, found.choices);
    EXPECT_EQ(again.executions, 1U);
    EXPECT_EQ(again.log.back(), "thread 1: stale load of atomic #0, relaxed, value 0");
    EXPECT_FALSE(replay(make, {}).failure);
}

TEST(a_failure, in_finally_or_by_exception_is_reported) {
    const auto in_finally = [] { return Scenario{{}, [] { check(false, "at the end"); }}; };
    EXPECT_EQ(explore(in_finally).failure, "at the end");
    const auto by_exception = [] { return Scenario{{[] { throw std::runtime_error("oops"); }}, {}}; };
    EXPECT_EQ(explore(by_exception).failure, "thread 0 threw: oops");
}

TEST(a_failure, frees_what_all_threads_hold_even_under_noexcept) {
    auto token = std::make_shared<int>(0);
    const auto hold = [token](Shared& s) noexcept {
        const auto held = token;
        for (int i = 0; i < 3; ++i) s.x.fetch_add(*held + 1);
    };
    const Body fails = [token](Shared& s) {
        const auto held = token;
        check(s.x.load() < 2, "two");
    };
    EXPECT_EQ(explore_litmus({hold, fails, hold}).failure, "two");
    const auto references = token.use_count();
    EXPECT_EQ(explore_litmus({hold, fails, hold}).failure, "two");
    EXPECT_EQ(token.use_count(), references);
}

TEST(limits, stop_the_search_before_it_is_complete) {
    const Body store = [](Shared& s) { s.x.store(1), s.x.store(2), s.x.store(3); };
    const auto make = [&] { return litmus({store, store, store}); };
    const Outcome outcome = explore(make, {.executions_max = 10});
    EXPECT_EQ(outcome.executions, 10U);
    EXPECT_FALSE(outcome.complete);
    EXPECT_FALSE(outcome.failure);
    EXPECT_TRUE(explore(make).complete);
}

TEST(limits, report_a_loop_without_a_bound) {
    const std::vector<Body> bodies{[](Shared& s) { s.x.store(1); },
                                   [](Shared& s) {
                                       while (s.x.load(relaxed) == 0) {}
                                   }};
    const auto outcome = explore([&] { return litmus(bodies); }, {.operations_max = 100});
    ASSERT_TRUE(outcome.failure);
    EXPECT_TRUE(outcome.failure->starts_with("more than 100 operations")) << *outcome.failure;
}

TEST(limits, bound_context_switches) {
    // Three switches away from a thread that could go on are what it takes to see this.
    const std::vector<Body> bodies{
        [](Shared& s) {
            for (int i = 0; i < 2; ++i) s.x.exchange(1), s.seen[0] += s.x.exchange(1) == 2 ? 1 : 0;
        },
        [](Shared& s) { s.x.exchange(2), s.x.exchange(2); },
    };
    const auto seen_twice = [&](unsigned context_switches_max) {
        return outcomes_of(bodies, {.context_switches_max = context_switches_max}).contains({1, -1, -1, -1});
    };
    EXPECT_FALSE(seen_twice(2));
    EXPECT_TRUE(seen_twice(3));
    EXPECT_TRUE(seen_twice(unlimited));
}

using Step = std::function<int(Shared&)>;   // returns what it read

Step random_step(std::mt19937& random, int value) {
    const auto below = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
    const auto load_order = std::array{relaxed, acquire, seq_cst}[below(3)];
    const auto store_order = std::array{relaxed, release, seq_cst}[below(3)];
    const auto update_order = std::array{relaxed, acq_rel, seq_cst}[below(3)];
    const auto at = [on_x = below(2) == 0](Shared& s) -> Atomic<int>& { return on_x ? s.x : s.y; };
    const unsigned kind = below(24);
    if (kind < 9) return [=](Shared& s) { return at(s).load(load_order); };
    if (kind < 15) return [=](Shared& s) { return at(s).store(value, store_order), 0; };
    if (kind < 18) return [=](Shared& s) { return at(s).exchange(value, update_order); };
    if (kind == 21) return [](Shared&) { return Memory::heavy_fence(), 0; };
    if (kind > 21) return [](Shared&) { return Memory::full_fence(), 0; };
    return [=](Shared& s) {
        int expected = 0;
        at(s).compare_exchange_strong(expected, value, update_order);
        return expected;
    };
}

/// Straight-line code whose result tells everything it read.
Step random_steps(std::mt19937& random, int thread) {
    std::vector<Step> steps;
    for (int step = 0; step < 3; ++step) steps.push_back(random_step(random, 1 + thread * 3 + step));
    return [steps](Shared& s) {
        int digits = 0;
        for (const Step& step : steps) digits = digits * 16 + step(s);
        return digits;
    };
}

constexpr Limits full_search{.context_switches_max = 1000};   // any bound turns sleep sets off

TEST(sleep_sets, lose_no_outcome_of_random_programs) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937 random(seed);
        std::vector<Body> bodies;
        for (std::size_t thread = 0; thread < 3; ++thread) {
            bodies.push_back([steps = random_steps(random, static_cast<int>(thread)), thread](Shared& s) {
                s.seen[thread] = steps(s);
            });
        }
        EXPECT_EQ(outcomes_of(bodies), outcomes_of(bodies, full_search)) << "seed " << seed;
    }
}

TEST(sleep_sets, lose_no_race_of_random_programs) {
    std::array<int, 2> programs{};   // without and with a race
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937 random(seed);
        const auto writer = random_steps(random, 0);
        const auto reader = random_steps(random, 1);
        const auto bystander = random_steps(random, 2);
        const std::vector<Body> bodies{
            [=](Shared& s) { s.data.set(7), writer(s); },
            [=](Shared& s) {
                const int last = reader(s) % 16;
                if (last >= 1 && last <= 3) s.data.get();   // a value of the writer's
            },
            [=](Shared& s) { bystander(s); },
        };
        const bool raced = is_race(explore_litmus(bodies));
        EXPECT_EQ(raced, is_race(explore([&] { return litmus(bodies); }, full_search))) << "seed " << seed;
        ++programs[raced ? 1 : 0];
    }
    EXPECT_GT(programs[0], 0);
    EXPECT_GT(programs[1], 0);
}

}   // namespace
}   // namespace kumi::model
