// What a channel does about nodes that have left or died.

#include "kumi/device/shmem/channel.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <utility>

namespace kumi::device::shmem {
namespace {

using namespace std::chrono_literals;

/// Nodes with the smallest rings and buffers that there are. Those that are woken are noted.
struct DepartureHost {
    struct Waker final : pm::Waker {
        void wake(Node node) noexcept override { woken.push_back(node); }
        std::vector<Node> woken;
    };

    explicit DepartureHost(Node nodes, bool locked = false)
        : segment(*Segment::create(nodes, {.rings_bytes_max = 1, .buffers_bytes_max = 1})) {
        for (Node node = 0; node < nodes; ++node) {
            EXPECT_TRUE(segment->reserve_part(node));
            LifeLock lock = locked ? *LifeLock::take(*segment, node) : LifeLock{};
            channels.push_back(std::make_unique<ShmemChannel>(segment, node, &waker, std::move(lock)));
        }
    }
    pm::Channel& operator[](Node node) { return *channels[node]; }
    void leave(Node node) { channels[node].reset(); }
    bool send(Node from, Node to, std::size_t bytes = 8) {
        return channels[from]->try_send(to, std::vector<std::byte>(bytes));
    }
    std::size_t poll(Node node, std::size_t messages_max = pm::all_messages) {
        return channels[node]->poll([](pm::Message&) {}, messages_max);
    }
    /// Polls so often that departures are noticed, and takes no message.
    void look(Node node) {
        for (std::uint32_t i = 0; i < 2 * LookPace::polls_max; ++i) EXPECT_EQ(poll(node, 0), 0u);
    }
    std::size_t all_buffers() const { return segment->layout().buffer_bytes; }

