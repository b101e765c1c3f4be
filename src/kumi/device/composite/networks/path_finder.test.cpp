// How one node seeks paths, passes on the seeks of others, and answers them. Whole graphs are in tests/simulation.
#include "kumi/device/composite/networks/path_finder.hpp"

#include "composite/one_node.hpp"

namespace kumi::device::composite {
namespace {

/// Nodes 1 to 3 by the first link; node 4 only by others, and no path is known.
WaysTo with_stranger() {
    return {{},
            {OneNode::by(0, 1), OneNode::relayed({})},
            {OneNode::by(0, 2), OneNode::relayed({})},
            {OneNode::by(0, 3), OneNode::relayed({})},
            {OneNode::relayed({})}};
}

std::vector<std::byte> seek_of(Node source, Node destination, Sequence number, const Path& path, std::uint8_t fan = 4) {
    Envelope head = OneNode::head(Kind::seek, source, number);
    head.destination = destination;
    head.at = fan;
    return OneNode::letter(head, path);
}

std::vector<std::byte> found_by(Node from, Sequence number, const Path& back) {
    return OneNode::letter(OneNode::head(Kind::found, from, number), back);
}

/// What was given of a kind.
std::vector<ScriptedLink::Given> only(std::vector<ScriptedLink::Given> given, Kind kind) {
    std::erase_if(given, [&](const auto& one) { return one.head().kind != kind; });
    return given;
}

TEST(Seeking, a_message_without_a_path_waits_until_one_is_found_and_goes_by_it) {
    OneNode node(with_stranger());
    ASSERT_TRUE(node.send(4, "hello"));
    node.pass(10ms);
    auto given = node.first.take();
    ASSERT_EQ(given_to(given, Kind::seek), (std::vector<Node>{11, 12, 13})) << "all neighbours are asked";
    EXPECT_EQ(given_to(given, Kind::message), std::vector<Node>{});
    EXPECT_EQ(given[0].head().destination, 4u);
    EXPECT_EQ(given[0].path(), Path{});
    const Sequence number = given[0].head().sequence;
    node.hear_bytes(found_by(4, number, {3, 2}), 0, 12); // it came over 2 and then 3
    node.networks.go_on(node.clock);
    given = only(node.first.take(), Kind::message);
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 12u);
    EXPECT_EQ(given[0].path(), (Path{2, 3}));
    EXPECT_EQ(given[0].body(), "hello");
    EXPECT_EQ(node.networks.carrier(4), "node 2");
    node.hear_bytes(found_by(4, number, {1}), 0, 11);
    ASSERT_TRUE(node.send(4, "more"));
    given = only(node.first.take(), Kind::message);
    ASSERT_EQ(given.size(), 2u) << "what has not arrived is sent again";
    EXPECT_EQ(given[0].body(), "hello");
    EXPECT_EQ(given[1].body(), "more");
    for (const auto& one : given) EXPECT_EQ(one.path(), Path{1}) << "a shorter one is taken";
    node.hear_bytes(found_by(4, number, {3, 2}), 0, 12);
    EXPECT_EQ(node.networks.carrier(4), "node 1") << "and a longer one is not";
}

TEST(Seeking, seeks_that_find_nothing_are_repeated_less_and_less_often) {
    OneNode node(with_stranger());
    ASSERT_TRUE(node.send(4, "hello"));
    std::vector<int> times;
    for (int i = 0; i < 300; ++i) {
        node.pass(10ms);
        if (!given_to(node.first.take(), Kind::seek).empty()) times.push_back(i * 10);
    }
    EXPECT_EQ(times, (std::vector<int>{0, 100, 200, 300, 400, 540, 720, 960, 1280, 1710, 2280}));
    EXPECT_EQ(node.counted().seeks, 11u);
}

TEST(Seeking, what_was_found_for_an_earlier_search_or_makes_no_sense_is_not_taken) {
    OneNode node(with_stranger());
    ASSERT_TRUE(node.send(4, "a"));
    node.pass(10ms);
    const Sequence number = only(node.first.take(), Kind::seek)[0].head().sequence;
    node.hear_bytes(found_by(4, number - 1, {1}), 0, 11);
    EXPECT_EQ(node.networks.carrier(4), "other nodes");
    node.hear_bytes(found_by(4, number, {}), 0, 11);
    EXPECT_EQ(node.networks.carrier(4), "other nodes") << "nobody is on it";
    node.hear_bytes(found_by(4, number, {0, 1}), 0, 11);
    EXPECT_EQ(node.networks.carrier(4), "other nodes") << "this node is on it";
    node.hear_bytes(found_by(4, number, {1}), 0, 11);
    EXPECT_EQ(node.networks.carrier(4), "node 1");
}

TEST(Seeking, a_seek_is_passed_on_once_to_all_that_it_has_not_passed_unless_it_came_by_a_shorter_way) {
    OneNode node(with_stranger());
    node.hear_bytes(seek_of(1, 4, 9, {3}), 0, 13);
    auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 12u);
    EXPECT_EQ(given[0].path(), (Path{3, 0}));
    EXPECT_EQ(given[0].head().source, 1u);
    node.hear_bytes(seek_of(1, 4, 9, {2}), 0, 12);
    EXPECT_TRUE(node.first.take().empty());
    node.hear_bytes(seek_of(1, 4, 9, {}), 0, 11);
    EXPECT_EQ(node.first.take().size(), 2u) << "it came by a shorter way";
    node.hear_bytes(seek_of(1, 4, 10, {0}), 0, 11);
    EXPECT_TRUE(node.first.take().empty()) << "this node is on it";
    node.hear_bytes(seek_of(1, 4, 11, {}, 0), 0, 11);
    EXPECT_EQ(node.first.take().size(), 1u) << "to as many as its source wants";
}

