#include "kumi/cluster/survey.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace kumi::cluster {
namespace {

/// "eth0 10.77.1.1/24", with " out" behind it where the way to the world is.
base::Interface interface_of(const std::string& text) {
    const std::size_t space = text.find(' '), slash = text.find('/'), end = text.find(' ', slash);
    const auto bits = text.substr(slash + 1, end == std::string::npos ? end : end - slash - 1);
    return {text.substr(0, space), *base::IpAddress::parse(text.substr(space + 1, slash - space - 1)),
            static_cast<unsigned>(std::stoi(bits)), text.ends_with(" out")};
}

HostReport host(const std::string& name, const std::vector<std::string>& interfaces, std::uint32_t slots = 1) {
    HostReport report{name, slots, {}};
    for (const std::string& text : interfaces) report.interfaces.push_back(interface_of(text));
    return report;
}

/// "NETWORK: a0=ADDRESS b0=ADDRESS", network by network.
std::vector<std::string> networks(const std::vector<HostReport>& reports) {
    const auto cluster = survey(reports);
    if (!cluster) return {cluster.error().text()};
    std::vector<std::string> lines;
    for (NetworkIndex network = 0; network < cluster->networks.size(); ++network) {
        std::string line = cluster->networks[network].name + ":";
        for (const Host& one : cluster->hosts)
            if (one.is_on(network)) line += fmt::format(" {}={}", one.name, one.addresses[network]);
        lines.push_back(line);
    }
    return lines;
}

using Lines = std::vector<std::string>;

TEST(Survey, the_papers_cluster_of_clusters_is_found) {
    const auto cluster = survey({host("a0", {"myri0 10.77.1.1/24", "eth0 10.77.3.1/24"}, 2),
                                 host("a1", {"myri0 10.77.1.2/24", "eth0 10.77.3.2/24"}, 2),
                                 host("b0", {"eth1 10.77.2.1/24", "eth0 10.77.3.5/24"}),
                                 host("b1", {"eth0 10.77.3.6/24", "eth1 10.77.2.2/24"})});
    ASSERT_TRUE(cluster) << cluster.error().text();
    ASSERT_EQ(cluster->networks.size(), 3u);
    const std::vector<std::vector<std::string>> addresses{{"10.77.1.1", "", "10.77.3.1"},
                                                          {"10.77.1.2", "", "10.77.3.2"},
                                                          {"", "10.77.2.1", "10.77.3.5"},
                                                          {"", "10.77.2.2", "10.77.3.6"}};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(cluster->hosts[i].addresses, addresses[i]) << cluster->hosts[i].name;
    EXPECT_EQ(cluster->hosts[0].slots, 2u);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(cluster->networks[i].name, fmt::format("10.77.{}.0/24", i + 1));
        EXPECT_EQ(cluster->networks[i].letter, "ABC"[i]);
        EXPECT_EQ(cluster->networks[i].device, "udp");
        EXPECT_TRUE(cluster->networks[i].is_measured);
    }
}

