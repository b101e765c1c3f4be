// What messages take, as a master measures it: trains of messages before its first multicasts, of which the last comes
// back.

#include "group/puppets.hpp"

#include "kumi/group/plan/probing.hpp"

namespace kumi::group_test {
namespace {

using group::Kind;
using group::Probe;

class Measuring : public PuppetTest {};

/// The messages of a train, by whoever heard them; what else was heard is dropped.
std::vector<std::pair<Node, Probe>> take_train(Stage& stage) {
    std::vector<std::pair<Node, Probe>> train;
    for (const Stage::Heard& one : stage.take_heard()) {
        if (one.kind() != Kind::probe) continue;
        train.emplace_back(one.by, Probe{});
        EXPECT_TRUE(read_value(Bytes(one.bytes), train.back().second));
    }
    return train;
}

void send_back(Stage& stage, Node by, std::uint64_t train) {
    stage.say(by, bytes_of(Probe{Kind::probed, 1, train}));
    stage.settle();
}

TEST_F(Measuring, only_the_last_of_a_train_is_sent_back) {
    play({}, [](Stage& stage) {
        stage.say(1, bytes_of(Probe{Kind::probe, 0, 5}));
        stage.settle();
        EXPECT_TRUE(stage.take_heard().empty());
        stage.say(1, bytes_of(Probe{Kind::probe, 1, 5}));
        stage.settle();
        const auto heard = stage.take_heard();
        ASSERT_EQ(heard.size(), 1u);
        EXPECT_EQ(heard[0].kind(), Kind::probed);
        Probe back{};
        ASSERT_TRUE(read_value(Bytes(heard[0].bytes), back));
        EXPECT_EQ(back.train, 5u);
    });
}

TEST_F(Measuring, a_train_leaves_when_the_one_before_it_is_back_or_its_node_is_lost) {
    play({.nodes = 3, .measures = true}, [](Stage& stage) {
        const auto multicast_to = [&](Node node) {
            (void)stage.member.groups->multicast({0, node}, stage.note, std::uint64_t{0});
            stage.settle();
            return take_train(stage);
        };
        auto train = multicast_to(1);
        ASSERT_EQ(train.size(), 1u);
        EXPECT_EQ(train[0].first, 1u);
        EXPECT_EQ(train[0].second.is_last, 1u);
        send_back(stage, 2, train[0].second.train);     // not its own
        send_back(stage, 1, train[0].second.train + 1); // none that left
        EXPECT_TRUE(multicast_to(2).empty());
        send_back(stage, 1, train[0].second.train);
        train = multicast_to(1);
        ASSERT_EQ(train.size(), group::Probing::messages_max);
        for (std::size_t i = 0; i < train.size(); ++i) EXPECT_EQ(train[i].second.is_last, i + 1 == train.size());
        EXPECT_TRUE(multicast_to(2).empty());
        stage.lose(1);
        train = multicast_to(2);
        ASSERT_EQ(train.size(), group::Probing::messages_max) << "the same train, to another one";
        EXPECT_EQ(train[0].first, 2u);
    });
}

TEST_F(Measuring, ends_when_all_trains_are_back) {
    play({.measures = true}, [](Stage& stage) {
        std::size_t trains = 0;
        for (int i = 0; i < 30; ++i) {
            (void)stage.member.groups->multicast({0, 1}, stage.note, std::uint64_t{0});
            stage.settle();
            const auto train = take_train(stage);
            if (train.empty()) continue;
            ++trains;
            send_back(stage, 1, train.back().second.train);
        }
        EXPECT_EQ(trains, 3 * group::Probing::rounds);
    });
}

} // namespace
} // namespace kumi::group_test
