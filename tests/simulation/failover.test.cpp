// Whole jobs over networks that fail, by seed: whatever fails, every message arrives once and in order, if there is a
// way left or one comes back. KUMI_SEED=N replays one schedule, KUMI_SEEDS=N runs so many.
#include "kumi/device/composite/networks/networks.hpp"

#include "simulation/failing_link.hpp"
#include "simulation/seeds.hpp"
#include "skips.hpp"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <random>

namespace kumi::simulation {
namespace {

using device::composite::Link;
using device::composite::Networks;
using device::composite::Path;
using device::composite::PlannedWay;
using device::composite::StripeOptions;
using namespace std::chrono_literals;

#if defined(KUMI_ADDRESS_SANITIZER) || defined(KUMI_THREAD_SANITIZER)
constexpr std::uint64_t failures_usually = 10;
#else
constexpr std::uint64_t failures_usually = 100;
#endif
constexpr Duration step_time = 1ms;

/// Nodes that send each other numbered messages.
class World {
public:
    World(Node nodes, std::size_t networks)
        : nodes_(nodes), next_(nodes * nodes), expected_(nodes * nodes), arrived_(nodes * nodes, clock_),
          is_frozen_(nodes), losses_(nodes) {
        for (std::size_t i = 0; i < networks; ++i) networks_.push_back(std::make_unique<FailingNetwork>(nodes, clock_));
    }

    /// Before start(): nodes of a network that are joined by it; all are otherwise.
    std::function<bool(std::size_t network, Node one, Node other)> joins = [](std::size_t, Node, Node) { return true; };
    /// Whether others pass on messages, and by which path at first.
    std::function<std::optional<Path>(Node from, Node to)> path = [](Node, Node) { return std::nullopt; };
    StripeOptions stripes;

    void start() {
        for (Node node = 0; node < nodes_; ++node) {
            std::vector<Link> links;
            for (std::uint32_t i = 0; i < networks_.size(); ++i) {
                FailingLink& link = (*networks_[i])[node];
                links.push_back({&link, &link, i, "network " + std::to_string(i)});
            }
            std::vector<std::vector<PlannedWay>> ways(nodes_);
            for (Node to = 0; to < nodes_; ++to) {
                if (to == node) continue;
                for (std::uint32_t i = 0; i < networks_.size(); ++i)
                    if (joins(i, node, to)) ways[to].push_back({.link = i, .number = to});
                if (auto planned = path(node, to))
                    ways[to].push_back({.is_relayed = true, .path = *std::move(planned)});
            }
            members_.push_back(std::make_unique<Networks>(node, std::move(links), ways, stripes));
        }
    }

    FailingNetwork& network(std::size_t index) { return *networks_[index]; }
    Networks& operator[](Node node) { return *members_[node]; }
    Instant clock() const { return clock_; }
    void freeze(Node node, bool frozen) { is_frozen_[node] = frozen; }
    void change_interface(std::size_t network, Node node, bool up) {
        networks_[network]->set_up(node, up);
        changed_.push_back(node);
    }

    /// False: refused.
    bool send(Node from, Node to, std::size_t bytes, bool in_place) {
        const std::uint64_t number = next_[from * nodes_ + to];
        message_.assign(8 + bytes, static_cast<std::byte>(number));
        std::memcpy(message_.data(), &number, sizeof number);
        if (in_place) {
            const pm::SendSlot slot = members_[from]->try_reserve(to, message_.size());
            if (!slot) return false;
            std::memcpy(slot.bytes().data(), message_.data(), message_.size());
            held_.push_back({from, slot}); // and given later
        } else if (!members_[from]->try_send(to, message_)) {
            return false;
        }
        ++next_[from * nodes_ + to];
        return true;
    }
    void commit_held() {
        for (const auto& [from, slot] : held_) members_[from]->commit(slot);
        held_.clear();
    }

    void step() {
        clock_ += step_time;
        for (const auto& network : networks_) network->move_on();
        for (const Node node : std::exchange(changed_, {})) members_[node]->on_interfaces_changed(clock_);
        for (Node node = 0; node < nodes_; ++node) {
            if (is_frozen_[node]) continue;
            const auto take = [&](pm::Message& message) { check(node, message); };
            members_[node]->hand_out_early(take, pm::all_messages);
            for (std::uint32_t i = 0; i < networks_.size(); ++i)
                (*networks_[i])[node].poll(
                    [&](pm::Message& message) { members_[node]->on_message(i, message, take, clock_); },
                    pm::all_messages);
            members_[node]->go_on(clock_);
            std::uint64_t losses = 0;
            for (const auto& network : networks_) losses += (*network)[node].losses();
            if (std::exchange(losses_[node], losses) != losses) members_[node]->on_losses(clock_);
            if (clock_ - ticked_ >= Networks::tick_time) members_[node]->on_time(clock_);
        }
        if (clock_ - ticked_ >= Networks::tick_time) ticked_ = clock_;
    }