TEST(Seeking, what_is_said_of_paths_waits_for_room_and_then_goes_before_all_else) {
    OneNode node(with_stranger());
    node.first.room = 0;
    node.hear_bytes(
        OneNode::letter(
            {.sequence = 0, .source = 1, .destination = 3, .kind = Kind::message, .asks = 1, .hops = 1, .at = 0},
            Path{0}, "waits"),
        0, 11);
    node.hear_bytes(seek_of(1, 4, 9, {}), 0, 11);
    node.hear_bytes(seek_of(1, 4, 10, {}), 0, 11); // the same search
    node.hear_bytes(seek_of(2, 0, 5, {}), 0, 12); // for this node
    EXPECT_TRUE(node.first.take().empty());
    node.first.room = 1000;
    node.networks.go_on(node.clock);
    const auto given = node.first.take();
    const auto seeks = given_to(given, Kind::seek);
    EXPECT_EQ(std::set<Node>(seeks.begin(), seeks.end()), (std::set<Node>{12, 13}));
    EXPECT_EQ(seeks.size(), 2u) << "one for each neighbour";
    for (const auto& one : only(given, Kind::seek)) EXPECT_EQ(one.head().sequence, 10u) << "the latest";
    EXPECT_EQ(given_to(given, Kind::found), std::vector<Node>{12});
    std::vector<Kind> to_three;
    for (const auto& one : given)
        if (one.to == 13) to_three.push_back(one.head().kind);
    EXPECT_EQ(to_three, (std::vector{Kind::seek, Kind::message}));
    node.networks.go_on(node.clock);
    EXPECT_TRUE(node.first.take().empty()) << "once";
}

TEST(Seeking, a_seek_for_a_neighbour_goes_to_that_alone_and_one_that_owes_an_answer_is_not_asked) {
    OneNode node(with_stranger());
    node.hear_bytes(seek_of(1, 3, 9, {}), 0, 11);
    auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 13u);
    EXPECT_EQ(given[0].path(), Path{0});
    node.first.owed = 200ms;
    node.hear_bytes(seek_of(1, 3, 10, {2}), 0, 12);
    given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 12u) << "back where it came from";
    EXPECT_EQ(given[0].head().kind, Kind::owes);
    EXPECT_EQ(given[0].head().sequence, 3u);
    EXPECT_EQ(given[0].head().destination, 1u);
    EXPECT_EQ(given[0].path(), Path{2});
}

TEST(Seeking, who_is_sought_answers_by_the_way_it_came) {
    OneNode node(with_stranger());
    node.hear_bytes(seek_of(4, 0, 9, {3, 2}), 0, 12);
    const auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 12u);
    EXPECT_EQ(given[0].head().kind, Kind::found);
    EXPECT_EQ(given[0].head().sequence, 9u);
    EXPECT_EQ(given[0].head().destination, 4u);
    EXPECT_EQ(given[0].path(), (Path{2, 3}));
}

TEST(Seeking, a_path_that_is_said_to_be_broken_is_left_at_once_and_others_are_not) {
    WaysTo ways = with_stranger();
    ways[4] = {OneNode::relayed({1, 2})};
    OneNode node(ways);
    ASSERT_TRUE(node.send(4, "a"));
    node.pass(10ms);
    node.first.take();
    node.hear(OneNode::head(Kind::broken, 1, 3));
    node.hear(OneNode::head(Kind::broken, 2, 1));
    EXPECT_EQ(node.networks.link_to(4), 0) << "those are not on it";
    node.hear(OneNode::head(Kind::broken, 1, 2));
    EXPECT_EQ(node.networks.link_to(4), -1);
    EXPECT_FALSE(given_to(node.first.take(), Kind::seek).empty());
    EXPECT_FALSE(node.networks.lost(4));
}

