#include "kumi/group/multicast/relays.hpp"

#include "kumi/engine/call/invoke.hpp"
#include "loopback/silent_service.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::group::relays_test {
namespace {

constexpr auto first_service = engine::Kind::first_of_layers;
constexpr Purpose to_take{Use::take, 0, 7}, to_gather{Use::gather, 0, 0};
constexpr RelayId parents{8, 9};

class RelaysTest : public testing::Test {
protected:
    static Handlers with_a_function() {
        Handlers handlers;
        handlers.function("same", [](std::uint64_t number) { return number; });
        return handlers;
    }

    std::optional<loopback::SilentService> service;
    loopback::Victim victim{with_a_function(), {.nodes = 6}};
    Topology topology;
    SendQueue queue{*victim.dispatcher, service.emplace(*victim.dispatcher).port};
    Relays relays{*victim.dispatcher, service->port, topology, queue};
    engine::Turn turn = victim.dispatcher->take_turn();

    /// Of a multicast of node 5, that this node has not had yet.
    Relay& add(const Purpose& purpose = to_take) {
        Relay& relay = relays.add(turn, {5, 1}, purpose);
        relay.parent = 5;
        relay.parents = parents;
        relay.open = 1;
        return relay;
    }
    std::vector<Node> casts() {
        std::vector<Node> to;
        for (const auto& message : victim.sent(first_service)) {
            EXPECT_EQ(message.head<Cast>().kind, Kind::cast);
            to.push_back(message.to);
        }
        return to;
    }
    static ReceivedAnswer answer_with(Set missing, Bytes values = {}) {
        ReceivedAnswer answer;
        answer.head.brings = values.empty() ? Brings::nothing : Brings::values;
        answer.missing = std::move(missing);
        answer.values = values;
        return answer;
    }
    void end_own(Relay& relay, const OwnAnswer& own = {}) {
        const RelayId id = relay.id;
        relays.end_own(turn, {&id, 1}, own);
    }
};

TEST_F(RelaysTest, one_is_complete_when_its_children_have_answered_and_this_node_has_had_it) {
    Relay& relay = add();
    relays.add_child(turn, relay, {1, Set{1, 2}});
    relays.add_child(turn, relay, {4, Set{4}});
    EXPECT_EQ(casts(), (std::vector<Node>{1, 4}));
    EXPECT_TRUE(relays.take_answer(turn, relay, 1, answer_with({2})));
    EXPECT_FALSE(relays.take_answer(turn, relay, 1, answer_with({}))) << "it counts once";
    EXPECT_FALSE(relays.take_answer(turn, relay, 3, answer_with({}))) << "no child";
    EXPECT_FALSE(relays.is_done(turn)) << "node 5 waits for node 4";
    EXPECT_TRUE(relays.take_answer(turn, relay, 4, answer_with({})));
    EXPECT_TRUE(relays.is_done(turn));
    EXPECT_EQ(relays.next_complete(turn), nullptr) << "this node has not had it";
    end_own(relay);
    ASSERT_EQ(relays.next_complete(turn), &relay);
    relays.answer_parent(turn, relay);
    const auto told = victim.sent(first_service);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].to, 5u);
    const auto answer = read_answer(told[0].rest, 6);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->head.relay.index, parents.index);
    EXPECT_EQ(answer->missing, Set{2});
    const RelayId id = relay.id;
    relays.give_back(turn, relays.remove(turn, relay));
    EXPECT_EQ(relays.find(id), nullptr);
    EXPECT_EQ(relays.next_complete(turn), nullptr);
    EXPECT_EQ(relays.size(), 0u);
}

TEST_F(RelaysTest, those_whom_a_lost_child_was_to_care_for_are_sent_it) {
    Relay& relay = add();
    relays.add_child(turn, relay, {1, Set{1, 2, 3}});
    EXPECT_EQ(casts(), std::vector<Node>{1});
    victim.channel.lose(1);
    relays.on_lost(turn, 1);
    const auto others = casts();
    EXPECT_FALSE(others.empty());
    for (const Node other : others) EXPECT_TRUE(other == 2 || other == 3);
    EXPECT_EQ(relay.missing, Set{1});
    for (const Node other : others) EXPECT_TRUE(relays.take_answer(turn, relay, other, answer_with({})));
    end_own(relay, {.is_missing = true});
    ASSERT_EQ(relays.next_complete(turn), &relay);
    EXPECT_EQ(relay.missing, (Set{0, 1}));
}