    bool all_arrived() const { return held_.empty() && expected_ == next_; }
    /// Between two messages from one node to another.
    Duration longest_pause() const { return longest_pause_; }
    bool has_arrived(Node from, Node to) const { return expected_[from * nodes_ + to] == next_[from * nodes_ + to]; }
    bool run_until(const std::function<bool()>& done, Duration limit = 30s) {
        for (const Instant deadline = clock_ + limit; !done(); step())
            if (clock_ > deadline) return false;
        return true;
    }

private:
    void check(Node at, pm::Message& message) {
        std::uint64_t number = 0;
        ASSERT_TRUE(read_value(message.bytes(), number));
        std::uint64_t& expected = expected_[message.source() * nodes_ + at];
        ASSERT_EQ(number, expected) << "from node " << message.source() << " to node " << at;
        // Gigabytes in all: the first byte is right, and every byte is as the one before.
        const Bytes rest = message.bytes().subspan(8);
        ASSERT_TRUE(rest.empty() || (rest[0] == static_cast<std::byte>(number) &&
                                     std::memcmp(rest.data(), rest.data() + 1, rest.size() - 1) == 0));
        ++expected;
        Instant& arrived = arrived_[message.source() * nodes_ + at];
        longest_pause_ = std::max(longest_pause_, clock_ - std::exchange(arrived, clock_));
    }