TEST(Seeking, a_path_that_answers_itself_is_not_left_for_another) {
    for (const bool does_answer : {true, false}) {
        OneNode node(with_stranger());
        ASSERT_TRUE(node.send(4, "a"));
        node.pass(10ms);
        node.hear_bytes(found_by(4, only(node.first.take(), Kind::seek)[0].head().sequence, {3, 2}), 0, 12);
        node.networks.go_on(node.clock);
        node.pass(10ms);
        node.first.take();
        for (int i = 0; i < 11; ++i) node.pass(10ms); // nothing arrives
        const auto given = node.first.take();
        const auto pings = only(given, Kind::ping);
        ASSERT_EQ(pings.size(), 1u) << "the path is asked";
        EXPECT_EQ(pings[0].to, 12u);
        EXPECT_EQ(pings[0].path(), (Path{2, 3}));
        EXPECT_EQ(pings[0].head().destination, 4u);
        node.clock += 1ms;
        // by another, no shorter
        node.hear_bytes(found_by(4, only(given, Kind::seek)[0].head().sequence, {3, 1}), 0, 11);
        const Envelope pong = OneNode::head(Kind::pong, 4, pings[0].head().sequence);
        node.hear_bytes(OneNode::letter(pong, Path{3, 1}), 0, 11); // of a path that it had before, perhaps
        if (does_answer) node.hear_bytes(OneNode::letter(pong, Path{3, 2}), 0, 12);
        for (int i = 0; i < 5; ++i) node.pass(10ms);
        node.networks.go_on(node.clock);
        EXPECT_EQ(node.networks.carrier(4), does_answer ? "node 2" : "node 1");
        EXPECT_EQ(only(node.first.take(), Kind::message).size(), does_answer ? 0u : 1u)
            << "what was sent is not sent again";
    }
}

TEST(Seeking, a_ping_by_a_path_is_answered_by_it_and_passed_on_before_messages) {
    OneNode node(with_stranger());
    node.hear_bytes(OneNode::letter(OneNode::head(Kind::ping, 4, 5), Path{3, 2}), 0, 12);
    auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 12u);
    EXPECT_EQ(given[0].head().kind, Kind::pong);
    EXPECT_EQ(given[0].head().sequence, 5u);
    EXPECT_EQ(given[0].head().destination, 4u);
    EXPECT_EQ(given[0].path(), (Path{2, 3}));

    for (const Kind kind : {Kind::ping, Kind::pong}) {
        Envelope head = OneNode::head(kind, 1, 5);
        head.destination = 2;
        Envelope message = OneNode::head(Kind::message, 1, 0);
        message.destination = 2;
        node.first.room = 0;
        node.hear_bytes(OneNode::letter(message, Path{0}, "x"), 0, 11);
        node.hear_bytes(OneNode::letter(head, Path{0}), 0, 11);
        node.first.room = 1;
        node.networks.go_on(node.clock);
        given = node.first.take();
        ASSERT_EQ(given.size(), 1u);
        EXPECT_EQ(given[0].head().kind, kind);
        node.first.room = 10;
        node.networks.go_on(node.clock);
        EXPECT_EQ(given_to(node.first.take(), Kind::message), std::vector<Node>{12});
    }
}

TEST(Seeking, on_a_new_path_what_nobody_acknowledges_is_sent_again_as_soon_as_on_the_first) {
    WaysTo ways = with_stranger();
    ways[4] = {OneNode::relayed({1, 2})};
    OneNode node(ways);
    Sequence last_seek = 0;
    const auto times_sent = [&](Duration time) {
        node.pass(time);
        node.networks.go_on(node.clock);
        const auto given = node.first.take();
        for (const auto& seek : only(given, Kind::seek)) last_seek = seek.head().sequence;
        return only(given, Kind::message).size();
    };
    ASSERT_TRUE(node.send(4, "a"));
    EXPECT_EQ(times_sent(10ms), 1u);
    EXPECT_EQ(times_sent(1010ms), 1u);
    EXPECT_EQ(times_sent(2010ms), 1u) << "twice as long";
    node.hear(OneNode::head(Kind::broken, 1, 2));
    EXPECT_EQ(times_sent(1s), 0u) << "there is no path";
    node.hear_bytes(found_by(4, last_seek, {3}), 0, 13);
    EXPECT_EQ(times_sent(10ms), 1u) << "by the new path";
    EXPECT_EQ(times_sent(1010ms), 1u);
}

TEST(Seeking, a_node_that_nobody_finds_is_lost_after_a_minute_unless_a_neighbour_of_its_waits_for_it) {
    for (const bool is_awaited : {false, true}) {
        OneNode node(with_stranger());
        ASSERT_TRUE(node.send(4, "a"));
        for (int i = 0; i < 6000; ++i) {
            node.pass(10ms);
            if (is_awaited && i % 1000 == 0) node.hear(OneNode::head(Kind::owes, 1, 4));
        }
        EXPECT_FALSE(node.networks.lost(4));
        node.pass(20ms);
        EXPECT_EQ(node.networks.lost(4), !is_awaited);
    }
}

} // namespace
} // namespace kumi::device::composite
