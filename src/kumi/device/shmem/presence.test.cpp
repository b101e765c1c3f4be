#include "kumi/device/shmem/presence.hpp"

#include <algorithm>
#include <csignal>
#include <gtest/gtest.h>
#include <initializer_list>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace kumi::device::shmem {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{};

/// Nodes of a host without channels.
struct Attendants {
    explicit Attendants(Node nodes) : segment(*Segment::create(nodes, {.rings_bytes_max = 1, .buffers_bytes_max = 1})) {
        for (Node node = 0; node < nodes; ++node) EXPECT_TRUE(segment->reserve_part(node));
        all.resize(nodes);
    }
    void come(Node node) { all[node].emplace(segment, node, *LifeLock::take(*segment, node), start); }
    void come_without_lock(Node node) { all[node].emplace(segment, node, LifeLock{}, start); }
    void come_all() {
        for (Node node = 0; node < all.size(); ++node) come(node);
    }
    void die(Node node) { all[node].reset(); } // it says nothing
    Attendance& operator[](Node node) { return *all[node]; }
    Presence word(Node node) const { return segment->mailbox(node).presence; }

    std::shared_ptr<Segment> segment;
    std::vector<std::optional<Attendance>> all;
};

TEST(ShmemLifeLock, is_seen_by_others_until_it_ends) {
    Attendants nodes(3);
    const auto zero = LifeLock::take(*nodes.segment, 0);
    ASSERT_TRUE(zero) << zero.error().text();
    EXPECT_TRUE(zero->is_free(1));
    EXPECT_EQ(nodes.word(1), Presence::here);
    {
        const auto one = LifeLock::take(*nodes.segment, 1);
        ASSERT_TRUE(one) << one.error().text();
        EXPECT_FALSE(zero->is_free(1));
        EXPECT_FALSE(one->is_free(0));
        EXPECT_TRUE(one->is_free(2));
        EXPECT_EQ(nodes.word(1), Presence::locked);
        EXPECT_FALSE(LifeLock::take(*nodes.segment, 1)) << "one node has it";
    }
    EXPECT_TRUE(zero->is_free(1));
}

TEST(ShmemLifeLock, is_not_lost_when_other_descriptors_of_the_memory_are_closed) {
    Attendants nodes(2);
    const auto zero = LifeLock::take(*nodes.segment, 0);
    const auto one = LifeLock::take(*nodes.segment, 1);
    ASSERT_TRUE(zero && one);
    nodes.segment->duplicate();
    { EXPECT_TRUE(Segment::attach(nodes.segment->duplicate(), 2)); }
    EXPECT_FALSE(zero->is_free(1));
    EXPECT_FALSE(one->is_free(0));
}

TEST(ShmemLifeLock, of_a_process_that_is_killed_is_free) {
    Attendants nodes(2);
    const auto zero = LifeLock::take(*nodes.segment, 0);
    ASSERT_TRUE(zero);
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto one = LifeLock::take(*nodes.segment, 1);
        if (!one || ::write(ready[1], "", 1) != 1) ::_exit(1);
        while (true) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_FALSE(zero->is_free(1));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(zero->is_free(1));
    ::close(ready[0]), ::close(ready[1]);
}

TEST(ShmemAttendance, a_node_that_dies_is_found_once_and_is_gone_to_all) {
    Attendants nodes(3);
    nodes.come_all();
    EXPECT_FALSE(nodes[0].find_dead(start));
    for (Node node = 0; node < 3; ++node) EXPECT_FALSE(nodes[0].is_gone(node));
    nodes.die(1);
    EXPECT_FALSE(nodes[2].is_gone(1)) << "nobody has looked";
    EXPECT_TRUE(nodes[0].find_dead(start));
    EXPECT_EQ(nodes.word(1), Presence::died);
    EXPECT_TRUE(nodes[0].is_gone(1));
    EXPECT_TRUE(nodes[2].is_gone(1));
    EXPECT_FALSE(nodes[0].find_dead(start));
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(nodes[2].find_dead(start)) << "it has been found";
    EXPECT_FALSE(nodes[0].is_gone(2));
}