TEST(Survey, an_address_that_two_hosts_have_joins_nobody) {
    EXPECT_EQ(networks({host("a", {"docker0 172.17.0.1/16", "eth0 10.0.0.1/24"}),
                        host("b", {"docker0 172.17.0.1/16", "eth0 10.0.0.2/24"}),
                        host("c", {"docker0 172.17.0.1/16", "eth0 10.0.0.3/24"})}),
              Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2 c=10.0.0.3"});
    EXPECT_EQ(networks({host("a", {"lo:1 10.0.0.1/24", "eth0 10.0.0.1/24"}), host("b", {"eth0 10.0.0.2/24"})}),
              Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2"})
        << "but one host may have it twice";
}

TEST(Survey, ipv6_joins_hosts_too) {
    EXPECT_EQ(networks({host("a", {"eth0 fd77:1::1/64"}), host("b", {"eth0 fd77:1::2/64"}),
                        host("c", {"eth0 fd77:1::3/64"})}),
              Lines{"fd77:1::/64: a=fd77:1::1 b=fd77:1::2 c=fd77:1::3"});
}

TEST(Survey, subnets_on_the_same_wires_are_one_network_and_ipv4_names_it) {
    EXPECT_EQ(networks({host("a", {"eth0 fd77:1::1/64", "eth0 10.0.0.1/24", "eth0 10.0.9.1/24"}),
                        host("b", {"eth0 10.0.0.2/24", "eth0 10.0.9.2/24", "eth0 fd77:1::2/64"})}),
              Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2"});
    EXPECT_EQ(networks({host("a", {"eth0 10.0.0.1/24", "eth0 fd77:1::1/64"}),
                        host("b", {"eth0 10.0.0.2/24", "eth1 fd77:1::2/64"})}),
              (Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2", "fd77:1::/64: a=fd77:1::1 b=fd77:1::2"}))
        << "b has another card there";
    EXPECT_EQ(networks({host("a", {"eth0 10.0.0.1/24", "eth0 fd77:1::1/64"}),
                        host("b", {"eth0 10.0.0.2/24", "eth0 fd77:1::2/64"}), host("c", {"eth0 fd77:1::3/64"})}),
              (Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2", "fd77:1::/64: a=fd77:1::1 b=fd77:1::2 c=fd77:1::3"}))
        << "c needs the other";
}

TEST(Survey, a_host_is_on_a_network_by_the_first_of_its_addresses) {
    EXPECT_EQ(networks({host("a", {"eth1 10.0.0.9/24", "eth0 10.0.0.1/24"}), host("b", {"eth0 10.0.0.2/24"})}),
              Lines{"10.0.0.0/24: a=10.0.0.9 b=10.0.0.2"});
}

TEST(Survey, subnets_of_different_lengths_are_different) {
    EXPECT_EQ(networks({host("a", {"eth0 10.0.1.1/16", "eth1 10.1.0.1/24"}),
                        host("b", {"eth0 10.0.1.2/24", "eth1 10.1.0.2/24"}), host("c", {"eth0 10.0.1.3/24"})}),
              (Lines{"10.0.1.0/24: b=10.0.1.2 c=10.0.1.3", "10.1.0.0/24: a=10.1.0.1 b=10.1.0.2"}));
}

TEST(Survey, one_host_needs_no_network) {
    EXPECT_EQ(networks({host("a", {"eth0 10.0.0.1/24"}, 4)}), Lines{});
    EXPECT_EQ(networks({host("a", {})}), Lines{});
}

TEST(Survey, hosts_with_nothing_in_common_are_refused_with_their_addresses) {
    EXPECT_EQ(networks({host("a", {"eth0 10.0.0.1/24", "docker0 172.17.0.1/16"}), host("a1", {"eth0 10.0.0.2/24"}),
                        host("b", {"eth0 10.0.1.1/24", "docker0 172.17.0.1/16"})}),
              Lines{"hosts a and b have no addresses in one subnet: a has 10.0.0.1/24, 172.17.0.1/16, and b has "
                    "10.0.1.1/24, 172.17.0.1/16; set "
                    "KUMI_CLUSTER to a file that describes their networks"});
    EXPECT_EQ(networks({host("a", {"eth0 10.0.0.1/24"}), host("b", {})}),
              Lines{"hosts a and b have no addresses in one subnet: a has 10.0.0.1/24, and b has none; set "
                    "KUMI_CLUSTER to a file that describes their networks"});
}

TEST(Survey, hosts_without_a_common_subnet_try_their_routers_last) {
    // Clouds give addresses like c's.
    const std::vector<HostReport> reports{host("a", {"eth0 10.0.0.1/24 out", "eth0 2001:db8::1/64 out"}),
                                          host("b", {"eth0 10.0.0.2/24 out"}), host("c", {"eth0 10.9.0.3/32 out"})};
    EXPECT_EQ(networks(reports),
              (Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2", "routed-ipv4: a=10.0.0.1 b=10.0.0.2 c=10.9.0.3"}));
    const auto cluster = survey(reports);
    EXPECT_TRUE(cluster->networks[0].is_measured);
    EXPECT_FALSE(cluster->networks[1].is_measured) << "it stays the last";
    EXPECT_EQ(cluster->networks[1].letter, 'R');
    EXPECT_EQ(networks({host("a", {"eth0 2001:db8:1::1/64 out", "eth1 10.0.0.1/24 out"}),
                        host("b", {"eth0 2001:db8:2::1/64 out", "eth1 10.0.1.1/24"})}),
              Lines{"routed-ipv6: a=2001:db8:1::1 b=2001:db8:2::1"});
}

TEST(Survey, routers_are_not_tried_where_subnets_join_all) {
    EXPECT_EQ(networks({host("a", {"eth0 10.0.0.1/24 out"}), host("b", {"eth0 10.0.0.2/24 out"})}),
              Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2"});
}

TEST(Survey, only_hosts_that_need_routers_are_on_the_network_of_routers) {
    EXPECT_EQ(networks({host("a", {"eth0 10.0.0.1/24 out"}), host("b", {"eth0 10.0.0.2/24", "eth1 10.9.0.2/24 out"}),
                        host("c", {"eth0 10.9.0.3/24 out"})}),
              (Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2", "10.9.0.0/24: b=10.9.0.2 c=10.9.0.3",
                     "routed-ipv4: a=10.0.0.1 c=10.9.0.3"}));
}

TEST(Survey, a_host_that_is_reached_through_another_is_not_refused) {
    EXPECT_EQ(networks({host("a", {"eth0 10.0.0.1/24"}), host("b", {"eth0 10.0.0.2/24", "eth1 10.9.0.2/24"}),
                        host("c", {"eth0 10.9.0.3/24"})}),
              (Lines{"10.0.0.0/24: a=10.0.0.1 b=10.0.0.2", "10.9.0.0/24: b=10.9.0.2 c=10.9.0.3"}));
}

TEST(Survey, an_address_for_the_world_that_two_hosts_have_leads_to_neither) {
    const auto refused = survey({host("a", {"eth0 10.0.0.1/32 out"}), host("b", {"eth0 10.0.0.1/32 out"})});
    EXPECT_FALSE(refused);
}

} // namespace
} // namespace kumi::cluster