    Node nodes_;
    Instant clock_{1h};
    Instant ticked_{};
    std::vector<std::unique_ptr<FailingNetwork>> networks_;
    std::vector<std::unique_ptr<Networks>> members_;
    std::vector<std::uint64_t> next_, expected_; // by source and destination
    std::vector<Instant> arrived_;               // the same: when the last one has
    Duration longest_pause_{0};
    std::vector<bool> is_frozen_;
    std::vector<std::uint64_t> losses_; // by node: that its networks were told of
    std::vector<Node> changed_;
    std::vector<std::byte> message_; // to be sent, or refused
    std::vector<std::pair<Node, pm::SendSlot>> held_;
};

/// Only neighbours are joined, and pass on what is for the rest.
void chain(World& world) {
    world.joins = [](std::size_t, Node one, Node other) { return one + 1 == other || other + 1 == one; };
    world.path = [](Node from, Node to) -> std::optional<Path> {
        Path path;
        for (Node at = from; from != to && (from < to ? ++at < to : --at > to);) path.push_back(at);
        return path.empty() ? std::nullopt : std::optional(path);
    };
    world.start();
}

/// Something fails, or works again.
void disturb(World& world, Node nodes, std::size_t networks, std::mt19937_64& random) {
    const auto network = random() % networks;
    const auto one = static_cast<Node>(random() % nodes), other = static_cast<Node>(random() % nodes);
    const bool works = random() % 2 == 0;
    switch (random() % 4) {
    case 0: world.network(network).set_muted(one, other, !works); break;
    case 1:
        for (Node node = 0; node < nodes; ++node)
            for (const Node peer : {one})
                world.network(network).set_muted(node, peer, !works),
                    world.network(network).set_muted(peer, node, !works);
        break;
    case 2: world.change_interface(network, one, works); break;
    case 3: world.freeze(one, !works); break;
    }
}

/// All but one network, perhaps, which stays mute for ever, or refuses.
void repair_all(World& world, Node nodes, std::size_t networks, std::mt19937_64& random) {
    const std::size_t dead = networks > 1 ? random() % (networks + 1) : networks;
    const bool refuses = random() % 2 == 0;
    for (std::size_t i = 0; i < networks; ++i)
        for (Node one = 0; one < nodes; ++one) {
            world.change_interface(i, one, true);
            world.freeze(one, false);
            for (Node other = 0; other < nodes; ++other) {
                world.network(i).set_muted(one, other, i == dead);
                if (i == dead && refuses) world.network(i)[one].refuse(other);
            }
        }
}

void run_schedule(std::uint64_t seed, bool with_relays, bool with_stripes) {
    std::mt19937_64 random(seed);
    const auto nodes = static_cast<Node>(2 + random() % 4);
    const std::size_t networks = with_relays ? 1 + random() % 2 : 2 + random() % 2;
    World world(nodes, networks);
    if (with_stripes) {
        world.stripes = {.message_bytes_min = 1 + random() % 5000,
                         .piece_bytes_max = 1000 + random() % 50'000,
                         .ahead_bytes_max = random() % 1'000'000,
                         .always = true};
        for (std::size_t i = 0; i < networks; ++i)
            if (random() % 2 == 0) world.network(i).set_rate(1000 + random() % 100'000);
    }
    if (with_relays) {
        chain(world);
    } else if (nodes > 2 && random() % 2 == 0) {
        world.path = [](Node, Node) { return Path{}; };
        world.start();
    } else {
        world.start();
    }
    const std::size_t disturbed_every = 5 + random() % 300;
    for (int i = 0; i < 3000 && !testing::Test::HasFatalFailure(); ++i) {
        if (random() % disturbed_every == 0) disturb(world, nodes, networks, random);
        for (std::uint64_t k = random() % 6; k > 0; --k) {
            const auto from = static_cast<Node>(random() % nodes), to = static_cast<Node>(random() % nodes);
            if (from != to) world.send(from, to, random() % (random() % 8 == 0 ? 100'000 : 100), random() % 4 == 0);
        }
        if (random() % 3 == 0) world.commit_held();
        world.step();
    }
    world.commit_held();
    repair_all(world, nodes, networks, random);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived() || testing::Test::HasFatalFailure(); }))
        << "it does not end";
    for (Node node = 0; node < nodes; ++node)
        for (Node other = 0; other < nodes; ++other)
            ASSERT_FALSE(node != other && world[node].lost(other)) << node << " takes " << other << " for lost";
    for (Node node = 0; node < nodes; ++node) ASSERT_EQ(world[node].counters().unsound, 0u);
}

void run_schedules(bool with_relays, bool with_stripes = false) {
    for_each_seed(failures_usually, [&](std::uint64_t seed) { run_schedule(seed, with_relays, with_stripes); });
}

TEST(FailoverSimulation, every_message_arrives_once_and_in_order_whatever_fails) { run_schedules(false); }
TEST(FailoverSimulation, the_same_through_relays) { run_schedules(true); }
TEST(FailoverSimulation, the_same_in_pieces) { run_schedules(false, true); }
TEST(FailoverSimulation, the_same_in_pieces_through_relays) { run_schedules(true, true); }

// ---- any graph

/// Nodes that cables join as they happen to, and which of those work.
class Graph {
public:
    Graph(Node nodes, std::mt19937_64& random) : nodes_(nodes), cables_(nodes * nodes), broken_(nodes * nodes) {
        for (Node node = 1; node < nodes; ++node) join(node, static_cast<Node>(random() % node));
        for (std::uint64_t more = random() % (nodes + 1); more > 0; --more)
            join(static_cast<Node>(random() % nodes), static_cast<Node>(random() % nodes));
    }
    bool joins(Node one, Node other) const { return cables_[one * nodes_ + other]; }
    bool works(Node one, Node other) const {
        return joins(one, other) && !broken_[one * nodes_ + other] && !broken_[other * nodes_ + one];
    }
    void set_broken(Node from, Node to, bool broken) { broken_[from * nodes_ + to] = broken; }
    bool is_broken(Node from, Node to) const { return broken_[from * nodes_ + to]; }

    /// The nodes between the two on a shortest way over what works; nothing if there is none.
    std::optional<Path> path(Node from, Node to) const {
        std::vector<std::optional<Node>> before(nodes_);
        std::deque<Node> reached{from};
        before[from] = from;
        while (!reached.empty() && !before[to]) {
            for (Node next = 0; next < nodes_; ++next)
                if (!before[next] && works(reached.front(), next))
                    before[next] = reached.front(), reached.push_back(next);
            reached.pop_front();
        }
        if (!before[to]) return std::nullopt;
        Path path;
        for (Node at = *before[to]; at != from; at = *before[at]) path.insert(path.begin(), at);
        return path;
    }

