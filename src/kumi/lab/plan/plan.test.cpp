#include "kumi/lab/plan/plan.hpp"

#include "kumi/cluster/file.hpp"

#include <gtest/gtest.h>
#include <set>

namespace kumi::lab {
namespace {

constexpr const char* small_cluster = R"(
[[network]]
name = "fast"
mtu = 9000
[[network]]
name = "lan"
rate = "100mbit"
[[host]]
name = "a[0-1]"
address.fast = "10.77.1.[1-2]"
address.lan = "10.77.3.[1-2]"
[[host]]
name = "b"
address.lan = "10.77.3.3"
)";

Result<Plan> plan_of(const std::string& text) {
    const auto cluster = cluster::parse_cluster(text, "test.toml");
    return cluster ? Plan::make(*cluster) : Result<Plan>(cluster.error());
}

std::string refusal(const std::string& text) {
    const auto plan = plan_of(text);
    return plan ? "" : plan.error().text();
}

TEST(Plan, every_host_is_on_its_networks_and_the_front_end_on_all) {
    const auto plan = plan_of(small_cluster);
    ASSERT_TRUE(plan) << plan.error().text();
    ASSERT_EQ(plan->hosts.size(), 4u);
    EXPECT_EQ(plan->hosts[3].name, "front");
    EXPECT_EQ(plan->hosts[2].ports.size(), 1u);
    EXPECT_EQ(plan->find_port("a1", "fast")->address, "10.77.1.2");
    EXPECT_EQ(plan->find_port("front", "fast")->address, "10.77.1.254");
    EXPECT_EQ(plan->find_port("front", "lan")->address, "10.77.3.254");
    EXPECT_EQ(plan->find_port("b", "lan")->subnet_bits, 24u);
    EXPECT_EQ(plan->find_port("b", "lan")->interface, "lan");
}

TEST(Plan, a_host_that_is_called_front_in_the_file_is_the_front_end) {
    const auto plan = plan_of("[[network]]\nname = \"lan\"\n[[host]]\nname = \"front\"\naddress.lan = \"10.0.0.1\"\n");
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_EQ(plan->hosts.size(), 1u);
    EXPECT_EQ(plan->hosts[0].ports.size(), 1u);
}

TEST(Plan, plain_names_are_addresses_on_the_most_general_network) {
    const auto plan = plan_of(small_cluster);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->names, "127.0.0.1 localhost\n::1 localhost\n"
                           "10.77.3.1 a0 a0-lan\n10.77.1.1 a0-fast\n"
                           "10.77.3.2 a1 a1-lan\n10.77.1.2 a1-fast\n"
                           "10.77.3.3 b b-lan\n"
                           "10.77.3.254 front front-lan\n10.77.1.254 front-fast\n");
}

TEST(Plan, names_of_interfaces_fit_and_are_the_hosts_own) {
    const auto plan = plan_of("[[network]]\nname = \"a-very-long-network-name\"\n[[network]]\nname = \"default\"\n"
                              "[[host]]\nname = \"h[0-99]\"\naddress.default = \"10.0.0.[1-100]\"\n"
                              "address.a-very-long-network-name = \"10.0.1.[1-100]\"\n");
    ASSERT_TRUE(plan) << plan.error().text();
    std::set<std::string> ports;
    for (const PlannedHost& host : plan->hosts)
        for (const Port& port : host.ports) {
            EXPECT_TRUE(ports.insert(port.name).second) << port.name;
            EXPECT_LE(port.name.size(), 15u);
            EXPECT_EQ(port.interface, fmt::format("net{}", port.network));
        }
    EXPECT_EQ(ports.size(), 202u);
}

TEST(Plan, refusals_name_the_network_and_say_what_to_write) {
    const std::string lan = "[[network]]\nname = \"lan\"\n";
    const std::string wan = "[[network]]\nname = \"wan\"\n";
    EXPECT_EQ(refusal("[[host]]\nname = \"a\"\n"),
              "the cluster file describes no network; write [[network]] and its name");
    EXPECT_EQ(refusal("[[network]]\nname = \"lan\"\nrate = \"fast\"\n[[host]]\nname = \"a\"\n"),
              "test.toml:3:8: \"fast\" is no rate; write it like 100mbit, from 1kbit to 1000gbit, or none");
    EXPECT_EQ(refusal(lan + "[[host]]\nname = \"a\"\naddress.lan = \"fe80::1%x\"\n"),
              "network \"lan\": fe80::1%x of a is no address that the lab can give");
    EXPECT_EQ(refusal(lan + wan + "[[host]]\nname = \"a\"\naddress.lan = \"10.0.0.1\"\naddress.wan = \"10.0.0.2\"\n"),
              "the networks \"lan\" (10.0.0.0/24) and \"wan\" (10.0.0.0/24) overlap; give one of them other addresses");
    EXPECT_EQ(refusal(lan + "[[host]]\nname = \"a\"\naddress.lan = \"127.0.0.2\"\n"),
              "network \"lan\": 127.0.0.0/24 is every host's own; give it other addresses");
    EXPECT_NE(refusal(lan + "[[host]]\nname = \"" + std::string(65, 'a') + "\"\n").find("too long"), std::string::npos);
}

