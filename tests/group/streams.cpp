// Multicasts in blocks, message by message: what a member takes, passes on and asks for, and whom it answers.

#include "group/puppets.hpp"

#include <algorithm>

namespace kumi::group_test {
namespace {

using group::Answer;
using group::Block;
using group::Brings;
using group::Kind;
using group::Name;
using group::no_block;
using group::Over;

class Streams : public PuppetTest {};

struct HeardBlock {
    Node by;
    Block head;
    std::vector<std::byte> data;
};

/// The blocks among what was heard; the rest stays.
std::vector<HeardBlock> take_blocks(Stage& stage) {
    std::vector<HeardBlock> blocks;
    std::erase_if(stage.heard, [&](const Stage::Heard& one) {
        if (one.kind() != Kind::block) return false;
        HeardBlock block{one.by, {}, {}};
        EXPECT_TRUE(read_value(Bytes(one.bytes), block.head));
        const Bytes data = Bytes(one.bytes).subspan(sizeof(Block) + block.head.lead_bytes);
        block.data.assign(data.begin(), data.end());
        blocks.push_back(std::move(block));
        return true;
    });
    return blocks;
}

/// Three blocks of which the last is a short one.
constexpr std::size_t content_bytes = 3000;
std::vector<std::byte> data_of(std::uint32_t index, std::uint64_t number = 1) {
    const auto content = pattern(content_bytes, number);
    const std::size_t begin = index * std::size_t{1024};
    return {content.begin() + static_cast<std::ptrdiff_t>(begin),
            content.begin() + static_cast<std::ptrdiff_t>(std::min(begin + 1024, content_bytes))};
}

void say_block(Stage& stage, Node by, BlockOf block, std::uint32_t index) {
    block.index = index;
    stage.say(by, index == no_block ? block.with({}) : block.with(data_of(index)));
    stage.settle();
}

TEST_F(Streams, blocks_come_in_any_order_and_a_content_is_there_when_all_have_come) {
    play({.nodes = 3}, [](Stage& stage) {
        const BlockOf block{.name = {1, 1}, .purpose = to_be_taken, .set = {0, 1}, .bytes = content_bytes};
        for (const std::uint32_t index : {2u, 0u, 0u, 2u}) say_block(stage, 1, block, index);
        EXPECT_FALSE(stage.member.groups->next(now()));
        auto last = block;
        last.index = 1;
        stage.say(1, last.with(std::vector<std::byte>(), data_of(1))); // the lead has come before
        stage.settle();
        EXPECT_TRUE(stage.take_heard().empty()) << "it was not taken yet";
        const Arrival arrival = good(stage.member.groups->next());
        EXPECT_EQ(arrival.content, pattern(content_bytes, 1));
        EXPECT_EQ(arrival.members, (Set{0, 1}));
        stage.settle();
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].by, 1u);
        EXPECT_EQ(answers[0].head.relay.index, group::no_relay.index);
        EXPECT_EQ(answers[0].head.name, block.name);
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        EXPECT_FALSE(stage.member.groups->next(now())) << "it comes once";
    });
}

TEST_F(Streams, what_came_is_not_written_again) {
    play({}, [](Stage& stage) {
        const BlockOf block{.name = {1, 1}, .purpose = to_be_taken, .set = {0, 1}, .bytes = content_bytes};
        say_block(stage, 1, block, 0);
        stage.say(1, block.with(data_of(0, 2))); // other bytes
        for (const std::uint32_t index : {1u, 2u}) say_block(stage, 1, block, index);
        stage.say(1, block.with(data_of(0, 2)));
        stage.settle();
        EXPECT_EQ(good(stage.member.groups->next()).content, pattern(content_bytes, 1));
    });
}