    /// " 0-1 1>2": what works, in both directions or one.
    std::string text() const {
        std::string text;
        for (Node one = 0; one < nodes_; ++one)
            for (Node other = one + 1; other < nodes_; ++other)
                if (joins(one, other) && !(is_broken(one, other) && is_broken(other, one)))
                    text += fmt::format(" {}{}{}", one,
                                        works(one, other)       ? '-'
                                        : is_broken(one, other) ? '<'
                                                                : '>',
                                        other);
        return text;
    }

private:
    void join(Node one, Node other) {
        if (one != other) cables_[one * nodes_ + other] = cables_[other * nodes_ + one] = true;
    }

    Node nodes_;
    std::vector<bool> cables_, broken_;
};

/// Cables fail and come back, in one direction or both, several at a time. Every two nodes that the rest connects go on
/// talking: each message arrives within two seconds, once and in order.
void run_graph(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto nodes = static_cast<Node>(3 + random() % 8);
    World world(nodes, 1);
    Graph graph(nodes, random);
    const bool is_planned = random() % 4 != 0;
    world.joins = [&](std::size_t, Node one, Node other) { return graph.joins(one, other); };
    world.path = [&](Node from, Node to) -> std::optional<Path> {
        return is_planned && !graph.joins(from, to) ? graph.path(from, to) : Path{};
    };
    world.start();
    for (int episode = 0; episode < 30 && !testing::Test::HasFatalFailure(); ++episode) {
        for (Node one = 0; one < nodes; ++one)
            for (Node other = 0; other < one; ++other) {
                if (!graph.joins(one, other) || random() % 4 != 0) continue;
                const bool is_broken = random() % 2 == 0;
                const std::uint64_t directions = 1 + random() % 3;
                if ((directions & 1) != 0) graph.set_broken(one, other, is_broken);
                if ((directions & 2) != 0) graph.set_broken(other, one, is_broken);
                world.network(0).set_muted(one, other, graph.is_broken(one, other));
                world.network(0).set_muted(other, one, graph.is_broken(other, one));
            }
        std::vector<std::pair<Node, Node>> wanted;
        for (Node from = 0; from < nodes; ++from)
            for (Node to = 0; to < nodes; ++to)
                if (from != to && random() % 2 == 0 && graph.path(from, to) &&
                    world.send(from, to, random() % 2000, false))
                    wanted.emplace_back(from, to);
        const auto have_arrived = [&] {
            return testing::Test::HasFatalFailure() || std::ranges::all_of(wanted, [&](const auto& pair) {
                       return world.has_arrived(pair.first, pair.second);
                   });
        };
        const bool done = world.run_until(have_arrived, 2s);
        for (const auto& [from, to] : wanted)
            ASSERT_TRUE(done || world.has_arrived(from, to)) << "node " << from << " does not reach node " << to
                                                             << " in episode " << episode << " over" << graph.text();
        world.run_until([] { return false; }, std::chrono::milliseconds(random() % 300));
    }
    for (Node one = 0; one < nodes; ++one)
        for (Node other = 0; other < nodes; ++other) world.network(0).set_muted(one, other, false);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived() || testing::Test::HasFatalFailure(); }))
        << "it does not end";
    for (Node node = 0; node < nodes; ++node) ASSERT_EQ(world[node].counters().unsound, 0u);
}

TEST(FailoverSimulation, in_any_graph_nodes_that_what_works_connects_go_on_talking) {
    for_each_seed(failures_usually, run_graph);
}

/// A ring, whose nodes send about a quarter of what the cables carry. One cable after the other is out, or is ignored
/// by its switch, for a moment: what is left always joins all nodes.
void run_flapping_ring(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto nodes = static_cast<Node>(4 + random() % 3);
    World world(nodes, nodes); // network i joins nodes i and i + 1
    world.joins = [&](std::size_t network, Node one, Node other) {
        return (one == network && other == (one + 1) % nodes) || (other == network && one == (other + 1) % nodes);
    };
    world.path = [](Node, Node) { return Path{}; };
    world.start();
    const Instant end = world.clock() + 20s;
    while (world.clock() < end && !testing::Test::HasFatalFailure()) {
        const auto cut = static_cast<Node>(random() % nodes), next = static_cast<Node>((cut + 1) % nodes);
        const bool is_seen = random() % 2 == 0;
        const Node at = random() % 2 == 0 ? cut : next;
        const auto set_cut = [&](bool is_cut) {
            if (is_seen) return world.change_interface(cut, at, !is_cut);
            world.network(cut).set_muted(cut, next, is_cut);
            world.network(cut).set_muted(next, cut, is_cut);
        };
        const auto send_for = [&](Duration time) {
            for (const Instant until = world.clock() + time; world.clock() < until; world.step())
                for (Node from = 0; from < nodes; ++from)
                    for (Node to = 0; to < nodes; ++to) {
                        if (from == to) continue;
                        if (random() % 5 == 0) world.send(from, to, random() % 4000, false);
                    }
        };
        set_cut(true);
        send_for(std::chrono::milliseconds(random() % 150));
        set_cut(false);
        send_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived() || testing::Test::HasFatalFailure(); }))
        << "it does not end";
    EXPECT_LE(world.longest_pause(), 2s);
}

