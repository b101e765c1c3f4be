#include "kumi/group/collective/deadlock_search.hpp"

#include "loopback/seat.hpp"

#include <gtest/gtest.h>

namespace kumi::group::deadlock_search_test {
namespace {

constexpr CallShape shape{.collective = Collective::barrier};

/// In a barrier in which it waits for node 1.
class DeadlockSearchTest : public group_test::SeatTest {
protected:
    DeadlockSearch search{*seat};

    void SetUp() override { seat->box.receives.push_back({.from = 1, .step = 0, .target = nullptr, .bytes = 0}); }
    std::vector<std::pair<Node, CollectiveHeader>> told_to() {
        std::vector<std::pair<Node, CollectiveHeader>> all;
        for (const auto& message : sent()) all.emplace_back(message.to, message.head<CollectiveHeader>());
        return all;
    }
    CollectiveHeader in_a_scatter(MessageKind kind, std::uint64_t bytes) const {
        CollectiveHeader head = own;
        head.collective = static_cast<std::uint8_t>(Collective::scatter);
        head.kind = kind;
        head.bytes = bytes;
        return head;
    }
    std::optional<DeadlockSearch::Other> hears(Node source, const CollectiveHeader& head) {
        return search.on_message(turn, source, head, shape, own);
    }
};

TEST_F(DeadlockSearchTest, a_call_that_is_not_blocked_says_nothing) {
    EXPECT_FALSE(hears(1, in_a_scatter(MessageKind::ask, 5)));
    EXPECT_TRUE(told_to().empty());
}

TEST_F(DeadlockSearchTest, a_blocked_call_asks_and_answers_with_its_state) {
    search.ask(turn, own);
    auto told = told_to();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].first, 1u) << "it does not wait for node 2";
    EXPECT_EQ(told[0].second.kind, MessageKind::ask);
    const std::uint64_t state = told[0].second.bytes;
    EXPECT_NE(state, 0u);
    EXPECT_FALSE(hears(2, in_a_scatter(MessageKind::ask, 5)));
    told = told_to();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].first, 2u);
    EXPECT_EQ(told[0].second.kind, MessageKind::stuck);
    EXPECT_EQ(told[0].second.bytes, 5 | state << 32);
    search.move(turn);
    EXPECT_FALSE(hears(2, in_a_scatter(MessageKind::ask, 5)));
    EXPECT_TRUE(told_to().empty());
}

TEST_F(DeadlockSearchTest, a_chase_that_comes_back_names_the_member_in_a_different_call) {
    search.ask(turn, own);
    const std::uint64_t state = told_to().at(0).second.bytes;
    EXPECT_FALSE(hears(1, in_a_scatter(MessageKind::stuck, state | std::uint64_t{9} << 32)));
    const auto told = told_to();
    ASSERT_EQ(told.size(), 1u);
    CollectiveHeader chase = told[0].second;
    EXPECT_EQ(told[0].first, 1u);
    EXPECT_EQ(chase.kind, MessageKind::chase);
    EXPECT_EQ(chase.came_with, 0u) << "node 0 began it";
    EXPECT_EQ(chase.root, 1u);
    EXPECT_EQ(chase.bytes, state | std::uint64_t{9} << 32);
    chase.bytes = state | state << 32;
    const auto other = hears(2, chase);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->first, 1u);
    EXPECT_EQ(other->second.collective, static_cast<std::uint8_t>(Collective::scatter));
}

TEST_F(DeadlockSearchTest, a_chase_of_another_member_is_passed_on_along_real_waits) {
    search.ask(turn, own);
    const std::uint64_t state = told_to().at(0).second.bytes;
    CollectiveHeader same = in_a_scatter(MessageKind::stuck, state | std::uint64_t{9} << 32);
    same.collective = own.collective;
    EXPECT_FALSE(hears(1, same));
    EXPECT_TRUE(told_to().empty()) << "node 1 is in the same call";
    CollectiveHeader chase = in_a_scatter(MessageKind::chase, 4 | state << 32);
    chase.came_with = 2;
    chase.root = 0;
    EXPECT_FALSE(hears(2, chase));
    const auto told = told_to();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].first, 1u);
    EXPECT_EQ(told[0].second.came_with, 2u);
    EXPECT_EQ(told[0].second.bytes, 4 | std::uint64_t{9} << 32);
}

TEST(DeadlockSearchTime, it_is_due_once_in_each_interval_of_keepalives_but_not_in_the_first) {
    std::optional<Mailbox> mailbox;
    loopback::Victim victim;
    Membership seat(mailbox.emplace(*victim.dispatcher), {0, 1}, 77);
    DeadlockSearch search(seat);
    const auto is_due = [&] { return search.is_due(victim.dispatcher->take_turn()); };
    const engine::PeerWatch& peers = victim.dispatcher->peers();
    for (std::uint64_t look = 0; look < 3; ++look) {
        victim.time = static_cast<std::int64_t>(2 * look) * loopback::far_away.count();
        while (peers.looks() < look) victim.poll();
        EXPECT_EQ(is_due(), look != 0) << look;
        EXPECT_FALSE(is_due()) << look;
    }
}

TEST_F(DeadlockSearchTest, the_word_of_a_mismatch_is_taken_if_it_is_new_and_of_a_member_that_the_call_waits_for) {
    const auto tell = [&](Node source, MessageKind kind, std::uint64_t mismatch) {
        const auto ignore = [](Inbox&, Node, const CollectiveHeader&) {};
        const CollectiveHeader head{.key = key, .serial = 1, .came_with = mismatch, .kind = kind};
        mailbox->inboxes(turn).keep(seat->box, source, head, {}, ignore);
    };
    tell(1, MessageKind::trouble, 5);
    tell(2, MessageKind::mismatch, 6); // the call does not wait for node 2
    tell(1, MessageKind::mismatch, 7);
    mailbox->mismatches(turn).add(7);
    EXPECT_FALSE(search.take_mismatch(turn));
    tell(1, MessageKind::mismatch, 8);
    const auto told = search.take_mismatch(turn);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->source, 1u);
    EXPECT_EQ(told->head.came_with, 8u);
    EXPECT_FALSE(search.take_mismatch(turn));
    EXPECT_EQ(mailbox->inboxes(turn).kept(), 3u);
}

} // namespace
} // namespace kumi::group::deadlock_search_test