TEST_F(Streams, a_stream_that_has_not_begun_begins_with_a_lead) {
    play({}, [](Stage& stage) {
        const BlockOf block{.name = {1, 1}, .purpose = to_be_taken, .set = {0, 1}, .bytes = content_bytes};
        stage.say(1, block.with(std::vector<std::byte>(), data_of(0)));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

/// Node 1 is the master and no member, node 0 the first of them.
BlockOf from_outside(const Set& set, double gap, std::uint64_t sequence = 1) {
    return {
        .name = {1, sequence}, .purpose = to_note, .set = set, .root = 0, .bytes = sizeof(std::uint64_t), .gap = gap};
}
/// Answers come from all others to node 0; or by way of some of them.
constexpr double flat = 0.01, binomial = 1;

TEST_F(Streams, the_first_member_passes_all_blocks_on_and_answers_when_all_below_it_have) {
    play({.nodes = 5}, [](Stage& stage) {
        const std::uint64_t number = 4711;
        const BlockOf block = from_outside({0, 2, 3}, flat);
        stage.say(2, answer_of(block.name, group::no_relay, {2})); // before its time
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 1u);
        stage.say(1, block.with(bytes_of(number)));
        stage.settle();
        EXPECT_EQ(stage.handled, std::vector<std::uint64_t>{number});
        Set reached;
        for (const HeardBlock& one : take_blocks(stage)) {
            reached.add(one.by);
            EXPECT_EQ(one.data, joined({bytes_of(number)}));
            EXPECT_EQ(one.head.name, block.name);
            EXPECT_EQ(one.head.root, 0u);
            EXPECT_EQ(one.head.bytes, sizeof number);
            EXPECT_EQ(one.head.block_bytes, 1024u);
            EXPECT_NE(one.head.lead_bytes, 0u);
        }
        EXPECT_FALSE(reached.empty());
        EXPECT_EQ((reached - Set{2, 3}), Set{});
        EXPECT_TRUE(stage.take_heard().empty());
        stage.say(4, answer_of(block.name, group::no_relay)); // no member
        stage.say(2, answer_of(block.name, group::no_relay)); // it has answered
        stage.settle();
        EXPECT_TRUE(stage.take_heard().empty());
        stage.say(3, answer_of(block.name, group::no_relay));
        stage.settle();
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].by, 1u);
        EXPECT_EQ(answers[0].missing, Set{2});
        EXPECT_EQ(stage.member.groups->kept(), 0u) << "also what came before its time";
    });
}

TEST_F(Streams,
       who_asks_for_an_answer_gets_it_now_or_when_there_is_one_and_who_asks_for_blocks_is_told_that_it_is_over) {
    play({.nodes = 5}, [](Stage& stage) {
        const std::uint64_t number = 7;
        BlockOf block = from_outside({0, 2, 3}, flat);
        stage.say(1, block.with(bytes_of(number)));
        stage.settle();
        BlockOf question = block;
        question.index = no_block;
        question.wants_answer = 1;
        stage.say(3, question.with({})); // before there is one
        stage.settle();
        take_blocks(stage);
        EXPECT_TRUE(stage.take_heard().empty());
        for (const Node child : {2u, 3u}) stage.say(child, answer_of(block.name, group::no_relay));
        stage.settle();
        Set answered;
        for (const HeardAnswer& answer : stage.take_answers()) answered.add(answer.by);
        EXPECT_EQ(answered, (Set{1, 3}));
        stage.say(2, question.with({}));
        stage.settle();
        auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].by, 2u);
        EXPECT_TRUE(answers[0].missing.empty());
        EXPECT_EQ(answers[0].text, "");
        stage.say(2, answer_of(block.name, group::no_relay)); // nobody needs it any more
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        question.wants_answer = 0;
        stage.say(2, question.with({}));
        stage.settle();
        const auto heard = stage.take_heard();
        ASSERT_EQ(heard.size(), 1u);
        EXPECT_EQ(heard[0].kind(), Kind::over);
        EXPECT_EQ(stage.handled, std::vector<std::uint64_t>{7});
        // What was given up is resigned from.
        stage.say(1, bytes_of(Over{Kind::over, 0, {1, 2}, 0}));
        stage.settle();
        question = from_outside({0, 2, 3}, flat, 2);
        question.index = no_block;
        question.wants_answer = 1;
        stage.say(2, question.with({}));
        stage.settle();
        answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].head.brings, Brings::resignation);
    });
}