TEST(FailoverSimulation, while_cables_of_a_ring_flap_no_two_nodes_are_silent_for_two_seconds) {
    for_each_seed(std::max<std::uint64_t>(failures_usually / 10, 3), run_flapping_ring);
}

// ---- single cases

TEST(Failover, a_way_that_refuses_while_nothing_is_under_way_is_left_when_something_is_to_be_sent) {
    World world(2, 2);
    world.start();
    world.network(0)[0].refuse(1);
    EXPECT_FALSE(world.send(0, 1, 8, false));
    EXPECT_TRUE(world.run_until([&] { return world.send(0, 1, 8, false); }, 1s));
    EXPECT_TRUE(world.run_until([&] { return world.all_arrived(); }, 1s));
}

TEST(Failover, an_interface_that_flaps_is_usable_afterwards_whatever_became_of_the_news) {
    World world(2, 2);
    world.start();
    world.network(0).set_muted(1, 0, true); // the news are given to a network that does not deliver them
    for (int i = 0; i < 3; ++i) {
        world.change_interface(1, 1, false);
        world.run_until([] { return false; }, 20ms);
        world.change_interface(1, 1, true);
        world.run_until([] { return false; }, 20ms);
    }
    world.network(0).set_muted(0, 1, true);
    ASSERT_TRUE(world.send(0, 1, 8, false));
    EXPECT_TRUE(world.run_until([&] { return world.all_arrived(); }, 2s));
}

TEST(Relays, a_destination_that_takes_nothing_for_minutes_is_not_lost_and_costs_no_more_memory) {
    World world(3, 1);
    chain(world);
    world.network(0).set_muted(1, 2, true);
    while (world.send(0, 2, 1000, false)) world.step();
    // Of the ways only; the device of the relay would say at last that it is silent.
    world.run_until([] { return false; }, 50s);
    EXPECT_FALSE(world[0].lost(2));
    EXPECT_LT(world[1].counters().passed_on, 3000u) << "what is sent again is not kept twice";
    world.network(0).set_muted(1, 2, false);
    EXPECT_TRUE(world.run_until([&] { return world.all_arrived(); }, 60s));
}

/// Chains of several lengths, in which every node has sent something to every other.
void run_chains(const std::function<void(World&, Node nodes)>& body) {
    for (Node nodes = 3; nodes <= 6; ++nodes) {
        SCOPED_TRACE(testing::Message() << nodes << " nodes");
        World world(nodes, 1);
        chain(world);
        for (Node from = 0; from < nodes; ++from)
            for (Node to = 0; to < nodes; ++to)
                if (from != to) {
                    ASSERT_TRUE(world.send(from, to, 8, false));
                }
        ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
        body(world, nodes);
    }
}

/// All know that `gone` is, and take nobody else for lost.
bool is_known(World& world, Node nodes, Node gone) {
    for (Node node = 0; node < nodes; ++node)
        for (Node other = 0; other < nodes; ++other)
            if (node != other && node != gone && world[node].lost(other) != (other == gone)) return false;
    return true;
}

TEST(Relays, all_are_told_of_a_node_that_dies_though_nobody_sends_to_it) {
    for (const bool is_first : {false, true})
        run_chains([&](World& world, Node nodes) {
            const Node victim = is_first ? 0 : nodes - 1;
            const Node neighbour = is_first ? 1 : nodes - 2;
            world.freeze(victim, true);
            world.run_until([] { return false; }, 1s);
            world.network(0)[neighbour].refuse(victim);
            EXPECT_TRUE(world.run_until([&] { return is_known(world, nodes, victim); }, 100ms));
            EXPECT_FALSE(world.send(is_first ? nodes - 1 : 0, victim, 8, false));
        });
}