    Waker waker;
    std::shared_ptr<Segment> segment;
    std::vector<std::unique_ptr<ShmemChannel>> channels;
};

TEST(ShmemDepartures, a_node_that_has_left_is_lost_when_the_last_of_its_messages_has_been_handed_out) {
    for (const Node nodes : {3u, 64u, 65u}) {
        DepartureHost host(nodes);
        const Node leaver = nodes - 1;
        for (int i = 0; i < 5; ++i) ASSERT_TRUE(host.send(leaver, 0, i == 2 ? 10'000 : 8));
        ASSERT_TRUE(host.send(1, 0));
        host.leave(leaver);
        EXPECT_FALSE(host[0].lost(leaver)) << "nobody has polled";
        for (int left = 5; left > 0;) {
            host.look(0);
            EXPECT_FALSE(host[0].lost(leaver)) << left << " messages are left";
            host[0].poll([&](pm::Message& message) { left -= message.source() == leaver ? 1 : 0; }, 1);
        }
        host.look(0);
        EXPECT_TRUE(host[0].lost(leaver));
        host.poll(0);
        host.look(1);
        EXPECT_TRUE(host[1].lost(leaver)) << "it sent nothing here";
        for (Node node = 0; node < leaver; ++node) EXPECT_FALSE(host[0].lost(node)) << "node " << node;
        EXPECT_FALSE(host[0].arm()) << "the caller may wait for the lost node, and not know that a poll noticed it";
        EXPECT_TRUE(host[0].arm()) << "all has been noticed";
        host[0].joint_sleep()->end_sleep();
    }
}

TEST(ShmemDepartures, nothing_is_sent_to_a_lost_node_and_the_others_get_theirs) {
    DepartureHost host(3);
    ASSERT_TRUE(host.send(0, 1));
    host.leave(1);
    host.look(0);
    ASSERT_TRUE(host[0].lost(1));
    const std::uint64_t before = host[0].sent(1).messages;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{200}, std::size_t{10'000}}) {
        EXPECT_FALSE(host.send(0, 1, bytes));
        EXPECT_FALSE(host[0].try_reserve(1, bytes));
        EXPECT_TRUE(host.send(0, 2, bytes));
    }
    EXPECT_EQ(host[0].sent(1).messages, before);
    EXPECT_FALSE(host[0].arm()) << "one more is lost";
    EXPECT_TRUE(host[0].arm()) << "there will be no room, and nothing else to do";
    host[0].joint_sleep()->end_sleep();
}

TEST(ShmemDepartures, several_leave_and_each_is_noticed) {
    DepartureHost host(5);
    for (const Node leaver : {3u, 1u}) host.leave(leaver);
    host.look(0);
    EXPECT_TRUE(host[0].lost(1) && host[0].lost(3));
    ASSERT_TRUE(host.send(4, 0));
    host.leave(4);
    host.leave(2);
    host.look(0);
    EXPECT_TRUE(host[0].lost(2));
    EXPECT_FALSE(host[0].lost(4)) << "its message has not been handed out";
    EXPECT_EQ(host.poll(0), 1u);
    host.look(0);
    EXPECT_TRUE(host[0].lost(4));
    EXPECT_FALSE(host[0].lost(0));
}

TEST(ShmemDepartures, buffers_that_a_lost_node_did_not_return_can_be_used_again) {
    DepartureHost host(3);
    const std::size_t half = host.all_buffers() / 2;
    ASSERT_TRUE(host.send(0, 1, half));
    ASSERT_TRUE(host.send(0, 2, half));
    EXPECT_FALSE(host.send(0, 2, half));
    host.leave(1);
    host.look(0);
    EXPECT_TRUE(host.send(0, 2, half));
    EXPECT_FALSE(host.send(0, 2, half)) << "node 2 has not read the first one yet";
    EXPECT_EQ(host.poll(2), 1u);
    EXPECT_TRUE(host.send(0, 2, half));
}

TEST(ShmemDepartures, buffers_that_a_lost_node_returned_are_free_once) {
    DepartureHost host(3);
    const std::size_t half = host.all_buffers() / 2;
    ASSERT_TRUE(host.send(0, 1, half));
    ASSERT_EQ(host.poll(1), 1u);
    host.leave(1);
    host.look(0);
    EXPECT_TRUE(host.send(0, 2, half));
    EXPECT_TRUE(host.send(0, 2, half));
    EXPECT_FALSE(host.send(0, 2, half));
}

TEST(ShmemDepartures, what_is_committed_to_a_node_that_was_lost_meanwhile_goes_nowhere_and_takes_no_room) {
    DepartureHost host(3);
    const pm::SendSlot large = host[0].try_reserve(1, host.all_buffers());
    const pm::SendSlot small = host[2].try_reserve(1, 8);
    ASSERT_TRUE(large && small);
    host.leave(1);
    host.look(0);
    host.look(2);
    ASSERT_TRUE(host[0].lost(1) && host[2].lost(1));
    host[0].commit(large);
    EXPECT_EQ(host[0].sent(1).messages, 0u);
    EXPECT_TRUE(host.send(0, 2, host.all_buffers())) << "the buffer is free again";
    host[2].commit(small);
    EXPECT_FALSE(host.send(2, 1));
    EXPECT_TRUE(host.send(2, 0));
}

TEST(ShmemDepartures, a_message_whose_sender_died_before_it_rang_is_handed_out) {
    DepartureHost host(2);
    base::RingWriter<Memory, base::RingLine> ring(host.segment->ring(0, 1), host.segment->control(0, 1));
    ASSERT_NE(ring.try_reserve(1), nullptr);
    ring.commit(1, 8);
    EXPECT_EQ(host.poll(0), 0u) << "no bell told of it";
    host.segment->mailbox(1).presence.store(Presence::died);
    host.segment->departures(0).store(1); // whoever found it says so
    host.look(0);
    EXPECT_FALSE(host[0].lost(1));
    EXPECT_EQ(host.poll(0), 1u);
    host.look(0);
    EXPECT_TRUE(host[0].lost(1));
}

TEST(ShmemDepartures, a_node_that_leaves_wakes_all_that_sleep) {
    DepartureHost host(4);
    for (const Node sleeper : {0u, 3u}) {
        ASSERT_TRUE(host[sleeper].arm());
        host[sleeper].joint_sleep()->begin_sleep();
    }
    host.leave(1);
    EXPECT_EQ(host.waker.woken, (std::vector<Node>{0, 3}));
    host[0].joint_sleep()->end_sleep();
    EXPECT_FALSE(host[0].arm()) << "one more is lost";
    EXPECT_TRUE(host[0].lost(1));
    EXPECT_TRUE(host[0].arm());
    host[0].joint_sleep()->end_sleep();
    host[3].joint_sleep()->end_sleep();
    EXPECT_FALSE(host[2].arm()) << "also at a node that was awake";
    EXPECT_TRUE(host[2].lost(1));
}

TEST(ShmemDepartures, a_death_is_noticed_by_a_node_that_only_polls_quickly_or_slowly) {
    for (const Duration pause : {Duration{0}, Duration{20ms}}) {
        DepartureHost host(3, true);
        for (int i = 0; i < 20; ++i) EXPECT_EQ(host.poll(0), 0u);
        // Node 1 dies: nothing is said, and its lock is free. A channel says that it leaves, so it dies without one.
        host.leave(1);
        host.segment->mailbox(1).presence.store(Presence::locked);
        for (const Node node : {0u, 2u}) host.segment->departures(node).store(0);
        const Instant begin = now();
        while (!host[0].lost(1) && now() < begin + 5s) {
            host.poll(0);
            std::this_thread::sleep_for(pause);
        }
        EXPECT_TRUE(host[0].lost(1));
        EXPECT_LT(now() - begin, 1s);
        EXPECT_GT(now() - begin, Attendance::look_every / 2) << "nobody looks all the time";
        EXPECT_FALSE(host[2].arm()) << "it was told";
        EXPECT_TRUE(host[2].lost(1));
        EXPECT_FALSE(host[0].lost(2));
    }
}

TEST(ShmemDepartures, a_death_is_noticed_though_the_node_that_found_it_died_before_it_told_the_others) {
    const Instant begin = now();
    DepartureHost host(3, true);
    host.segment->mailbox(1).presence.store(Presence::died); // by node 2, which says no more
    host.look(0);
    EXPECT_TRUE(!host[0].lost(1) || now() >= begin + Attendance::look_every) << "no look is due yet";
    for (const Instant end = now() + 5s; !host[0].lost(1) && now() < end;) host.poll(0);
    EXPECT_TRUE(host[0].lost(1));
    EXPECT_FALSE(host[0].lost(2));
}

TEST(ShmemDepartures, sleeps_end_in_time_to_look_for_dead_nodes_where_there_are_locks) {
    DepartureHost locked(2, true);
    ASSERT_TRUE(locked[0].arm());
    const Instant deadline = locked[0].joint_sleep()->begin_sleep().deadline;
    EXPECT_LE(deadline, now() + Attendance::look_every);
    EXPECT_GT(deadline, now());
    locked[0].joint_sleep()->end_sleep();
    DepartureHost bare(2);
    ASSERT_TRUE(bare[0].arm());
    EXPECT_EQ(bare[0].joint_sleep()->begin_sleep().deadline, never);
    bare[0].joint_sleep()->end_sleep();
}

} // namespace
} // namespace kumi::device::shmem
