#include "kumi/engine/operation/sync_point.hpp"

#include "kumi/base/sync/thread_number.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <thread>

namespace kumi::engine {
namespace {

using loopback::Victim;

/// Node 0 of three, which sends requests, and operations of its own.
class SyncPointTest : public testing::Test {
protected:
    void request(Node to) {
        const Turn turn = victim.dispatcher->take_turn();
        Outgoing<0> message(Kind::first_handler, true);
        EXPECT_TRUE(victim.dispatcher->outbox(turn).try_request(to, message.bytes()));
    }
    void handled(Node by, std::uint16_t count) {
        const Turn turn = victim.dispatcher->take_turn();
        const Header credit{static_cast<std::uint16_t>(Kind::credit), count, 0};
        EXPECT_TRUE(victim.dispatcher->outbox(turn).on_header(by, credit));
    }
    SyncPoint point() {
        const Turn turn = victim.dispatcher->take_turn();
        return SyncPoint(base::thread_number(), operations, victim.dispatcher->outbox(turn));
    }
    bool is_reached(SyncPoint& sync) {
        const Turn turn = victim.dispatcher->take_turn();
        return sync.is_reached(operations, victim.dispatcher->outbox(turn));
    }

    Victim victim;
    Operations operations;
};

TEST_F(SyncPointTest, is_reached_at_once_if_nothing_is_under_way) {
    SyncPoint sync = point();
    EXPECT_TRUE(is_reached(sync));
}

TEST_F(SyncPointTest, waits_for_requests_that_were_sent_before_and_for_no_others) {
    request(1);
    request(1);
    request(2);
    SyncPoint sync = point();
    EXPECT_EQ(sync.missing_nodes(), (std::vector<Node>{1, 2}));
    EXPECT_FALSE(is_reached(sync));
    request(1); // later
    handled(2, 1);
    handled(1, 1);
    EXPECT_FALSE(is_reached(sync));
    EXPECT_EQ(sync.missing_nodes(), std::vector<Node>{1});
    handled(1, 2);
    EXPECT_TRUE(is_reached(sync)) << "the third was sent later";
}

TEST_F(SyncPointTest, is_of_one_thread_and_of_what_was_before) {
    OperationId others{};
    std::thread([&] { others = operations.begin({.peer = 1}); }).join();
    const OperationId own = operations.begin({.peer = 1});
    operations.begin({.peer = 1, .is_for_sync = false});
    SyncPoint sync = point();
    operations.begin({.peer = 2}); // later
    EXPECT_FALSE(is_reached(sync));
    operations.find(own)->is_done = true; // another thread looks at it, and ends it
    EXPECT_TRUE(is_reached(sync));
    EXPECT_NE(operations.find(others), nullptr);
}

TEST_F(SyncPointTest, waits_for_requests_that_an_operation_sent_before_it_ended) {
    const OperationId put = operations.begin({.peer = 0});
    SyncPoint sync = point();
    request(2); // its last piece
    operations.end(put);
    EXPECT_FALSE(is_reached(sync));
    request(2);
    handled(2, 1);
    EXPECT_TRUE(is_reached(sync));
}

TEST_F(SyncPointTest, does_not_wait_for_a_node_that_is_given_up) {
    request(1);
    SyncPoint sync = point();
    EXPECT_FALSE(is_reached(sync));
    {
        const Turn turn = victim.dispatcher->take_turn();
        victim.dispatcher->outbox(turn).give_up(1);
    }
    EXPECT_TRUE(is_reached(sync));
}

} // namespace
} // namespace kumi::engine
