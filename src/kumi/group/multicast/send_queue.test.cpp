#include "kumi/group/multicast/send_queue.hpp"

#include "loopback/silent_service.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::group::send_queue_test {
namespace {

constexpr auto first_service = engine::Kind::first_of_layers;

class SendQueueTest : public testing::Test {
protected:
    std::optional<loopback::SilentService> service;
    loopback::Victim victim;
    SendQueue queue{*victim.dispatcher, service.emplace(*victim.dispatcher).port};

    std::vector<std::pair<Node, std::uint64_t>> sent() {
        std::vector<std::pair<Node, std::uint64_t>> all;
        for (const auto& message : victim.sent(first_service))
            all.emplace_back(message.to, message.head<Probe>().train);
        return all;
    }
    void send(Node to, std::uint64_t number) {
        const auto turn = victim.dispatcher->take_turn();
        queue.send(turn, to, message_of(Probe{Kind::probed, 1, number}));
    }
    template <class TryCast>
    bool go_on(TryCast&& try_cast) {
        const auto turn = victim.dispatcher->take_turn();
        return queue.go_on(turn, try_cast);
    }
    static bool no_casts(RelayId, Node) { return ADD_FAILURE() << "there are none", false; }
};
using Sent = std::vector<std::pair<Node, std::uint64_t>>;

TEST_F(SendQueueTest, what_there_is_room_for_is_sent_at_once) {
    send(1, 7);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(sent(), (Sent{{1, 7}}));
}

TEST_F(SendQueueTest, what_there_is_no_room_for_leaves_later_and_in_order) {
    victim.channel.refuse(1);
    send(1, 1);
    send(2, 2);
    send(1, 3);
    EXPECT_FALSE(queue.empty());
    EXPECT_EQ(sent(), (Sent{{2, 2}}));
    EXPECT_FALSE(go_on(no_casts));
    victim.channel.refuse(1, false);
    EXPECT_TRUE(go_on(no_casts));
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(sent(), (Sent{{1, 1}, {1, 3}}));
}

TEST_F(SendQueueTest, a_cast_that_is_refused_holds_up_what_goes_to_the_same_node) {
    {
        const auto turn = victim.dispatcher->take_turn();
        queue.add_cast(turn, 1, {4, 5});
    }
    victim.channel.refuse(1);
    send(1, 1);
    victim.channel.refuse(1, false);
    EXPECT_FALSE(go_on([](RelayId, Node) { return false; }));
    EXPECT_TRUE(sent().empty());
    EXPECT_TRUE(go_on([](RelayId relay, Node to) { return relay.index == 4 && relay.generation == 5 && to == 1; }));
    EXPECT_EQ(sent(), (Sent{{1, 1}}));
}

TEST_F(SendQueueTest, a_lost_node_is_sent_nothing) {
    victim.channel.refuse(1);
    send(1, 1);
    {
        const auto turn = victim.dispatcher->take_turn();
        queue.drop(turn, 1);
    }
    EXPECT_TRUE(queue.empty());
    send(1, 2);
    victim.channel.lose(1);
    send(1, 3);
    EXPECT_FALSE(queue.empty()) << "the second, for which there was no room";
    EXPECT_FALSE(go_on(no_casts));
    EXPECT_TRUE(queue.empty());
    EXPECT_TRUE(sent().empty());
}

} // namespace
} // namespace kumi::group::send_queue_test
