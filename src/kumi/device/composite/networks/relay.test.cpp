#include "kumi/device/composite/networks/relay.hpp"

#include "composite/one_node.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <string>

namespace kumi::device::composite {
namespace {

TEST(Passing, a_letter_goes_on_as_it_is_to_the_next_on_its_path) {
    OneNode node(OneNode::by_both());
    EXPECT_FALSE(node.hear_bytes(letter_to_pass(36)));
    auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 12u) << "the destination";
    EXPECT_EQ(given[0].head().at, 1);
    EXPECT_EQ(given[0].head().source, 1u);
    EXPECT_EQ(given[0].path(), Path{0});
    EXPECT_EQ(given[0].body(), "xxxx");
    EXPECT_EQ(node.counted().passed_on, 1u);
    Envelope head = OneNode::head(Kind::message, 1);
    head.destination = 2;
    head.at = 1;
    EXPECT_FALSE(node.hear_bytes(OneNode::letter(head, Path{3, 0, 3}, "y")));
    given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 13u) << "the next on its path";
    EXPECT_EQ(given[0].head().at, 2);
    EXPECT_EQ(given[0].path(), (Path{3, 0, 3}));
    EXPECT_EQ(given[0].body(), "y");
    EXPECT_EQ(node.handed, Handed{}) << "it is not this node's";
}

TEST(Passing, a_letter_whose_path_makes_no_sense_is_counted_and_dropped) {
    OneNode node(OneNode::by_both());
    Envelope head = OneNode::head(Kind::message, 1);
    head.destination = 2;
    node.hear_bytes(OneNode::letter(head, Path{}, "x"));     // nobody is to pass it on
    node.hear_bytes(OneNode::letter(head, Path{3}, "x"));    // another is
    node.hear_bytes(OneNode::letter(head, Path{0, 4}, "x")); // one more than there are nodes
    head.at = 1;
    node.hear_bytes(OneNode::letter(head, Path{0}, "x")); // all have
    head.at = 0;
    auto cut = OneNode::letter(head, Path{0});
    cut.pop_back(); // the path is not all there
    node.hear_bytes(cut);
    head.source = 0; // from this node itself
    node.hear_bytes(OneNode::letter(head, Path{0}, "x"));
    head.source = 1;
    head.destination = 4; // one more than there are nodes
    node.hear_bytes(OneNode::letter(head, Path{0}, "x"));
    EXPECT_TRUE(node.first.take().empty());
    EXPECT_EQ(node.counted().unsound, 7u);
    EXPECT_EQ(node.counted().passed_on, 0u);
}

TEST(Passing, a_relay_holds_two_windows_between_two_nodes_and_not_a_byte_more) {
    constexpr std::size_t held_max = 2 * relay_window;
    for (const std::size_t more : {0u, 1u}) {
        OneNode node(OneNode::by_both());
        node.first.room = 0;
        node.hear_bytes(letter_to_pass(held_max - 100));
        node.hear_bytes(letter_to_pass(100 + more));
        const Envelope beyond{
            .sequence = 0, .source = 1, .destination = 3, .kind = Kind::message, .asks = 1, .hops = 2, .at = 0};
        node.hear_bytes(OneNode::letter(beyond, Path{0, 2}, "x")); // to another destination, over the same neighbour
        node.hear_bytes(letter_to_pass(100, 3)); // of another source
        node.networks.go_on(node.clock);
        EXPECT_TRUE(node.first.given.empty());
        node.first.room = 10;
        node.networks.go_on(node.clock);
        auto given = node.first.take();
        ASSERT_EQ(given.size(), more == 0 ? 4u : 3u);
        EXPECT_EQ(given[given.size() - 2].head().destination, 3u);
        EXPECT_EQ(given[0].bytes.size(), held_max - 100);
        EXPECT_EQ(given[0].head().at, 1);
        EXPECT_EQ(given.back().head().source, 3u);
        // What has gone on makes room again.
        node.first.room = 0;
        node.hear_bytes(letter_to_pass(held_max - 100));
        node.hear_bytes(letter_to_pass(100));
        node.first.room = 10;
        node.networks.go_on(node.clock);
        EXPECT_EQ(node.first.take().size(), 2u);
    }
}

TEST(Passing, letters_that_wait_go_on_before_those_that_come_later) {
    OneNode node(OneNode::by_both());
    node.first.room = 0;
    node.hear_bytes(letter_to_pass(40));
    node.first.room = 10;
    node.hear_bytes(letter_to_pass(50));
    node.networks.go_on(node.clock);
    const auto given = node.first.take();
    ASSERT_EQ(given.size(), 2u);
    EXPECT_EQ(given[0].bytes.size(), 40u);
}

TEST(Passing, who_sends_to_a_node_that_is_lost_is_told_and_not_about_such_news) {
    OneNode node(OneNode::by_both());
    node.first.gone = node.second.gone = {12};
    node.hear_bytes(letter_to_pass(40));
    node.networks.go_on(node.clock);
    const auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 11u);
    EXPECT_EQ(given[0].head().kind, Kind::left);
    EXPECT_EQ(given[0].head().sequence, 2u);
    Envelope news = OneNode::head(Kind::left, 1, 3);
    news.destination = 2;
    node.hear_bytes(OneNode::letter(news, Path{0}));
    node.networks.go_on(node.clock);
    EXPECT_TRUE(node.first.take().empty());
}

TEST(Passing, a_relay_whose_networks_to_the_next_node_fail_tells_the_source_and_asks_no_other_relay) {
    WaysTo ways = OneNode::by_both();
    ways[2] = {OneNode::by(0, 2), OneNode::relayed({3})};
    OneNode node(ways);
    ASSERT_TRUE(node.send(2, 8));
    node.first.room = 0;
    node.hear_bytes(letter_to_pass(40)); // waits
    node.first.gone = {12};
    node.first.room = 100;
    node.pass(10ms);
    EXPECT_EQ(node.networks.carrier(2), "node 3") << "its own messages go there";
    node.networks.go_on(node.clock);
    const auto broken_told = [&] {
        std::vector<Sequence> told;
        for (const auto& one : node.first.take())
            if (one.head().kind == Kind::broken && one.to == 11 && one.head().destination == 1)
                told.push_back(one.head().sequence);
        return told;
    };
    EXPECT_EQ(broken_told(), std::vector<Sequence>{2}) << "of what waited";
    node.hear_bytes(letter_to_pass(40));
    EXPECT_EQ(broken_told(), std::vector<Sequence>{2});
    EXPECT_EQ(node.counted().not_passed_on, 2u);
    EXPECT_EQ(node.counted().passed_on, 1u);
}

} // namespace
} // namespace kumi::device::composite