TEST(Relays, all_are_told_of_a_node_that_closes_and_it_passes_on_until_they_are_done) {
    run_chains([&](World& world, Node nodes) {
        const Node leaver = nodes / 2;
        world[leaver].begin_close();
        EXPECT_TRUE(world.run_until([&] { return is_known(world, nodes, leaver); }, 100ms));
        EXPECT_TRUE(world[leaver].is_relaying());
        EXPECT_FALSE(world.send(0, leaver, 8, false));
        ASSERT_TRUE(world.send(0, nodes - 1, 100'000, false));
        ASSERT_TRUE(world.send(nodes - 1, 0, 8, true));
        world.commit_held();
        EXPECT_TRUE(world.run_until([&] { return world.all_arrived(); }, 1s));
        for (Node node = 0; node < nodes; ++node)
            if (node != leaver) world[node].begin_close();
        const auto are_done = [&] {
            for (Node node = 0; node < nodes; ++node)
                if (world[node].is_relaying() || !world[node].have_all_arrived()) return false;
            return true;
        };
        EXPECT_TRUE(world.run_until(are_done, 2s));
    });
}

TEST(Relays, who_sends_to_a_node_that_is_gone_is_told_by_the_last_relay) {
    World world(4, 1);
    chain(world);
    ASSERT_TRUE(world.send(0, 3, 8, false));
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    world.network(0)[2].refuse(3);
    ASSERT_TRUE(world.send(0, 3, 8, false));
    EXPECT_TRUE(world.run_until([&] { return world[0].lost(3); }, 1s));
    EXPECT_FALSE(world[0].lost(2));
    EXPECT_FALSE(world.send(0, 3, 8, false));
}

TEST(Failover, a_mute_network_is_left_soon_and_taken_again_when_it_works) {
    World world(2, 2);
    world.start();
    ASSERT_TRUE(world.send(0, 1, 8, false));
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    EXPECT_EQ(world[0].carrier(1), "network 0");
    world.network(0).set_muted(0, 1, true);
    const Instant muted = world.clock();
    while (world.send(0, 1, 8, false)) {}
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    EXPECT_LT(world.clock() - muted, 300ms);
    EXPECT_EQ(world[0].carrier(1), "network 1");
    EXPECT_EQ(world[0].counters().failovers, 1u);
    world.network(0).set_muted(0, 1, false);
    ASSERT_TRUE(world.run_until([&] { return world[0].carrier(1) == "network 0"; }));
    EXPECT_EQ(world[0].counters().returns, 1u);
    ASSERT_TRUE(world.send(0, 1, 8, false));
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
}

TEST(Failover, a_lost_carrier_is_left_at_once_and_told_to_the_others) {
    World world(2, 2);
    world.start();
    world.change_interface(0, 1, false); // node 0 does not see it
    const Instant down = world.clock();
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(world.send(0, 1, 8, false));
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    EXPECT_LT(world.clock() - down, 50ms);
    EXPECT_EQ(world[0].carrier(1), "network 1");
    world.change_interface(0, 1, true);
    ASSERT_TRUE(world.run_until([&] { return world[0].carrier(1) == "network 0"; }));
}

TEST(Failover, who_does_not_answer_anywhere_is_waited_for) {
    World world(2, 2);
    world.start();
    world.freeze(1, true);
    ASSERT_TRUE(world.send(0, 1, 8, false));
    // Its host takes packets, but nobody looks at them: nothing is acknowledged.
    for (const std::size_t i : {0u, 1u}) world.network(i).set_muted(1, 0, true);
    world.run_until([] { return false; }, 5s);
    EXPECT_EQ(world[0].carrier(1), "network 0");
    EXPECT_EQ(world[0].counters().failovers, 0u);
    EXPECT_FALSE(world[0].lost(1));
    for (const std::size_t i : {0u, 1u}) world.network(i).set_muted(1, 0, false);
    world.freeze(1, false);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
}

TEST(Failover, where_nobody_listens_the_next_way_gets_everything) {
    World world(2, 2);
    world.start();
    world.network(0).set_muted(0, 1, true);
    while (world.send(0, 1, 8, false)) {}
    world.network(0)[0].refuse(1);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    EXPECT_EQ(world[0].carrier(1), "network 1");
    EXPECT_FALSE(world[0].lost(1));
    world.network(1)[0].refuse(1);
    EXPECT_TRUE(world[0].lost(1)) << "the last way is gone";
    world.step();
    EXPECT_FALSE(world.send(0, 1, 8, false));
}

TEST(Failover, a_node_is_lost_when_it_answers_nowhere_for_a_minute) {
    World world(2, 2);
    world.start();
    for (std::size_t i : {0u, 1u}) world.network(i).set_muted(0, 1, true), world.network(i).set_muted(1, 0, true);
    ASSERT_TRUE(world.send(0, 1, 8, false));
    world.run_until([&] { return world[0].lost(1); }, 50s);
    EXPECT_FALSE(world[0].lost(1));
    EXPECT_TRUE(world.run_until([&] { return world[0].lost(1); }, 20s));
}

// ---- stripes

/// Node 0 sends node 1 large messages as fast as they go; answers the bytes per second that arrive.
double stream(World& world, Duration time, std::size_t bytes = 200'000) {
    const Instant end = world.clock() + time;
    const std::uint64_t before = world[0].sent(1).bytes;
    while (world.clock() < end) {
        while (world.send(0, 1, bytes, false)) {}
        world.step();
    }
    return static_cast<double>(world[0].sent(1).bytes - before) / std::chrono::duration<double>(time).count();
}

/// Many megabytes in virtual seconds.
class Stripes : public testing::Test {
protected:
    void SetUp() override {
#if defined(KUMI_THREAD_SANITIZER)
        KUMI_SKIP(skips::not_under_tsan); // they have one thread, and take a minute
#endif
    }
};

TEST_F(Stripes, large_messages_go_over_two_networks_where_that_is_faster) {
    World world(2, 2);
    for (std::size_t i : {0u, 1u}) world.network(i).set_rate(50'000); // 50 MB/s
    world.start();
    stream(world, 5s);
    EXPECT_GT(stream(world, 2s), 90e6);
    EXPECT_GT(world[0].counters().striped, 0u);
    EXPECT_EQ(world[0].counters().resent, 0u);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    EXPECT_EQ(world[1].counters().duplicates, 0u);
}

TEST_F(Stripes, small_messages_are_left_whole) {
    World world(2, 2);
    for (std::size_t i : {0u, 1u}) world.network(i).set_rate(50'000);
    world.start();
    stream(world, 5s, 30'000);
    EXPECT_EQ(world[0].counters().striped, 0u);
    EXPECT_EQ(world.network(1)[0].bytes_arrived(1), 0u);
}

TEST_F(Stripes, each_network_carries_what_it_can) {
    World world(2, 2);
    world.stripes = {.piece_bytes_max = 30'000, .always = true};
    world.network(0).set_rate(60'000);
    world.network(1).set_rate(20'000);
    world.start();
    stream(world, 1s);
    EXPECT_GT(stream(world, 5s), 75e6);
    world.network(1).set_rate(5'000); // it slows down
    stream(world, 2s);
    EXPECT_GT(stream(world, 5s), 60e6);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
}

TEST_F(Stripes, where_one_network_slows_to_a_crawl_messages_stay_whole) {
    World world(2, 2);
    for (std::size_t i : {0u, 1u}) world.network(i).set_rate(50'000);
    world.start();
    stream(world, 5s);
    world.network(1).set_rate(1'000);
    stream(world, 20s);
    EXPECT_GT(stream(world, 2s), 48e6);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
}

TEST_F(Stripes, a_rail_that_goes_mute_is_left_and_used_again_later) {
    World world(2, 2);
    for (std::size_t i : {0u, 1u}) world.network(i).set_rate(50'000);
    world.start();
    stream(world, 5s);
    world.network(1).set_muted(0, 1, true);
    stream(world, 300ms);
    EXPECT_GT(world[0].counters().resent, 0u) << "the pieces that were on it";
    EXPECT_EQ(world[0].carrier(1), "network 0");
    EXPECT_EQ(world[0].counters().failovers, 0u);
    const double alone = stream(world, 2s);
    EXPECT_GT(alone, 48e6);
    EXPECT_LT(alone, 51e6);
    world.network(1).set_muted(0, 1, false);
    stream(world, 5s);
    EXPECT_GT(stream(world, 2s), 90e6);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
}

TEST_F(Stripes, a_rail_that_loses_its_carrier_is_left_at_once) {
    for (const Node host : {0u, 1u}) // node 0's own end, and the other
        for (const std::size_t network : {0u, 1u}) {
            World world(2, 2);
            world.stripes.always = true;
            for (std::size_t i : {0u, 1u}) world.network(i).set_rate(50'000);
            world.start();
            stream(world, 1s);
            world.change_interface(network, host, false);
            stream(world, 50ms);
            EXPECT_GT(stream(world, 1s), 48e6);
            ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
        }
}

TEST_F(Stripes, what_gets_ahead_of_a_piece_that_does_not_arrive_is_bounded) {
    World world(2, 2);
    world.stripes = {.ahead_bytes_max = 1'000'000, .always = true};
    world.start();
    stream(world, 100ms);
    world.freeze(1, true); // it takes everything in, and looks at nothing
    const std::uint64_t before = world[0].sent(1).bytes;
    for (int i = 0; i < 1000; ++i) {
        while (world.send(0, 1, 200'000, false)) {}
        for (int k = 0; k < 10; ++k) world.send(0, 1, 1000, false);
        world.step();
    }
    EXPECT_LT(world[0].sent(1).bytes - before, 4u << 20);
    world.freeze(1, false);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    EXPECT_EQ(world[1].counters().unsound, 0u);
}

TEST_F(Stripes, a_hopeless_network_is_given_no_piece_and_costs_nothing) {
    World world(2, 2);
    world.network(0).set_rate(50'000);
    world.network(1).set_rate(500);
    world.start();
    stream(world, 1s);
    EXPECT_GT(stream(world, 10s), 49.5e6);
    EXPECT_EQ(world[0].counters().striped, 0u);
    EXPECT_GT(world.network(1)[0].bytes_arrived(1), 0u) << "it was timed";
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
}

TEST_F(Stripes, whatever_fails_in_a_stream_every_message_arrives_once_and_in_order) {
    for_each_seed(failures_usually / 10, [](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        const std::size_t networks = 2 + random() % 2;
        World world(2, networks);
        for (std::size_t i = 0; i < networks; ++i) world.network(i).set_rate(1000 + random() % 60'000);
        world.start();
        for (int i = 0; i < 30 && !testing::Test::HasFatalFailure(); ++i) {
            stream(world, std::chrono::milliseconds(random() % 400), 65'536 + random() % 300'000);
            if (random() % 3 == 0) world.network(random() % networks).set_rate(1000 + random() % 60'000);
            else disturb(world, 2, networks, random);
        }
        repair_all(world, 2, networks, random);
        ASSERT_TRUE(world.run_until([&] { return world.all_arrived() || testing::Test::HasFatalFailure(); }));
        ASSERT_FALSE(world[0].lost(1));
        ASSERT_EQ(world[1].counters().unsound, 0u);
    });
}

TEST(Relays, a_source_is_held_back_when_the_destination_takes_nothing) {
    World world(3, 1);
    chain(world);
    world.freeze(2, true);
    world.network(0).set_muted(1, 2, true);
    std::size_t sent = 0;
    for (int i = 0; i < 2000; ++i) {
        while (world.send(0, 2, 1000, false)) ++sent;
        world.step();
    }
    EXPECT_GT(sent, 100u);
    EXPECT_LT(sent * 1000, 512u << 10) << "what waits in the relay is bounded";
    ASSERT_TRUE(world.send(0, 1, 8, false)) << "others are not held back";
    world.network(0).set_muted(1, 2, false);
    world.freeze(2, false);
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    EXPECT_GE(world[1].counters().passed_on, sent);
}

TEST(Relays, a_ring_that_is_full_of_messages_does_not_stop) {
    constexpr Node nodes = 6;
    World world(nodes, 1);
    world.joins = [](std::size_t, Node one, Node other) {
        return (one + 1) % nodes == other || (other + 1) % nodes == one;
    };
    world.path = [&](Node from, Node to) -> std::optional<Path> {
        if (from == to || world.joins(0, from, to)) return std::nullopt;
        const Node step = (to + nodes - from) % nodes <= nodes / 2 ? 1 : nodes - 1;
        Path path;
        for (Node at = (from + step) % nodes; at != to; at = (at + step) % nodes) path.push_back(at);
        return path;
    };
    world.start();
    for (int i = 0; i < 2000; ++i) {
        for (Node from = 0; from < nodes; ++from)
            for (Node to = 0; to < nodes; ++to)
                if (from != to) world.send(from, to, 2000, false);
        world.step();
    }
    ASSERT_TRUE(world.run_until([&] { return world.all_arrived(); }));
    for (Node node = 0; node < nodes; ++node) EXPECT_EQ(world[node].counters().not_passed_on, 0u);
}

} // namespace
} // namespace kumi::simulation