TEST_F(RelaysTest, a_child_that_is_lost_already_is_replaced_at_once) {
    victim.channel.lose(1);
    Relay& relay = add();
    relays.add_child(turn, relay, {1, Set{1, 2}});
    EXPECT_EQ(casts(), std::vector<Node>{2});
    EXPECT_EQ(Relays::find_child(relay, 1), nullptr);
    EXPECT_NE(Relays::find_child(relay, 2), nullptr);
}

TEST_F(RelaysTest, what_there_is_no_room_for_is_sent_later_unless_it_is_over) {
    victim.channel.refuse(1);
    victim.channel.refuse(2);
    Relay& relay = add();
    relays.add_child(turn, relay, {1, Set{1}});
    relays.add_child(turn, relay, {2, Set{2}});
    EXPECT_FALSE(relays.go_on(turn));
    EXPECT_TRUE(relays.take_answer(turn, relay, 2, answer_with({}))) << "it has it from somebody else";
    victim.channel.refuse(1, false);
    victim.channel.refuse(2, false);
    EXPECT_TRUE(relays.go_on(turn));
    EXPECT_EQ(casts(), std::vector<Node>{1});
    EXPECT_TRUE(queue.empty());
}

TEST_F(RelaysTest, values_are_put_together_by_node_and_trouble_is_told_instead_of_them) {
    const std::vector<std::byte> early{std::byte{1}}, late{std::byte{2}};
    Relay& relay = add(to_gather);
    relays.add_child(turn, relay, {3, Set{3}});
    EXPECT_TRUE(relays.take_answer(turn, relay, 3, answer_with({}, late)));
    end_own(relay, {.value = early});
    EXPECT_EQ(relays.combine(turn, relay), (std::vector<std::byte>{std::byte{1}, std::byte{2}}));
    Relay& other = add(to_gather);
    other.open = 2;
    end_own(other, {.value = early});
    end_own(other, {.trouble = "no"});
    EXPECT_FALSE(relays.combine(turn, other));
    EXPECT_EQ(other.trouble, "no");
}

TEST_F(RelaysTest, one_master_has_so_many_and_needs_a_function_that_there_is) {
    for (std::size_t i = 0; i < Relays::of_one_master_max; ++i) {
        EXPECT_TRUE(relays.is_possible(turn, 5, to_take));
        add();
    }
    EXPECT_FALSE(relays.is_possible(turn, 5, to_take));
    EXPECT_TRUE(relays.is_possible(turn, 4, to_take));
    EXPECT_TRUE(relays.is_possible(turn, 4, to_gather));
    EXPECT_FALSE(relays.is_possible(turn, 4, {Use::gather, 1, 0}));
    EXPECT_FALSE(relays.is_possible(turn, 4, {Use::handler, 0, 0}));
    EXPECT_FALSE(relays.is_possible(turn, 4, {Use::reduce, 0, 1}));
    EXPECT_TRUE(relays.is_possible(turn, 4, {Use::reduce, 0, 0}));
    EXPECT_EQ(relays.take_all(turn).size(), Relays::of_one_master_max);
    EXPECT_TRUE(relays.is_possible(turn, 5, to_take));
}

TEST_F(RelaysTest, an_answer_that_is_cut_short_or_names_other_nodes_is_none) {
    Relay& relay = add();
    relay.missing = {4};
    relay.trouble = "why";
    const std::vector<std::byte> message = relays.answer_of(turn, relay, no_relay);
    const Bytes bytes = Bytes(message).subspan(engine::header_room);
    const auto answer = read_answer(bytes, 6);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->trouble, "why");
    EXPECT_EQ(answer->missing, Set{4});
    EXPECT_FALSE(read_answer(bytes, 5)) << "the master is no node";
    for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read_answer(bytes.first(size), 6)) << size;
}

} // namespace
} // namespace kumi::group::relays_test
