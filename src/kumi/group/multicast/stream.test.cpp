#include "kumi/group/multicast/stream.hpp"

#include "kumi/group/wire/message.hpp"
#include "loopback/silent_service.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::group::stream_test {
namespace {

constexpr auto first_service = engine::Kind::first_of_layers;
constexpr std::uint32_t block_bytes = 1024;

StreamShape shape_of(Set set, Node root = 0) {
    return {.name = {0, 1},
            .purpose = {Use::take, 0, 7},
            .set = std::move(set),
            .root = root,
            .pace = {1, 1},
            .block_bytes = block_bytes};
}
Stream stream_of(std::size_t bytes, bool has_all, Set set = {0, 1, 2, 3}) {
    return Stream(shape_of(std::move(set)), try_make_bytes(bytes), has_all);
}

TEST(Stream, has_as_many_blocks_as_its_content_needs_and_one_at_least) {
    EXPECT_EQ(stream_of(0, false).blocks(), 1u);
    EXPECT_EQ(stream_of(1024, false).blocks(), 1u);
    EXPECT_EQ(stream_of(1025, false).blocks(), 2u);
    EXPECT_TRUE(stream_of(5000, true).is_whole());
    EXPECT_FALSE(stream_of(0, false).is_whole());
    const Stream stream = stream_of(2500, true);
    EXPECT_EQ(stream.bytes_in(0, 2).size(), 2048u);
    EXPECT_EQ(stream.bytes_in(2, 3).size(), 452u) << "the last one is short";
}

TEST(Stream, is_whole_when_every_block_has_come_once) {
    Stream stream = stream_of(2500, false);
    const std::vector<std::byte> two(2048, std::byte{1}), one(1024, std::byte{2}), last(452, std::byte{3});
    using Taken = Stream::Taken;
    EXPECT_EQ(stream.take(0, one), Taken::fresh);
    EXPECT_EQ(stream.take(0, one), Taken::known);
    EXPECT_EQ(stream.take(0, two), Taken::fresh) << "the second block is new";
    EXPECT_FALSE(stream.is_whole());
    EXPECT_FALSE(stream.has(1, 3));
    EXPECT_EQ(stream.take(2, one), Taken::unsound) << "longer than the last block";
    EXPECT_EQ(stream.take(1, last), Taken::unsound) << "shorter than the second block";
    EXPECT_EQ(stream.take(3, {}), Taken::unsound) << "there is no such block";
    EXPECT_EQ(stream.take(2, last), Taken::fresh);
    EXPECT_TRUE(stream.is_whole());
    EXPECT_EQ(stream.content->at(0), std::byte{1});
    EXPECT_EQ(stream.content->at(2499), std::byte{3});
}

TEST(Stream, is_stuck_if_nothing_has_come_between_two_looks) {
    Stream stream = stream_of(2048, false);
    EXPECT_TRUE(stream.is_stuck());
    const std::vector<std::byte> one(1024);
    EXPECT_EQ(stream.take(1, one), Stream::Taken::fresh);
    EXPECT_FALSE(stream.is_stuck());
    EXPECT_TRUE(stream.is_stuck());
}

TEST(Stream, pushes_its_blocks_to_a_node_once) {
    Stream stream = stream_of(2048, true);
    stream.push_to(2);
    stream.push_to(2);
    ASSERT_EQ(stream.flows.size(), 1u);
    EXPECT_EQ(stream.steps_of(stream.flows.front()), 2u);
    stream.stop_pushing_to(3);
    EXPECT_EQ(stream.flows.size(), 1u);
    stream.stop_pushing_to(2);
    EXPECT_TRUE(stream.flows.empty());
    stream.add_circles(0, {});
    EXPECT_EQ(stream.flows.size(), 1u) << "all members are one circle";
}

TEST(Stream, members_answer_for_parts_of_the_set_that_are_apart) {
    const Set all = Set::range(0, 20);
    const Stream stream = stream_of(2048, true, all);
    for (const Node self : all) {
        std::vector<Node> above;
        const Set part = stream.part_of(self, {}, [&](Node node) { above.push_back(node); });
        EXPECT_TRUE(part.contains(self));
        EXPECT_EQ(self == 0, above.empty());
        if (!above.empty()) {
            EXPECT_EQ(above.front(), 0u);
        }
        for (const Node node : above) EXPECT_FALSE(part.contains(node));
    }
    EXPECT_EQ(stream.part_of(0, {}, [](Node) {}), all);
}

class BlockSenderTest : public testing::Test {
protected:
    std::optional<loopback::SilentService> service;
    loopback::Victim victim{{}, {.nodes = 4}};
    BlockSender sender{*victim.dispatcher, service.emplace(*victim.dispatcher).port};
    engine::Turn turn = victim.dispatcher->take_turn();
};

TEST_F(BlockSenderTest, a_direct_flow_sends_all_blocks_with_one_lead_and_ends) {
    Stream stream = stream_of(3000, true);
    stream.push_to(2);
    EXPECT_TRUE(sender.go_on(turn, stream));
    EXPECT_TRUE(stream.flows.empty());
    const auto sent = victim.sent(first_service);
    ASSERT_EQ(sent.size(), 3u);
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const auto head = sent[i].head<Block>();
        EXPECT_EQ(sent[i].to, 2u);
        EXPECT_EQ(head.index, i);
        EXPECT_EQ(head.bytes, 3000u);
        EXPECT_EQ(head.lead_bytes != 0, i == 0);
        EXPECT_EQ(head.wants_answer, 1u);
    }
}

TEST_F(BlockSenderTest, a_flow_that_is_refused_goes_on_where_it_was) {
    Stream stream = stream_of(3000, false);
    const std::vector<std::byte> one(1024);
    EXPECT_EQ(stream.take(0, one), Stream::Taken::fresh);
    stream.push_to(2);
    victim.channel.refuse(2);
    EXPECT_FALSE(sender.go_on(turn, stream));
    EXPECT_TRUE(stream.flows.front().is_refused);
    victim.channel.refuse(2, false);
    EXPECT_TRUE(sender.go_on(turn, stream));
    EXPECT_FALSE(stream.flows.front().is_refused) << "it waits for the second block";
    EXPECT_EQ(victim.sent(first_service).size(), 1u);
    EXPECT_EQ(stream.take(1, one), Stream::Taken::fresh);
    EXPECT_TRUE(sender.go_on(turn, stream));
    const auto sent = victim.sent(first_service);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].head<Block>().index, 1u);
    EXPECT_EQ(sent[0].head<Block>().lead_bytes, 0u);
}

TEST_F(BlockSenderTest, a_lost_node_is_left_out) {
    Stream stream = stream_of(3000, true);
    stream.push_to(2);
    victim.channel.lose(2);
    EXPECT_FALSE(sender.go_on(turn, stream));
    EXPECT_TRUE(stream.flows.empty());
}

TEST_F(BlockSenderTest, who_is_asked_is_sent_a_lead_and_no_block) {
    const Stream stream = stream_of(3000, false);
    sender.ask(turn, stream, 1, true);
    sender.ask(turn, stream, 3, false);
    const auto sent = victim.sent(first_service);
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent[0].head<Block>().wants_answer, 1u);
    EXPECT_EQ(sent[1].head<Block>().wants_answer, 0u);
    for (const auto& message : sent) {
        EXPECT_EQ(message.head<Block>().index, no_block);
        EXPECT_TRUE(read_lead(message.data<Block>(), 4));
    }
}

} // namespace
} // namespace kumi::group::stream_test