TEST_F(Streams, a_member_that_misses_blocks_gets_those_that_are_here_and_come_and_a_stranger_gets_none) {
    play({.nodes = 5}, [](Stage& stage) {
        const BlockOf block{.name = {1, 1}, .purpose = to_be_taken, .set = {0, 1, 2, 3}, .bytes = content_bytes};
        say_block(stage, 1, block, 0);
        take_blocks(stage);
        say_block(stage, 4, block, no_block);
        EXPECT_TRUE(take_blocks(stage).empty());
        say_block(stage, 3, block, no_block);
        say_block(stage, 3, block, no_block); // again
        auto blocks = take_blocks(stage);
        ASSERT_EQ(blocks.size(), 1u);
        EXPECT_EQ(blocks[0].by, 3u);
        EXPECT_EQ(blocks[0].head.index, 0u);
        EXPECT_EQ(blocks[0].head.wants_answer, 1u);
        EXPECT_NE(blocks[0].head.lead_bytes, 0u);
        EXPECT_EQ(blocks[0].data, data_of(0));
        std::vector<std::uint32_t> direct; // blocks that ask for an answer go straight to who missed them
        for (const std::uint32_t index : {1u, 2u}) {
            say_block(stage, 1, block, index);
            for (const HeardBlock& one : take_blocks(stage)) {
                if (one.head.wants_answer == 0) continue;
                EXPECT_EQ(one.by, 3u);
                EXPECT_EQ(one.head.lead_bytes, 0u);
                EXPECT_EQ(one.data, data_of(one.head.index));
                direct.push_back(one.head.index);
            }
        }
        EXPECT_EQ(direct, (std::vector<std::uint32_t>{1, 2}));
    });
}