TEST(ShmemAttendance, a_node_that_leaves_is_gone_and_not_dead) {
    Attendants nodes(2);
    nodes.come_all();
    EXPECT_TRUE(nodes[1].leave());
    EXPECT_TRUE(nodes[0].is_gone(1));
    nodes.die(1);
    EXPECT_FALSE(nodes[0].find_dead(start));
    EXPECT_EQ(nodes.word(1), Presence::left);
}

TEST(ShmemAttendance, a_node_without_a_lock_is_never_dead_and_finds_nobody) {
    Attendants nodes(3);
    nodes.come(0);
    nodes.come_without_lock(1);
    nodes.come(2);
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(nodes[0].find_dead(start));
    EXPECT_FALSE(nodes[0].is_gone(1));
    EXPECT_EQ(nodes[1].next_look(), never);
    nodes.die(2);
    EXPECT_TRUE(nodes[0].find_dead(start)) << "the node behind it is looked at";
    EXPECT_TRUE(nodes[1].leave());
    EXPECT_TRUE(nodes[0].is_gone(1));
}

TEST(ShmemAttendance, all_that_died_at_once_are_found_by_one_look) {
    Attendants nodes(6);
    nodes.come_all();
    for (const Node node : {0u, 1u, 3u, 4u, 5u}) nodes.die(node);
    EXPECT_TRUE(nodes[2].find_dead(start));
    for (const Node node : {0u, 1u, 3u, 4u, 5u}) EXPECT_TRUE(nodes[2].is_gone(node)) << "node " << node;
    EXPECT_FALSE(nodes[2].is_gone(2));
}

TEST(ShmemAttendance, a_death_is_found_by_the_node_before_at_once_and_by_all_others_in_turn) {
    for (Node finder = 0; finder < 5; ++finder) {
        Attendants nodes(5);
        nodes.come_all();
        nodes.die(3);
        int looks = 1;
        while (!nodes[finder == 3 ? 4 : finder].find_dead(start) && looks < 100) ++looks;
        EXPECT_LE(looks, finder == 2 ? 1 : 4) << "by node " << finder;
    }
}

TEST(ShmemAttendance, looks_are_so_far_apart_and_end_when_nobody_is_left) {
    Attendants nodes(2);
    nodes.come_all();
    EXPECT_EQ(nodes[0].next_look(), start + Attendance::look_every);
    EXPECT_LE(Attendance::look_every, 400ms) << "a death is told within a second";
    EXPECT_GE(Attendance::look_every, 250ms) << "a node that waits sleeps";
    EXPECT_FALSE(nodes[0].find_dead(start + 5s));
    EXPECT_EQ(nodes[0].next_look(), start + 5s + Attendance::look_every);
    EXPECT_TRUE(nodes[1].leave());
    EXPECT_FALSE(nodes[0].find_dead(start + 6s));
    EXPECT_EQ(nodes[0].next_look(), never);
    Attendants alone(1);
    alone.come_all();
    EXPECT_EQ(alone[0].next_look(), never);
}

TEST(ShmemAttendance, a_process_that_a_node_forked_does_not_leave_in_its_name) {
    Attendants nodes(2);
    nodes.come_all();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(nodes[1].leave() ? 1 : 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(nodes[0].is_gone(1));
    EXPECT_FALSE(nodes[0].find_dead(start));
}

TEST(ShmemLookPace, quick_polls_look_at_the_clock_rarely_and_slow_ones_often) {
    LookPace pace;
    for (int i = 0; i < 20; ++i) pace.on_polls(pace.polls() * 20ns);
    EXPECT_EQ(pace.polls(), LookPace::polls_max);
    for (const Duration slow : std::initializer_list<Duration>{100us, 1ms, 10ms, 100ms, 1s}) {
        Duration late{};
        for (int i = 0; i < 20; ++i) pace.on_polls(late = pace.polls() * slow);
        EXPECT_LE(late, std::max<Duration>(Attendance::look_every / 3, slow)) << slow.count() << " ns";
        EXPECT_GE(pace.polls(), 1u);
    }
    for (int i = 0; i < 20; ++i) pace.on_polls(pace.polls() * 20ns);
    EXPECT_EQ(pace.polls(), LookPace::polls_max);
}

} // namespace
} // namespace kumi::device::shmem
