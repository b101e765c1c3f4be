#include "kumi/group/collective/barrier_wait.hpp"

#include "kumi/group/collective/collectives.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <vector>

namespace kumi::group::barrier_wait_test {
namespace {

/// Node 0 of three, which hears from node 2 in the first round of a barrier, and from node 1 in the second.
struct BarrierWaitTest : testing::Test {
    std::optional<Mailbox> mailbox;
    loopback::Victim victim;
    std::optional<Membership> seat{std::in_place, mailbox.emplace(*victim.dispatcher), Set{0, 1, 2}, 77};
    DeadlockSearch search{*seat};
    BarrierWait wait{*seat, search};

    engine::Turn turn() { return victim.dispatcher->take_turn(); }
    void hears(Node source, std::uint32_t sequence, std::uint32_t round) {
        victim.hears(source, engine::Kind::step, engine::BarrierStep{engine::all_set, sequence, round, 0, 0}, {},
                     false);
        victim.poll();
    }
    std::vector<Node> awaited() {
        wait.look(turn());
        return seat->box.barrier_awaits;
    }
    /// The state that the call tells the members that it waits for.
    std::uint64_t state() {
        victim.sent(engine::Kind::first_of_layers);
        search.ask(turn(), CollectiveHeader{.key = 77});
        const auto asked = victim.sent(engine::Kind::first_of_layers);
        return asked.empty() ? 0 : asked.front().head<CollectiveHeader>().bytes;
    }
};

TEST_F(BarrierWaitTest, a_barrier_waits_for_those_that_it_has_not_heard_of_until_it_is_complete) {
    EXPECT_FALSE(wait.is_open(turn()));
    ASSERT_TRUE(wait.arrive(turn()));
    EXPECT_EQ(seat->box.barrier, 0u);
    EXPECT_EQ(awaited(), (std::vector<Node>{2, 1}));
    EXPECT_FALSE(seat->box.is_waiting_for(0));
    hears(2, 0, 0);
    EXPECT_EQ(awaited(), (std::vector<Node>{1}));
    EXPECT_TRUE(wait.is_open(turn()));
    hears(1, 0, 1);
    EXPECT_FALSE(wait.is_open(turn()));
    EXPECT_EQ(awaited(), (std::vector<Node>{}));
    EXPECT_FALSE(seat->box.barrier);
    EXPECT_EQ(wait.number(turn()), 1u);
}

TEST_F(BarrierWaitTest, a_call_that_waits_for_other_members_than_before_is_in_another_state) {
    ASSERT_TRUE(wait.arrive(turn()));
    (void)awaited();
    const std::uint64_t first = state();
    EXPECT_NE(first, 0u);
    (void)awaited();
    EXPECT_EQ(state(), first) << "nothing has changed";
    hears(2, 0, 0);
    (void)awaited();
    EXPECT_NE(state(), first) << "it does not wait for node 2 any more";
}

TEST_F(BarrierWaitTest, a_barrier_that_was_left_is_arrived_at_once) {
    ASSERT_TRUE(wait.arrive(turn()));
    EXPECT_EQ(victim.sent(engine::Kind::step).size(), 1u);
    wait.leave(turn());
    EXPECT_FALSE(seat->box.barrier);
    EXPECT_EQ(wait.number(turn()), 1u);
    ASSERT_TRUE(wait.arrive(turn()));
    EXPECT_EQ(wait.number(turn()), 0u);
    EXPECT_TRUE(victim.sent(engine::Kind::step).empty());
    hears(2, 0, 0);
    hears(1, 0, 1);
    EXPECT_FALSE(wait.is_open(turn()));
    wait.leave(turn()); // does nothing
    ASSERT_TRUE(wait.arrive(turn()));
    EXPECT_EQ(wait.number(turn()), 1u) << "the next one";
}

TEST_F(BarrierWaitTest, while_a_barrier_that_was_started_is_open_sleepers_are_woken_when_one_completes) {
    const auto shared = std::make_shared<Membership>(*mailbox, Set{0, 1, 2}, 78);
    engine::BarrierService& barriers = victim.dispatcher->barriers();
    EXPECT_FALSE(barriers.wants_completion(turn()));
    auto started = start_barrier(*shared, never);
    EXPECT_TRUE(barriers.wants_completion(turn()));
    hears(2, 0, 0);
    EXPECT_TRUE(barriers.wants_completion(turn()));
    hears(1, 0, 1);
    EXPECT_TRUE(started.is_ready());
    EXPECT_FALSE(barriers.wants_completion(turn()));
}

} // namespace
} // namespace kumi::group::barrier_wait_test