TEST_F(Streams, who_gets_no_more_asks_its_parent_and_then_the_next_above_it) {
    play({.nodes = 4, .looks_after = true}, [](Stage& stage) {
        // Node 1 is the master, node 2 the first member.
        const BlockOf block{
            .name = {1, 1}, .purpose = to_be_taken, .set = {0, 2, 3}, .root = 2, .bytes = content_bytes};
        say_block(stage, 2, block, 0);
        take_blocks(stage);
        const auto asked = [&] {
            Set whom;
            stage.look(2);
            for (const HeardBlock& one : take_blocks(stage))
                if (one.head.index == no_block && one.head.wants_answer == 0) {
                    whom.add(one.by);
                    EXPECT_NE(one.head.lead_bytes, 0u);
                }
            return whom;
        };
        EXPECT_EQ(asked(), Set{2});
        stage.say(2, bytes_of(Over{Kind::over, 0, block.name, 0})); // it has none
        stage.settle();
        EXPECT_EQ(asked(), Set{1});
        stage.lose(1);
        EXPECT_EQ(asked(), Set{}) << "nobody is left";
        stage.look(4);
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(Streams, blocks_of_a_lost_master_are_waited_for_while_somebody_above_may_have_them) {
    play({.nodes = 4, .looks_after = true}, [](Stage& stage) {
        const BlockOf block{
            .name = {1, 1}, .purpose = to_be_taken, .set = {0, 2, 3}, .root = 2, .bytes = content_bytes};
        say_block(stage, 2, block, 0);
        stage.lose(1);
        stage.look(6);
        for (const std::uint32_t index : {1u, 2u}) say_block(stage, 2, block, index);
        EXPECT_EQ(good(stage.member.groups->next()).content, pattern(content_bytes, 1));
    });
}

TEST_F(Streams, children_that_do_not_answer_are_asked_for_it) {
    play({.nodes = 4, .looks_after = true}, [](Stage& stage) {
        const std::uint64_t number = 7;
        const BlockOf block = from_outside({0, 2, 3}, flat);
        stage.say(1, block.with(bytes_of(number)));
        stage.say(2, answer_of(block.name, group::no_relay));
        stage.settle();
        take_blocks(stage);
        stage.look(2);
        const auto questions = take_blocks(stage);
        ASSERT_FALSE(questions.empty());
        for (const HeardBlock& one : questions) {
            EXPECT_EQ(one.by, 3u);
            EXPECT_EQ(one.head.index, no_block);
            EXPECT_EQ(one.head.wants_answer, 1u);
        }
    });
}

/// The child that has the most below it; and all that were below node 0.
struct Large {
    Node node = 0;
    Set below;
};

/// Node 0 is the first of six members and has all blocks. Answers the child that has others below it.
Large begin_large(Stage& stage, const BlockOf& block, std::uint64_t number) {
    stage.say(1, block.with(bytes_of(number)));
    stage.settle();
    take_blocks(stage);
    Large found;
    for (const group::Child& child : group::children_of(block.set, 0, {}, {1, 1}))
        if (child.part.size() > found.below.size()) found = {child.to, child.part};
    found.below.remove(found.node);
    return found;
}

/// All others answer, and then node 1 has an answer.
void expect_missing_only(Stage& stage, const BlockOf& block, Node absent, bool is_lost) {
    Set reached;
    for (const HeardBlock& one : take_blocks(stage)) reached.add(one.by);
    EXPECT_FALSE(reached.contains(absent));
    Set open;
    const auto children = group::children_of(block.set, 0, {}, {1, 1});
    for (const group::Child& child : children) {
        if (child.to != absent) {
            open.add(child.to);
            EXPECT_TRUE(!is_lost || reached.contains(child.to)) << "nobody knows what went with the other one";
            continue;
        }
        for (const group::Child& grandchild : group::children_of(child.part, absent, {}, {1, 1})) {
            open.add(grandchild.to);
            EXPECT_TRUE(reached.contains(grandchild.to)) << "it may have waited for blocks of the other one";
        }
    }
    for (const Node node : open) {
        EXPECT_TRUE(stage.heard.empty()) << "node " << node << " has not answered";
        stage.say(node, answer_of(block.name, group::no_relay));
        stage.settle();
        take_blocks(stage);
    }
    const auto answers = stage.take_answers();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].by, 1u);
    EXPECT_EQ(answers[0].missing, Set{absent});
}

TEST_F(Streams, those_below_a_lost_member_are_taken_over) {
    play({.nodes = 8}, [](Stage& stage) {
        const BlockOf block = from_outside({0, 2, 3, 4, 5, 6, 7}, binomial);
        const Large large = begin_large(stage, block, 7);
        ASSERT_FALSE(large.below.empty());
        stage.lose(large.node);
        expect_missing_only(stage, block, large.node, true);
    });
}

TEST_F(Streams, those_below_a_member_that_has_given_up_are_taken_over) {
    play({.nodes = 8}, [](Stage& stage) {
        const BlockOf block = from_outside({0, 2, 3, 4, 5, 6, 7}, binomial);
        const Large large = begin_large(stage, block, 7);
        std::vector<std::byte> nobody;
        Set{}.encode(nobody);
        stage.say(large.node, joined({bytes_of(Answer{Kind::answer, static_cast<std::uint32_t>(nobody.size()),
                                                      block.name, group::no_relay, 0, Brings::resignation}),
                                      nobody}));
        stage.settle();
        expect_missing_only(stage, block, large.node, false);
    });
}

TEST_F(Streams, a_member_that_is_told_that_it_is_over_gives_up_and_says_so) {
    play({.nodes = 4}, [](Stage& stage) {
        const BlockOf block{
            .name = {1, 1}, .purpose = to_be_taken, .set = {0, 2, 3}, .root = 2, .bytes = content_bytes};
        say_block(stage, 2, block, 0);
        take_blocks(stage);
        stage.say(1, bytes_of(Over{Kind::over, 0, block.name, 0}));
        stage.settle();
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].by, 2u);
        EXPECT_EQ(answers[0].head.brings, Brings::resignation);
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        for (const std::uint32_t index : {1u, 2u}) say_block(stage, 2, block, index);
        EXPECT_FALSE(stage.member.groups->next(now()));
        // One that is here whole is had.
        BlockOf whole = block;
        whole.name.sequence = 2;
        for (const std::uint32_t index : {0u, 1u, 2u}) say_block(stage, 2, whole, index);
        stage.say(1, bytes_of(Over{Kind::over, 0, whole.name, 0}));
        stage.settle();
        EXPECT_EQ(good(stage.member.groups->next()).content, pattern(content_bytes, 1));
    });
}

TEST_F(Streams, wait_for_what_comes_before_them) {
    play({.nodes = 3}, [](Stage& stage) {
        const std::uint64_t number = 2;
        BlockOf block{.name = {1, 2}, .purpose = to_note, .set = {0, 1}, .bytes = sizeof number, .before = {{1, {0}}}};
        stage.say(1, block.with(bytes_of(number)));
        stage.settle();
        EXPECT_TRUE(stage.handled.empty());
        stage.say(1, cast_of({1, 1}, to_note, {0}, bytes_of(std::uint64_t{1})));
        stage.settle();
        EXPECT_EQ(stage.handled, (std::vector<std::uint64_t>{1, 2}));
    });
}

} // namespace
} // namespace kumi::group_test
