#include "kumi/group/multicast/streams.hpp"

#include "kumi/group/wire/message.hpp"
#include "loopback/silent_service.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::group::streams_test {
namespace {

using Taken = Streams::BlockTaken;

constexpr auto first_service = engine::Kind::first_of_layers;
constexpr Node master = 5;
constexpr std::uint32_t block_bytes = 1024;
const Name name{master, 1};

/// Node 0 among six, and multicasts of node 5 to nodes 0 to 3, of which node 1 has the blocks first.
class StreamsTest : public testing::Test {
protected:
    std::optional<loopback::SilentService> service;
    loopback::Victim victim{{}, {.nodes = 6}};
    Topology topology;
    SendQueue queue{*victim.dispatcher, service.emplace(*victim.dispatcher).port};
    Relays relays{*victim.dispatcher, service->port, topology, queue};
    Deliveries deliveries{0};
    Streams streams{*victim.dispatcher, service->port, topology, queue, relays, deliveries};
    engine::Turn turn = victim.dispatcher->take_turn();

    static Block head_of(std::uint32_t index, std::uint64_t bytes = 2048, bool wants_answer = false) {
        return {Kind::block, 0, name,           {Use::take, 0, 7},      bytes, block_bytes,
                index,       1, Way::circulant, wants_answer ? 1u : 0u, 0,     1};
    }
    Taken hears(Node source, Block head, bool has_lead = true) {
        const auto lead = has_lead ? lead_of(Set{0, 1, 2, 3}, {}, {}) : std::vector<std::byte>();
        head.lead_bytes = static_cast<std::uint32_t>(lead.size());
        const std::vector<std::byte> data(head.index == no_block ? 0 : block_bytes, std::byte{7});
        return streams.on_block(turn, source, head, lead, data);
    }
    /// As Multicasts does when all blocks are here and handled.
    void have_all() {
        Relay& relay = *relays.find(*streams.find(name)->relay);
        Content content{*streams.find(name)->content, streams.find(name)->content};
        const Set& set = streams.find(name)->shape.set;
        (void)deliveries.admit({.name = name,
                                .purpose = relay.purpose,
                                .relay = relay.id,
                                .members = set,
                                .before = {},
                                .is_lasting = true,
                                .may_run_now = false},
                               content);
        ASSERT_TRUE(deliveries.end(name));
        relays.close_one(turn, relay);
    }
    void end_complete() {
        while (Relay* const relay = relays.next_complete(turn)) {
            streams.end_relay(turn, *relay);
            relays.give_back(turn, relays.remove(turn, *relay));
        }
    }
    std::vector<loopback::Victim::Sent> sent(Kind kind) {
        std::vector<loopback::Victim::Sent> all;
        for (auto& message : victim.sent(first_service))
            if (message.head<Kind>() == kind) all.push_back(std::move(message));
        return all;
    }
    /// An answer that says nothing more.
    std::vector<std::byte> answer_bytes(Brings brings = Brings::nothing) {
        std::vector<std::byte> nobody;
        Set{}.encode(nobody);
        auto message =
            message_of(Answer{Kind::answer, static_cast<std::uint32_t>(nobody.size()), name, no_relay, 0, brings});
        append(message, nobody);
        return {message.begin() + engine::header_room, message.end()};
    }
    void hears_answer(Node source, Brings brings = Brings::nothing) {
        const auto bytes = answer_bytes(brings);
        streams.on_answer(turn, source, *read_answer(bytes, 6), bytes);
    }
    Set children() {
        Set nodes;
        for (const RelayChild& child : relays.find(*streams.find(name)->relay)->children)
            if (!child.has_answered) nodes.add(child.to);
        return nodes;
    }
};

TEST_F(StreamsTest, one_is_complete_when_all_blocks_have_come_and_answered_when_it_was_had) {
    EXPECT_EQ(hears(1, head_of(0)), Taken::sound);
    EXPECT_EQ(hears(1, head_of(0)), Taken::sound) << "it has that block";
    ASSERT_NE(streams.find(name), nullptr);
    EXPECT_EQ(hears(1, head_of(1)), Taken::complete);
    have_all();
    for (const Node child : children()) hears_answer(child);
    end_complete();
    const auto answers = sent(Kind::answer);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].to, 1u);
    streams.forget_ended(turn);
    EXPECT_EQ(streams.find(name), nullptr);
    EXPECT_EQ(streams.size(), 0u);
}

TEST_F(StreamsTest, what_is_over_is_answered_again_for_who_asks) {
    EXPECT_EQ(hears(1, head_of(0, 1024)), Taken::complete);
    have_all();
    for (const Node child : children()) hears_answer(child);
    end_complete();
    streams.forget_ended(turn);
    victim.channel.take_sent();
    EXPECT_EQ(hears(2, head_of(no_block, 1024, true)), Taken::sound);
    const auto answers = sent(Kind::answer);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].to, 2u);
    EXPECT_EQ(hears(3, head_of(no_block, 1024, false)), Taken::sound);
    const auto over = sent(Kind::over);
    ASSERT_EQ(over.size(), 1u) << "there are no blocks any more";
    EXPECT_EQ(over[0].to, 3u);
}

