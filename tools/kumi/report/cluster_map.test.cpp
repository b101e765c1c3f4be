#include "report/cluster_map.hpp"

#include "kumi/cluster/file.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kumi::tools {
namespace {

struct Mapped {
    cluster::Cluster cluster;
    cluster::Routing routing;
};

Mapped mapped(std::string_view text, std::uint32_t nodes) {
    auto cluster = *cluster::parse_cluster(text, "test");
    auto placement = *cluster::place(cluster, nodes, cluster::Policy::pack());
    return {cluster, cluster::Routing(cluster, placement)};
}

constexpr std::string_view two_networks = R"(
    [[network]]
    name = "fast"
    [[network]]
    name = "lan"
    encrypt = true
    [[host]]
    name = "a"
    slots = 2
    address = { fast = "10.0.0.1", lan = "10.0.1.1" }
    [[host]]
    name = "b"
    address = { fast = "10.0.0.2", lan = "10.0.1.2" }
    [[host]]
    name = "c"
    address.lan = "10.0.1.3"
)";

TEST(ClusterMap, as_text_shows_networks_hosts_routes_and_what_was_not_taken) {
    const Mapped map = mapped(two_networks, 4);
    EXPECT_EQ(map_as_text(map.cluster, map.routing), R"(4 nodes on 3 hosts, 2 networks

networks, the best first
  S  shared memory  shmem  1 channel
  F  fast           udp    2 channels
  L  lan            udp    2 channels, encrypted

hosts
  host  slots  nodes  addresses
  a         2  0 1    F 10.0.0.1 L 10.0.1.1
  b         1  2      F 10.0.0.2 L 10.0.1.2
  c         1  3      L 10.0.1.3

routes: a row sends, a column receives
         0   1   2   3
     0   -  S0  F0  L0
     1  S0   -  F0  L0
     2  F0  F1   -  L0
     3  L0  L1  L0   -

ways not taken
  shared memory (2 pairs, as 0 -> 1)
      not fast: shared memory is better
      not lan: shared memory is better
  fast (4 pairs, as 0 -> 2)
      not shared memory: a and b are two hosts
      not lan: fast has priority
  lan (6 pairs, as 0 -> 3)
      not shared memory: a and c are two hosts
      not fast: c is not on it
)");
}

TEST(ClusterMap, as_json_has_every_route_with_what_was_rejected) {
    const Mapped map = mapped(two_networks, 4);
    const auto json = nlohmann::json::parse(map_as_json(map.cluster, map.routing));
    EXPECT_EQ(json["networks"][1]["channels"], 2);
    EXPECT_EQ(json["hosts"][0]["nodes"], (std::vector<int>{0, 1}));
    EXPECT_EQ(json["routes"].size(), 12u);
    const auto& route = json["routes"][2]; // 0 to 3
    EXPECT_EQ(route["route"], "L0");
    EXPECT_EQ(route["rejected"][1]["why"], "c is not on it");
}

TEST(ClusterMap, nodes_without_a_way_are_named) {
    const Mapped map = mapped("[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"", 2);
    EXPECT_NE(map_as_text(map.cluster, map.routing)
                  .find("2 pairs cannot reach each other, first 0 -> 1: a job refuses to start like that"),
              std::string::npos);
    EXPECT_EQ(describe_route(map.cluster, map.routing, 0, 1),
              "node 0 on a to node 1 on b: ! by no way\n  not shared memory: a and b are two hosts\n");
}

TEST(ClusterMap, a_relayed_route_is_described_hop_by_hop) {
    const Mapped map = mapped("[[network]]\nname = \"lan\"\ntopology = \"chain\"\n[[host]]\nname = "
                              "\"h[0-2]\"\naddress.lan = \"10.0.0.[1-3]\"",
                              3);
    EXPECT_EQ(describe_route(map.cluster, map.routing, 0, 2),
              "node 0 on h0 to node 2 on h2: >L0 by relays, over lan first\n"
              "  0 -> 1  L0 by lan\n"
              "  1 -> 2  L0 by lan\n"
              "  not shared memory: h0 and h2 are two hosts\n"
              "  not lan: h0 and h2 are no neighbours in its chain\n");
}

TEST(ClusterMap, as_svg_draws_every_host_and_node) {
    const Mapped map = mapped(two_networks, 4);
    const std::string svg = map_as_svg(map.cluster, map.routing);
    const auto count = [&](std::string_view what) {
        std::size_t found = 0;
        for (std::size_t at = 0; (at = svg.find(what, at)) != std::string::npos; ++at) ++found;
        return found;
    };
    EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 100);
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_EQ(count("<circle"), 4u);
    EXPECT_EQ(count(">F0</text>"), 3u);
    EXPECT_EQ(count("rx='6'"), 3u); // hosts
}

} // namespace
} // namespace kumi::tools
