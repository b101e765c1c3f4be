// Nodes that die or leave while nobody talks to them.

#include "simulation/wire.hpp"

#include <gtest/gtest.h>
#include <set>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using simulation::forged;
using simulation::NetworkOptions;
using simulation::Wire;

NetworkOptions watched(Node nodes, std::uint64_t seed = 1) {
    NetworkOptions options;
    options.nodes = nodes;
    options.seed = seed;
    options.endpoint.watch_every = 200ms;
    options.faults.delay_max = 300us;
    return options;
}

/// How long it takes until all that live know that `dead` are gone; they must hold nobody else for gone.
Duration time_until_known(Wire& wire, Node nodes, const std::set<Node>& dead) {
    const auto is_known = [&] {
        for (Node node = 0; node < nodes; ++node)
            for (const Node gone : dead)
                if (!dead.contains(node) && wire[node].gone(gone) == Gone::no) return false;
        return true;
    };
    const Duration begin = wire.time();
    EXPECT_TRUE(wire.run_until(is_known, 20s));
    const Duration took = wire.time() - begin;
    wire.run_for(2s);
    for (Node node = 0; node < nodes; ++node)
        for (Node other = 0; other < nodes; ++other)
            if (!dead.contains(node) && !dead.contains(other)) {
                EXPECT_EQ(wire[node].gone(other), Gone::no) << node << " of " << other;
            }
    return took;
}

TEST(Watch, all_nodes_know_of_a_death_within_a_second_though_nobody_talks) {
    for (const Node nodes : {2u, 3u, 5u, 16u, 64u})
        for (const double loss : {0.0, 0.01, 0.1})
            for (const unsigned burst : {0u, 6u})
                for (std::uint64_t seed = 1; seed <= 5; ++seed) {
                    SCOPED_TRACE(testing::Message() << nodes << " nodes, loss " << loss << ", seed " << seed);
                    NetworkOptions options = watched(nodes, seed);
                    options.faults.loss = loss;
                    options.refusal_burst = burst;
                    Wire wire(options);
                    wire.run_for(1s + seed * 37ms);
                    const Node victim = static_cast<Node>(seed * 5 % nodes);
                    wire.kill(victim);
                    EXPECT_LT(time_until_known(wire, nodes, {victim}), loss < 0.1 ? 900ms : 1400ms);
                }
}

TEST(Watch, all_nodes_know_of_one_that_left_though_it_has_never_talked_to_most) {
    for (const double loss : {0.0, 0.1})
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            NetworkOptions options = watched(32, seed);
            options.faults.loss = loss;
            Wire wire(options);
            wire.run_for(1s);
            wire.leave(7);
            EXPECT_LT(time_until_known(wire, 32, {7}), 1s) << "seed " << seed;
        }
}

TEST(Watch, neighbours_that_die_together_are_known_within_a_second) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Wire wire(watched(16, seed));
        wire.run_for(1s + seed * 37ms);
        const std::set<Node> dead{3, 4, 5, 6, 7};
        for (const Node node : dead) wire.kill(node);
        EXPECT_LT(time_until_known(wire, 16, dead), 1200ms) << "seed " << seed;
    }
    Wire wire(watched(5));
    wire.run_for(1s);
    for (const Node node : {0u, 1u, 2u, 4u}) wire.kill(node);
    EXPECT_LT(time_until_known(wire, 5, {0, 1, 2, 4}), 1s) << "one is left";
}

TEST(Watch, only_some_know_when_nobody_watches) {
    NetworkOptions options = watched(3);
    options.endpoint.watch_every = 0s;
    Wire wire(options);
    wire.kill(1);
    wire.run_for(100s);
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    EXPECT_EQ(wire.packets(), 0u);
}

TEST(Watch, a_node_that_is_stopped_is_not_gone_and_its_socket_is_not_filled) {
    for (const Duration stopped : {3s, 7200s}) {
        NetworkOptions options = watched(8);
        options.faults.loss = 0.01;
        Wire wire(options);
        wire.run_for(1s);
        wire.freeze(2, stopped);
        wire.run_for(stopped + 2s);
        for (Node node = 0; node < 8; ++node)
            for (Node other = 0; other < 8; ++other) ASSERT_EQ(wire[node].gone(other), Gone::no);
        EXPECT_LT(wire.socket_bytes_most(), weight_of(sizeof(PacketHeader)) * (3 * (70 + stopped / 3s)));
        EXPECT_GT(wire.socket_bytes_most(), weight_of(sizeof(PacketHeader)) * (stopped == 3s ? 30u : 200u));
        ASSERT_TRUE(wire.say(0, 2, "hello"));
        wire.wake(0);
        EXPECT_TRUE(wire.arrives(1, 1s));
        wire.run_for(1s);
        wire.kill(2);
        EXPECT_LT(time_until_known(wire, 8, {2}), 900ms) << "it is asked often again since it has answered";
    }
}

TEST(Watch, a_node_sends_the_same_few_packets_however_many_nodes_there_are) {
    for (const Node nodes : {2u, 4u, 100u}) {
        Wire wire(watched(nodes));
        wire.run_for(10s);
        const std::uint64_t watched_by_each = std::min(nodes - 1, 3u);
        EXPECT_LE(wire.packets(), nodes * watched_by_each * 2 * 50) << "a question and an answer, five times a second";
        EXPECT_GE(wire.packets(), nodes * watched_by_each * 2 * 48);
    }
}

