#include "kumi/device/simulated/network.hpp"

#include <gtest/gtest.h>
#include <sstream>

namespace kumi::device::simulated {
namespace {

using pm::Message;

struct Job {
    explicit Job(const NetworkOptions& options) : network(options) {
        for (Node node = 0; node < options.nodes; ++node) channels.push_back(network.open(node));
    }
    void send(Node from, Node to, std::uint64_t number) {
        for (int tries = 0; tries < 1000; ++tries)
            if (channels[from]->try_send(to, bytes_of(number))) return;
        FAIL() << "refused for ever";
    }
    Network network;
    std::vector<std::unique_ptr<pm::Channel>> channels;
};

/// What happened in a run, as text.
std::string history(std::uint64_t seed) {
    Job job({.nodes = 4, .seed = seed});
    std::ostringstream text;
    for (std::uint64_t i = 0; i < 200; ++i) {
        job.channels[i % 4]->try_send(static_cast<Node>(i * 7 % 4), bytes_of(i));
        for (Node node = 0; node < 4; ++node)
            job.channels[node]->poll(
                [&](Message& message) {
                    std::uint64_t number = 0;
                    read_value(message.bytes(), number);
                    text << node << '<' << message.source() << ':' << number << ' ';
                },
                2);
    }
    return text.str();
}

TEST(SimulatedNetwork, a_run_is_a_function_of_its_seed) {
    EXPECT_EQ(history(42), history(42));
    EXPECT_NE(history(42), history(43));
}

TEST(SimulatedNetwork, messages_of_different_pairs_overtake_each_other_and_those_of_one_pair_do_not) {
    int overtaken = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Job job({.nodes = 3, .seed = seed});
        job.send(0, 2, 1);
        job.send(1, 2, 2);
        job.send(0, 2, 3);
        std::vector<std::uint64_t> order;
        for (int i = 0; i < 5000 && order.size() < 3; ++i)
            job.channels[2]->poll([&](Message& message) { read_value(message.bytes(), order.emplace_back()); }, 1);
        ASSERT_EQ(order.size(), 3u);
        EXPECT_LT(std::find(order.begin(), order.end(), 1u), std::find(order.begin(), order.end(), 3u));
        overtaken += order.front() == 2 ? 1 : 0;
    }
    EXPECT_GT(overtaken, 5);
    EXPECT_LT(overtaken, 45);
}

TEST(SimulatedNetwork, what_is_sent_across_a_partition_arrives_after_it_has_healed) {
    Job job({.nodes = 3, .seed = 5});
    job.network.part({2});
    job.send(0, 2, 7);
    job.send(0, 1, 8);
    int across = 0, inside = 0;
    for (int i = 0; i < 2000; ++i) {
        across += static_cast<int>(job.channels[2]->poll([](Message&) {}, 9));
        inside += static_cast<int>(job.channels[1]->poll([](Message&) {}, 9));
    }
    EXPECT_EQ(across, 0);
    EXPECT_EQ(inside, 1);
    job.network.heal();
    for (int i = 0; i < 2000; ++i) across += static_cast<int>(job.channels[2]->poll([](Message&) {}, 9));
    EXPECT_EQ(across, 1);
}

TEST(SimulatedNetwork, a_lost_node_takes_its_messages_along_and_is_known_to_be_lost_after_a_while) {
    Job job({.nodes = 3, .seed = 6});
    job.send(1, 0, 1);
    job.send(0, 1, 2);
    job.network.lose(1);
    EXPECT_FALSE(job.channels[0]->lost(1));
    EXPECT_EQ(job.network.in_flight(), 0u);
    EXPECT_FALSE(job.channels[1]->try_send(0, bytes_of(3)));
    job.network.advance(std::chrono::milliseconds(1));
    EXPECT_TRUE(job.channels[0]->lost(1));
    EXPECT_FALSE(job.channels[0]->lost(2));
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(job.channels[0]->try_reserve(1, 8));
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(job.channels[0]->poll([](Message&) {}, 9), 0u);
}

TEST(SimulatedNetwork, a_link_is_lost_to_one_side_and_to_the_other_when_that_has_sent_something) {
    Job job({.nodes = 3, .seed = 6});
    job.network.lose_link(0, 1);
    EXPECT_TRUE(job.channels[0]->lost(1));
    EXPECT_FALSE(job.channels[0]->try_send(1, bytes_of(1)));
    job.network.advance(std::chrono::seconds(1));
    EXPECT_FALSE(job.channels[1]->lost(0));
    EXPECT_FALSE(job.channels[2]->lost(1));
    job.send(1, 0, 2);
    job.network.advance(std::chrono::milliseconds(1));
    EXPECT_TRUE(job.channels[1]->lost(0));
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(job.channels[0]->poll([](Message&) {}, 9), 0u);
    EXPECT_FALSE(job.channels[1]->lost(2));
}

TEST(SimulatedNetwork, a_sleeper_is_woken_by_the_loss_of_a_node) {
    Job job({.nodes = 2, .seed = 7});
    job.network.lose(1);
    EXPECT_FALSE(job.channels[0]->arm()) << "a loss is coming";
    job.channels[0]->sleep(now() + std::chrono::seconds(10));
    EXPECT_TRUE(job.channels[0]->lost(1));
    EXPECT_TRUE(job.channels[0]->arm()) << "told once";
}

/// No refusals by chance, and every message takes as long.
NetworkOptions even(Node nodes = 2) {
    return {.nodes = nodes,
            .delay_min = Duration{1000},
            .delay_max = Duration{1000},
            .tick = Duration{0},
            .refusal_chance = 0};
}

std::size_t taken(Job& job, Node node, std::size_t most = pm::all_messages) {
    return job.channels[node]->poll([](Message&) {}, most);
}

TEST(SimulatedNetwork, so_many_messages_may_be_under_way_between_two_and_one_more_is_refused) {
    NetworkOptions options = even(3);
    options.in_flight_max = 3;
    Job job(options);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(job.channels[0]->try_send(1, bytes_of(i)));
    EXPECT_FALSE(job.channels[0]->try_send(1, bytes_of(3)));
    EXPECT_TRUE(job.channels[0]->try_send(2, bytes_of(3))) << "others are not concerned";
    EXPECT_TRUE(job.channels[2]->try_send(1, bytes_of(3)));
    EXPECT_EQ(job.network.in_flight(), 5u);
    job.network.advance(Duration{1000});
    EXPECT_EQ(taken(job, 1, 1), 1u);
    EXPECT_TRUE(job.channels[0]->try_send(1, bytes_of(4)));
}

TEST(SimulatedNetwork, a_message_arrives_when_its_time_has_come_and_not_before) {
    Job job(even());
    ASSERT_TRUE(job.channels[0]->try_send(1, bytes_of(1)));
    job.network.advance(Duration{999});
    EXPECT_EQ(taken(job, 1), 0u);
    job.network.advance(Duration{1});
    EXPECT_EQ(taken(job, 1), 1u);
    EXPECT_EQ(taken(job, 1), 0u);
}

TEST(SimulatedNetwork, every_poll_moves_the_clock_by_a_tick) {
    NetworkOptions options = even();
    options.tick = Duration{7};
    Job job(options);
    const Instant before = job.network.time();
    taken(job, 0);
    taken(job, 1);
    EXPECT_EQ(job.network.time() - before, Duration{14});
}

TEST(SimulatedNetwork, a_sleeper_wakes_for_a_message_at_its_time_for_room_and_for_wake) {
    NetworkOptions options = even();
    options.in_flight_max = 1;
    Job job(options);
    ASSERT_TRUE(job.channels[0]->arm()) << "nothing is under way";
    ASSERT_TRUE(job.channels[1]->try_send(0, bytes_of(1)));
    EXPECT_FALSE(job.channels[0]->arm());
    const Instant before = job.network.time();
    job.channels[0]->sleep(now() + std::chrono::seconds(10));
    EXPECT_EQ(job.network.time() - before, Duration{1000}) << "the clock jumps to what comes next";
    EXPECT_FALSE(job.channels[1]->try_send(0, bytes_of(2)));
    EXPECT_TRUE(job.channels[1]->arm()) << "there is no room yet";
    EXPECT_EQ(taken(job, 0), 1u);
    EXPECT_FALSE(job.channels[1]->arm()) << "now there is";
    ASSERT_TRUE(job.channels[0]->arm());
    job.channels[0]->wake();
    EXPECT_FALSE(job.channels[0]->arm());
    job.channels[0]->sleep(now() + std::chrono::seconds(10));
    EXPECT_TRUE(job.channels[0]->arm()) << "it was woken once";
}

TEST(SimulatedNetwork, a_loss_is_known_when_its_time_has_come_and_not_before) {
    NetworkOptions options = even();
    options.loss_detection = Duration{500};
    Job job(options);
    job.network.lose(1);
    job.network.advance(Duration{499});
    EXPECT_FALSE(job.channels[0]->lost(1));
    job.network.advance(Duration{1});
    EXPECT_TRUE(job.channels[0]->lost(1));
}

TEST(SimulatedNetwork, a_partition_cuts_both_ways_and_nothing_within_its_sides) {
    Job job(even(4));
    job.network.part({2, 3});
    for (const auto& [from, to] : {std::pair<Node, Node>{0, 1}, {1, 2}, {2, 3}, {3, 0}})
        ASSERT_TRUE(job.channels[from]->try_send(to, bytes_of(1)));
    job.network.advance(Duration{1000});
    EXPECT_EQ(taken(job, 1), 1u);
    EXPECT_EQ(taken(job, 2), 0u);
    EXPECT_EQ(taken(job, 3), 1u);
    EXPECT_EQ(taken(job, 0), 0u);
    job.network.heal();
    EXPECT_EQ(taken(job, 2), 1u);
    EXPECT_EQ(taken(job, 0), 1u);
}

} // namespace
} // namespace kumi::device::simulated
