// Offers and those who accept them, in every world.

#include "engine/node.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class Rendezvous : public EngineTest {};

TEST_P(Rendezvous, either_side_may_come_first) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const Node other = 1 - engine.node();
        const auto sizes = interesting_sizes(300'000);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto content = pattern(sizes[i], i + engine.node());
            std::vector<std::byte> target(sizes[i]);
            Flag given = 0, arrived = 0;
            const auto offer = [&] { good(engine.memory().offer(i % 5, other, content, &given, i + 1)); };
            const auto accept = [&] { good(engine.memory().accept(i % 5, other, target, &arrived, i + 1)); };
            if (i % 2 == 0) offer(), good(engine.barrier()), accept();
            else accept(), good(engine.barrier()), offer();
            good(engine.memory().wait(arrived, i + 1, deadline()));
            EXPECT_TRUE(is_pattern(target, i + other)) << sizes[i];
            good(engine.memory().wait(given, i + 1, deadline()));
        }
        good(engine.barrier());
    });
}

TEST_P(Rendezvous, the_same_key_means_different_things_between_different_nodes) {
    run(3, [](Channel& channel) {
        std::array<std::uint64_t, 3> mine{}, got{};
        std::array<Flag, 3> arrived{}, given{};
        Engine engine = open(channel);
        for (Node to = 0; to < 3; ++to) { // this node too
            mine[to] = engine.node() * 10 + to;
            good(engine.memory().offer(1, to, bytes_of(mine[to]), &given[to]));
        }
        for (const Node from : {2u, 0u, 1u})
            good(engine.memory().accept(1, from, std::as_writable_bytes(std::span(&got[from], 1)), &arrived[from]));
        for (Node from = 0; from < 3; ++from) {
            good(engine.memory().wait(arrived[from], 1, deadline()));
            EXPECT_EQ(got[from], from * 10 + engine.node());
            good(engine.memory().wait(given[from], 1, deadline()));
        }
        good(engine.barrier());
    });
}

/// Every node offers every node many things under few keys, and takes as many, in an order of its own.
TEST_P(Rendezvous, many_at_once_in_any_order_all_find_their_partners) {
    run(3, [](Channel& channel) {
        const std::uint64_t count = 30 * scale, keys = 4;
        struct Item {
            Node peer;
            std::uint64_t key, number; // among those of its key and pair
            std::vector<std::byte> bytes{};
            Flag flag = 0;
        };
        const auto size_of = [](const Item& item, Node from, Node to) {
            return (item.number * 977 + item.key * 31 + from * 7 + to) % (item.number % 10 == 0 ? 100'000 : 500);
        };
        const auto content_of = [](const Item& item, Node from, Node to) {
            return item.number * 100 + item.key * 10 + from * 3 + to;
        };
        std::deque<Item> offers, accepts;
        Engine engine = open(channel);
        for (Node peer = 0; peer < 3; ++peer)
            for (std::uint64_t i = 0; i < count; ++i) {
                offers.push_back({peer, i % keys, i / keys});
                accepts.push_back({peer, i % keys, i / keys});
            }
        std::mt19937_64 random(seed() + engine.node());
        const auto shuffle_keeping_order_of_keys = [&](std::deque<Item>& items) {
            std::map<std::pair<Node, std::uint64_t>, std::uint64_t> next;
            std::shuffle(items.begin(), items.end(), random);
            for (Item& item : items) item.number = next[{item.peer, item.key}]++;
        };
        shuffle_keeping_order_of_keys(offers);
        shuffle_keeping_order_of_keys(accepts);
        for (std::size_t o = 0, a = 0; o < offers.size() || a < accepts.size();) {
            if (a == accepts.size() || (o < offers.size() && random() % 2 == 0)) {
                Item& item = offers[o++];
                item.bytes =
                    pattern(size_of(item, engine.node(), item.peer), content_of(item, engine.node(), item.peer));
                good(engine.memory().offer(item.key, item.peer, item.bytes, &item.flag));
            } else {
                Item& item = accepts[a++];
                item.bytes.resize(size_of(item, item.peer, engine.node()));
                good(engine.memory().accept(item.key, item.peer, item.bytes, &item.flag));
            }
        }
        for (Item& item : accepts) {
            good(engine.memory().wait(item.flag, 1, deadline()));
            EXPECT_TRUE(is_pattern(item.bytes, content_of(item, item.peer, engine.node())))
                << item.bytes.size() << " bytes from node " << item.peer;
        }
        for (Item& item : offers) good(engine.memory().wait(item.flag, 1, deadline()));
        good(engine.barrier());
    });
}

KUMI_ENGINE_WORLDS(Rendezvous);

} // namespace
} // namespace kumi::engine_test