TEST(Watch, a_death_costs_each_node_a_few_packets_and_not_one_for_each_other) {
    constexpr Node nodes = 100;
    Wire wire(watched(nodes));
    wire.run_for(1s);
    std::uint64_t reports = 0;
    wire.on_packet = [&](const PacketHeader& header) {
        reports += (header.flags & flag::data) == 0 && (header.flags & flag::report) != 0 ? 1 : 0;
    };
    wire.kill(50);
    const std::uint64_t before = wire.packets();
    EXPECT_LT(time_until_known(wire, nodes, {50}), 900ms);
    EXPECT_GE(reports, 3 * (nodes - 2));
    EXPECT_LE(reports, 6 * (nodes - 2));
    EXPECT_LT(wire.packets() - before, 15 * 3 * 2 * nodes + 12 * nodes);
}

std::vector<std::byte> report_by(Node source, Node to, Sequence transmission, std::vector<std::uint64_t> nodes) {
    return forged({.flags = flag::report, .source = source, .destination = to, .transmission = transmission}, nodes);
}

TEST(Watch, what_another_node_says_twice_is_believed_unless_the_node_answers) {
    for (const bool is_stopped : {false, true})
        for (const unsigned times : {1u, 2u}) {
            NetworkOptions options = watched(4);
            options.endpoint.watch_every = 0s;
            Wire wire(options);
            if (is_stopped) wire.freeze(2, 10s);
            for (unsigned i = 1; i <= times; ++i) {
                wire.inject(0, report_by(1, 0, i, {2}));
                wire.run_for(100ms);
            }
            wire.run_for(5s);
            EXPECT_EQ(wire[0].gone(2), is_stopped && times == 2 ? Gone::refused : Gone::no);
            EXPECT_EQ(wire[0].gone(1), Gone::no);
            EXPECT_EQ(wire[1].gone(2), Gone::no);
        }
}

TEST(Watch, a_node_that_has_left_some_is_asked_by_the_others_and_not_lost_while_it_is_stopped) {
    for (const bool is_dead : {false, true}) {
        NetworkOptions options = watched(4);
        options.endpoint.watch_every = 0s;
        Wire wire(options);
        if (is_dead) wire.kill(2);
        else wire.freeze(2, 2s);
        for (unsigned i = 1; i <= 3; ++i) {
            wire.inject(0, report_by(1, 0, i, {Reports::left_bit | 2}));
            wire.run_for(200ms);
        }
        EXPECT_EQ(wire[0].gone(2), is_dead ? Gone::refused : Gone::no);
        wire.run_for(5s);
        EXPECT_EQ(wire[0].gone(2), is_dead ? Gone::refused : Gone::no);
    }
}

TEST(Watch, a_report_that_makes_no_sense_does_no_harm) {
    Wire wire(watched(3));
    for (Sequence i = 1; i < 20; ++i) {
        wire.inject(0, report_by(1, 0, i, {0, 3, 1'000'000, ~std::uint64_t{0}, (std::uint64_t{1} << 32) | 2}));
        wire.run_for(60ms);
    }
    for (Node node = 0; node < 3; ++node) EXPECT_EQ(wire[0].gone(node), Gone::no);
    ASSERT_TRUE(wire.say(0, 2, "hello"));
    wire.wake(0);
    EXPECT_TRUE(wire.arrives(1, 100ms));
}

TEST(Watch, a_report_acknowledges_nothing_by_its_words) {
    Wire wire(watched(3));
    wire.cut(0, 1, true);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(wire.say(0, 1, "to be sent again"));
    wire.wake(0);
    wire.run_for(1ms);
    wire.inject(0, report_by(1, 0, 1, {0xFFFF'FFFF'FFFF'FFFFu}));
    wire.run_for(1ms);
    wire.cut(0, 1, false);
    EXPECT_TRUE(wire.arrives(3, 2s));
}

TEST(Watch, a_node_that_closes_tells_nobody_of_the_others) {
    Wire wire(watched(8));
    wire.run_for(1s);
    std::uint64_t reports = 0;
    wire.on_packet = [&](const PacketHeader& header) {
        reports += (header.flags & flag::data) == 0 && (header.flags & flag::report) != 0 ? 1 : 0;
    };
    wire[3].begin_close();
    wire.leave(4);
    wire.run_for(2s);
    EXPECT_EQ(reports, 0u);
    wire[6].begin_close();
    wire.kill(7);
    wire.run_for(2s);
    EXPECT_EQ(reports, 0u);
}

TEST(Watch, reports_name_a_node_in_three_rounds_and_all_of_them_when_there_are_many) {
    Reports reports(200);
    std::vector<std::byte> room(Reports::words_max * 8);
    EXPECT_TRUE(reports.add(5, false));
    EXPECT_FALSE(reports.add(5, false)) << "already";
    reports.begin_round();
    for (unsigned round = 0; round < 3; ++round) {
        EXPECT_EQ(reports.write(room.data()), 1u);
        EXPECT_EQ(reports.write(room.data()), 1u) << "for several nodes";
        reports.begin_round();
    }
    EXPECT_TRUE(reports.empty());
    for (Node node = 0; node < 200; ++node) EXPECT_TRUE(reports.add(node, false));
    reports.remove(7);
    std::vector<unsigned> named(200);
    while (!reports.empty()) {
        const std::size_t count = reports.write(room.data());
        ASSERT_LE(count, Reports::words_max);
        for (std::size_t i = 0; i < count; ++i) {
            std::uint64_t word = 0;
            std::memcpy(&word, room.data() + i * 8, 8);
            ++named.at(word);
        }
        reports.begin_round();
    }
    for (Node node = 0; node < 200; ++node) EXPECT_EQ(named[node], node == 7 ? 0u : 3u) << node;
}

} // namespace
} // namespace kumi::reliable