TEST(Plan, what_is_not_there_is_named_with_what_is) {
    const auto plan = plan_of(small_cluster);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->find_host("c").error().text(), "there is no host \"c\" in the lab; write a0, a1, b or front");
    EXPECT_EQ(plan->find_network("").error().text(), "there is no network \"\" in the lab; write fast or lan");
    EXPECT_EQ(plan->find_port("b", "fast").error().text(), "b is not on fast; write lan");
}

TEST(Plan, commands_are_lines_for_one_process_each) {
    const auto plan = plan_of(small_cluster);
    ASSERT_TRUE(plan);
    const std::string lines = switch_links(*plan, {11, 12, 13, 14});
    EXPECT_NE(lines.find("link add name n0h1 mtu 9000 type veth peer name fast mtu 9000 netns 12\n"
                         "link set dev n0h1 master n0 up\n"),
              std::string::npos)
        << lines;
    EXPECT_EQ(host_links(plan->hosts[2]), "link set dev lo up\naddress add 10.77.3.3/24 dev lan\nlink set dev lan up\n"
                                          "ntable change name arp_cache dev lan retrans 100\n");
    EXPECT_EQ(shaping("lan", 100'000'000, 1500),
              "qdisc replace dev lan root tbf rate 100000000bit burst 12500b latency 20ms\n");
    EXPECT_EQ(shaping("lan", 0, 1500), "qdisc replace dev lan root noqueue\n");
    EXPECT_EQ(loss_rules(plan->networks[1], 0), "add table bridge n1\ndelete table bridge n1\n");
    EXPECT_NE(
        loss_rules(plan->networks[1], 2.5).find("iifname \"n1h*\" numgen random mod 1000000 < 25000 counter drop"),
        std::string::npos);
    EXPECT_NE(loss_rules(plan->networks[1], 100).find("iifname \"n1h*\" counter drop"), std::string::npos);
}

TEST(Plan, an_ipv6_address_is_usable_at_once) {
    const auto plan = plan_of("[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"fd77::1\"\n");
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_NE(host_links(plan->hosts[0]).find("address add fd77::1/64 dev lan nodad\n"), std::string::npos);
    EXPECT_NE(host_links(plan->hosts[0]).find("ntable change name ndisc_cache dev lan retrans 100\n"),
              std::string::npos);
    EXPECT_EQ(plan->hosts[1].ports[0].address, "fd77::fffe");
}

TEST(Plan, the_longest_names_and_the_most_hosts_are_taken_and_no_more) {
    const auto with_host = [](const std::string& name) {
        return "[[network]]\nname = \"lan\"\n[[host]]\nname = \"" + name + "\"\naddress.lan = \"10.0.0.1\"\n";
    };
    EXPECT_EQ(refusal(with_host(std::string(64, 'a'))), "");
    EXPECT_EQ(refusal(with_host(std::string(65, 'a')))
                  .find("the host name " + std::string(65, 'a') + " is too long; 64 letters are the most"),
              0u);
    const auto with_hosts = [](int count) {
        return fmt::format("[[network]]\nname = \"lan\"\n[[host]]\nname = \"h[1-{}]\"\n", count);
    };
    EXPECT_EQ(refusal(with_hosts(999)), "") << "and the front end";
    EXPECT_EQ(refusal(with_hosts(1000)), "1001 hosts are too many; a lab has 1000 at most");
}

TEST(Plan, an_interface_has_its_networks_name_if_that_is_one) {
    const auto interface_of = [](const std::string& network) {
        const auto plan = plan_of("[[network]]\nname = \"" + network + "\"\n[[host]]\nname = \"a\"\naddress." +
                                  network + " = \"10.0.0.1\"\n");
        return plan ? plan->hosts[0].ports[0].interface : plan.error().text();
    };
    EXPECT_EQ(interface_of("exactly-fifteen"), "exactly-fifteen");
    EXPECT_EQ(interface_of("exactly-sixteen1"), "net0");
    for (const char* const taken : {"lo", "all", "default"}) EXPECT_EQ(interface_of(taken), "net0") << taken;
}

TEST(Plan, loss_is_a_part_of_a_million_frames) {
    const PlannedNetwork network{"lan", "n1", 1500, 0};
    EXPECT_EQ(loss_rules(network, 0.00001), loss_rules(network, 0)) << "less than one of them";
    EXPECT_NE(loss_rules(network, 0.0001).find("mod 1000000 < 1 counter drop"), std::string::npos);
    EXPECT_NE(loss_rules(network, 99.9999).find("mod 1000000 < 999999 counter drop"), std::string::npos);
}

TEST(Plan, networks_that_touch_but_do_not_overlap_are_two) {
    const std::string two = "[[network]]\nname = \"lan\"\n[[network]]\nname = \"wan\"\n[[host]]\nname = "
                            "\"a\"\naddress.lan = \"10.0.0.1\"\n";
    EXPECT_EQ(refusal(two + "address.wan = \"10.0.1.1\"\n"), "");
    EXPECT_NE(refusal(two + "address.wan = \"10.0.0.255\"\n").find("overlap"), std::string::npos)
        << "in a /23, since it is no host's in a /24";
}

} // namespace
} // namespace kumi::lab
