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

} // namespace
} // namespace kumi::device::simulated
