#include "kumi/group/answers/fetches.hpp"

#include "kumi/group/wire/message.hpp"
#include "loopback/silent_service.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <tuple>

namespace kumi::group::fetches_test {
namespace {

constexpr std::size_t bytes_max = 100;

std::vector<std::byte> head_of(Node node, std::uint32_t bytes, std::size_t data = 0) {
    std::vector<std::byte> value(sizeof(ValueHead) + data, std::byte{6});
    copy_bytes(value.data(), bytes_of(ValueHead{node, bytes}));
    return value;
}

class FetchesTest : public testing::Test {
protected:
    std::optional<loopback::SilentService> service;
    loopback::Victim victim{{}, {.nodes = 20}};
    SendQueue queue{*victim.dispatcher, service.emplace(*victim.dispatcher).port};
    HeldAnswers own{bytes_max, 10};
    Fetches fetches{*victim.dispatcher, queue, own, bytes_max};
    engine::Turn turn = victim.dispatcher->take_turn();
    std::vector<std::pair<std::uint64_t, Result<Outcome>>> told; // by sequence

    void begin(std::uint64_t sequence, const std::vector<HeldValue>& held) {
        fetches.begin(turn, sequence, Set::range(0, 20), held, Outcome{{}, {}, {}},
                      [this, sequence](Result<Outcome> outcome) { told.emplace_back(sequence, std::move(outcome)); });
    }
    using Asked = std::tuple<Node, std::uint64_t, std::uint64_t, bool>; // node, sequence, offset, is_unwanted
    std::vector<Asked> asked() {
        std::vector<Asked> all;
        for (const auto& message : victim.sent(engine::Kind::first_of_layers)) {
            const auto head = message.head<Fetch>();
            EXPECT_EQ(head.name.master, 0u);
            all.emplace_back(message.to, head.name.sequence, head.offset, head.is_unwanted != 0);
        }
        return all;
    }
    bool hear(Node node, std::uint64_t sequence, std::uint64_t offset, std::size_t bytes, Node master = 0) {
        const Fetched head{Kind::fetched, 0, {master, sequence}, offset};
        std::vector<std::byte> message(sizeof head + bytes, std::byte{6});
        copy_bytes(message.data(), bytes_of(head));
        return fetches.on_fetched(turn, node, message);
    }
};

TEST_F(FetchesTest, references_are_taken_out_of_the_values_and_the_rest_stays) {
    std::vector<std::byte> values;
    for (const auto& part : {head_of(1, 3, 3), head_of(2, 50 | held_flag), head_of(9, 8 | held_flag), head_of(3, 0),
                             head_of(2, 60 | held_flag)})
        append(values, part);
    const auto held = take_held(values, {1, 2, 3});
    ASSERT_EQ(held.size(), 1u) << "node 9 is no member, and node 2 has one answer";
    EXPECT_EQ(held[0].node, 2u);
    EXPECT_EQ(held[0].bytes, 50u);
    auto rest = head_of(1, 3, 3);
    append(rest, head_of(3, 0));
    EXPECT_EQ(values, rest);
    EXPECT_TRUE(take_held(values, {1, 2, 3}).empty());
    EXPECT_EQ(values, rest);
    auto cut = head_of(1, 4, 3);
    EXPECT_TRUE(take_held(cut, {1}).empty());
    EXPECT_TRUE(cut.empty()) << "what is cut short is no answer";
}

TEST_F(FetchesTest, some_members_are_asked_at_a_time) {
    std::vector<HeldValue> held;
    for (Node node = 1; node <= Fetches::members_at_once_max + 2; ++node) held.push_back({node, 5});
    begin(7, held);
    EXPECT_EQ(asked().size(), Fetches::members_at_once_max);
    Set awaited;
    fetches.add_awaited(turn, awaited);
    EXPECT_EQ(awaited, Set::range(1, Fetches::members_at_once_max + 1));
    EXPECT_FALSE(hear(Fetches::members_at_once_max + 1, 7, 0, 5)) << "it was not asked";
    EXPECT_TRUE(hear(3, 7, 0, 5));
    EXPECT_EQ(asked(), (std::vector<Asked>{{Fetches::members_at_once_max + 1, 7, 0, false}}));
    EXPECT_FALSE(hear(3, 7, 0, 5)) << "it has given all";
    for (Node node = 1; node <= Fetches::members_at_once_max + 2; ++node)
        if (node != 3) {
            EXPECT_TRUE(told.empty());
            EXPECT_TRUE(hear(node, 7, 0, 5)) << node;
        }
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].second->fetched.size(), held.size());
    EXPECT_EQ(fetches.size(), 0u);
}

