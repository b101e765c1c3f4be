#include "kumi/group/multicast/cost_probe.hpp"

#include "kumi/group/wire/message.hpp"
#include "loopback/silent_service.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::group::cost_probe_test {
namespace {

constexpr auto first_service = engine::Kind::first_of_layers;
const Costs usual{.overhead_us = 1, .latency_us = 2, .us_per_byte = 3, .origin = Origin::usual};

class CostProbeTest : public testing::Test {
protected:
    std::optional<loopback::SilentService> service;
    loopback::Victim victim{{}, {.nodes = 4}};
    Topology topology;
    SendQueue queue{*victim.dispatcher, service.emplace(*victim.dispatcher).port};
    CostProbe probe{*victim.dispatcher, service->port, topology, queue, {}, usual};
    engine::Turn turn = victim.dispatcher->take_turn();

    std::vector<Probe> sent(Node to, Kind kind) {
        std::vector<Probe> all;
        for (const auto& message : victim.sent(first_service)) {
            EXPECT_EQ(message.to, to);
            all.push_back(message.head<Probe>());
            EXPECT_EQ(all.back().kind, kind);
        }
        return all;
    }
    bool back(Node source, std::uint64_t train) {
        const Probe head{Kind::probed, 1, train};
        return probe.on_probed(turn, source, bytes_of(head));
    }
};

TEST_F(CostProbeTest, costs_that_are_given_are_not_measured) {
    const CostProbe given(*victim.dispatcher, service->port, topology, queue, Costs{.latency_us = 9}, usual);
    EXPECT_FALSE(given.is_measuring());
    EXPECT_EQ(given.costs(turn).latency_us, 9);
    EXPECT_TRUE(probe.is_measuring());
    EXPECT_EQ(probe.costs(turn).latency_us, usual.latency_us);
}

TEST_F(CostProbeTest, a_train_goes_before_a_multicast_and_the_next_when_it_is_back) {
    probe.probe(turn, {{2, Set{2}}});
    EXPECT_EQ(sent(2, Kind::probe).size(), 1u);
    probe.probe(turn, {{2, Set{2}}});
    EXPECT_TRUE(sent(2, Kind::probe).empty()) << "the first is under way";
    EXPECT_TRUE(back(1, 1)) << "of the wrong node";
    EXPECT_TRUE(back(2, 7)) << "of another train";
    probe.probe(turn, {{2, Set{2}}});
    EXPECT_TRUE(sent(2, Kind::probe).empty());
    EXPECT_TRUE(back(2, 1));
    probe.probe(turn, {{1, Set{1}}});
    EXPECT_EQ(sent(1, Kind::probe).size(), Probing::messages_max);
    victim.channel.lose(1);
    probe.probe(turn, {{1, Set{1}}, {3, Set{3}}});
    EXPECT_FALSE(sent(3, Kind::probe).empty()) << "the second is not waited for";
}

TEST_F(CostProbeTest, ends_when_all_trains_are_back) {
    std::uint64_t trains = 0;
    while (probe.is_measuring()) {
        probe.probe(turn, {{1, Set{1}}});
        ASSERT_LT(trains, 64u);
        EXPECT_TRUE(back(1, ++trains));
        victim.channel.take_sent();
    }
    EXPECT_EQ(trains, 3 * Probing::rounds);
    EXPECT_TRUE(back(1, trains)) << "nobody waits for it";
}

TEST_F(CostProbeTest, ends_also_where_there_is_never_room) {
    victim.channel.refuse(1);
    for (int i = 0; i < 64; ++i) {
        EXPECT_TRUE(probe.is_measuring());
        probe.probe(turn, {{1, Set{1}}});
    }
    probe.probe(turn, {{1, Set{1}}});
    EXPECT_FALSE(probe.is_measuring());
}

TEST_F(CostProbeTest, the_last_message_of_a_train_is_sent_back) {
    const Probe head{Kind::probe, 0, 5}, last{Kind::probe, 1, 5};
    EXPECT_TRUE(probe.on_probe(turn, 3, bytes_of(head)));
    EXPECT_TRUE(victim.sent(first_service).empty());
    EXPECT_TRUE(probe.on_probe(turn, 3, bytes_of(last)));
    const auto told = sent(3, Kind::probed);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].train, 5u);
    EXPECT_FALSE(probe.on_probe(turn, 3, bytes_of(last).first(sizeof last - 1)));
    EXPECT_FALSE(probe.on_probed(turn, 3, {}));
}

TEST_F(CostProbeTest, typical_nodes_are_elsewhere_in_this_cluster) {
    EXPECT_EQ(find_typical(*victim.dispatcher, {}), (Set{1, 2, 3}));
    const Topology clusters({{0, 0, 0, 1}, {0, 0, 1, 2}});
    EXPECT_EQ(find_typical(*victim.dispatcher, clusters), Set{2});
    const Topology one_cluster({{0, 0, 1, 1}});
    EXPECT_EQ(find_typical(*victim.dispatcher, one_cluster), (Set{2, 3}));
}

} // namespace
} // namespace kumi::group::cost_probe_test