TEST_F(StreamsTest, a_stream_that_no_honest_master_begins_is_refused) {
    EXPECT_EQ(hears(1, head_of(0), false), Taken::unsound) << "without a lead";
    Block head = head_of(0);
    head.block_bytes = Streams::block_bytes_min - 1;
    EXPECT_EQ(hears(1, head), Taken::unsound);
    head = head_of(0);
    head.bytes = Groups::content_bytes_max + 1;
    EXPECT_EQ(hears(1, head), Taken::unsound);
    head = head_of(0);
    head.way = Way::tree;
    EXPECT_EQ(hears(1, head), Taken::unsound);
    head = head_of(0);
    head.root = 4;
    EXPECT_EQ(hears(1, head), Taken::unsound) << "no member";
    EXPECT_EQ(streams.find(name), nullptr);
    EXPECT_EQ(relays.size(), 0u);
}

TEST_F(StreamsTest, an_answer_that_comes_first_counts_when_the_stream_is_known) {
    EXPECT_EQ(hears(1, head_of(0)), Taken::sound);
    const Set waited_for = children();
    streams.give_up(turn, name, 0);
    streams.forget_ended(turn);

    const Name second{master, 2};
    for (const Node child : waited_for) {
        auto bytes = answer_bytes();
        Answer head{};
        ASSERT_TRUE(read_value(bytes, head));
        head.name = second;
        copy_bytes(bytes.data(), bytes_of(head));
        streams.on_answer(turn, child, *read_answer(bytes, 6), bytes);
    }
    Block head = head_of(0);
    head.name = second;
    EXPECT_EQ(hears(1, head), Taken::sound);
    ASSERT_NE(streams.find(second), nullptr);
    EXPECT_EQ(relays.find(*streams.find(second)->relay)->open, 1u) << "only this node has not had it";
}

TEST_F(StreamsTest, who_gives_a_stream_up_resigns) {
    EXPECT_EQ(hears(1, head_of(0)), Taken::sound);
    streams.give_up(turn, name, 0, "no memory");
    EXPECT_EQ(relays.size(), 0u);
    const auto answers = sent(Kind::answer);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].to, 1u);
    const auto answer = read_answer(answers[0].rest, 6);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->head.brings, Brings::resignation);
    EXPECT_EQ(answer->trouble, "no memory");
    EXPECT_TRUE(deliveries.was_missed(name));
}

TEST_F(StreamsTest, a_parent_takes_over_from_a_child_that_resigns_or_is_lost) {
    // Here node 0 has the blocks first.
    Block head = head_of(0);
    head.root = 0;
    EXPECT_EQ(hears(master, head), Taken::sound);
    const Set before = children();
    ASSERT_FALSE(before.empty());
    EXPECT_EQ(before & (Set{1, 2, 3}), before);
    for (const Node child : before) hears_answer(child, Brings::resignation);
    Set all = before;
    for (Set next = children(); !next.empty(); next = children()) {
        all |= next;
        for (const Node child : next) {
            victim.channel.lose(child);
            streams.on_lost(turn, child);
        }
    }
    EXPECT_EQ(all, (Set{1, 2, 3}));
    Relay& relay = *relays.find(*streams.find(name)->relay);
    EXPECT_EQ(relay.missing, (Set{1, 2, 3}));
    EXPECT_EQ(relay.open, 1u);
}

TEST_F(StreamsTest, a_member_without_new_blocks_asks_its_parent_and_then_the_next_above) {
    EXPECT_EQ(hears(1, head_of(0)), Taken::sound);
    Set awaited;
    streams.ask_for_blocks(turn, awaited);
    EXPECT_EQ(awaited, Set{master});
    victim.channel.take_sent();
    streams.ask_for_blocks(turn, awaited);
    auto asked = sent(Kind::block);
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked[0].to, 1u);
    EXPECT_EQ(asked[0].head<Block>().index, no_block);
    streams.note_out(turn, name, 1);
    streams.ask_for_blocks(turn, awaited);
    asked = sent(Kind::block);
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked[0].to, master);
}

TEST_F(StreamsTest, what_a_lost_master_had_under_way_is_given_up_where_nobody_has_it) {
    EXPECT_EQ(hears(1, head_of(0)), Taken::sound);
    victim.channel.lose(master);
    streams.give_up_rest_of(turn, master);
    EXPECT_FALSE(deliveries.was_missed(name) && deliveries.was_seen(name)) << "node 1 has it";
    victim.channel.lose(1);
    streams.give_up_rest_of(turn, master);
    EXPECT_TRUE(deliveries.was_seen(name));
    EXPECT_TRUE(deliveries.was_missed(name));
}

} // namespace
} // namespace kumi::group::streams_test