TEST_F(FetchesTest, multicasts_wait_until_their_answers_fit_what_is_fetched_at_the_same_time) {
    begin(1, {{1, 60}});
    begin(2, {{2, 41}});
    begin(3, {{3, 40}});
    EXPECT_EQ(asked(), (std::vector<Asked>{{1, 1, 0, false}})) << "the third one does not overtake the second";
    EXPECT_TRUE(hear(1, 1, 0, 60));
    EXPECT_EQ(asked(), (std::vector<Asked>{{2, 2, 0, false}, {3, 3, 0, false}}));
    EXPECT_TRUE(hear(3, 3, 0, 40));
    EXPECT_TRUE(hear(2, 2, 0, 41));
    ASSERT_EQ(told.size(), 3u);
    EXPECT_EQ(told[1].first, 3u);
}

TEST_F(FetchesTest, as_much_as_there_may_be_is_fetched_and_no_more) {
    begin(1, {{1, bytes_max - 1}, {2, 2}});
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].second.error().code(), ErrorCode::too_large);
    EXPECT_EQ(asked(), (std::vector<Asked>{{1, 1, 0, true}, {2, 1, 0, true}}));
    begin(2, {{1, bytes_max - 1}, {2, 1}});
    EXPECT_EQ(asked().size(), 2u);
    EXPECT_EQ(fetches.size(), 1u);
    EXPECT_TRUE(hear(2, 2, 0, 1));
    EXPECT_TRUE(hear(1, 2, 0, bytes_max - 1));
    ASSERT_EQ(told.size(), 2u);
    EXPECT_TRUE(told[1].second);
}

TEST_F(FetchesTest, this_node_has_its_own_answer_at_once) {
    EXPECT_TRUE(own.add({0, 1}, std::vector<std::byte>(50)));
    begin(1, {{0, 50}});
    ASSERT_EQ(told.size(), 1u);
    ASSERT_EQ(told[0].second->fetched.size(), 1u);
    EXPECT_EQ(told[0].second->fetched[0].second.size(), 50u);
    EXPECT_EQ(own.size(), 0u);
    begin(2, {{0, 50}});
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[1].second->missing, Set{0}) << "it has none";
    EXPECT_TRUE(own.add({0, 3}, std::vector<std::byte>(50)));
    fetches.release(turn, 3, {0, 1});
    EXPECT_EQ(own.size(), 0u);
    EXPECT_EQ(asked(), (std::vector<Asked>{{1, 3, 0, true}}));
}

TEST_F(FetchesTest, a_lost_member_is_missing_and_others_are_not) {
    begin(1, {{1, 5}, {2, 5}});
    begin(2, {{2, 5}});
    fetches.on_lost(turn, 2);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].first, 2u);
    EXPECT_EQ(told[0].second->missing, Set{2});
    EXPECT_TRUE(told[0].second->fetched.empty());
    EXPECT_TRUE(hear(1, 1, 0, 2));
    fetches.on_lost(turn, 3);
    EXPECT_EQ(told.size(), 1u);
    EXPECT_TRUE(hear(1, 1, 2, 3));
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[1].second->missing, Set{2});
    ASSERT_EQ(told[1].second->fetched.size(), 1u);
    EXPECT_EQ(told[1].second->fetched[0].first, 1u);
}

TEST_F(FetchesTest, parts_for_other_masters_make_no_sense_and_late_ones_do) {
    EXPECT_FALSE(hear(1, 1, 0, 5, 3));
    EXPECT_TRUE(hear(1, 1, 0, 5)) << "it may be over";
    EXPECT_FALSE(fetches.on_fetched(turn, 1, {}));
}

} // namespace
} // namespace kumi::group::fetches_test
