#include "kumi/launch/plan.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kumi::launch {
namespace {

std::string planned(const JobOptions& options) {
    const auto plan = plan_job(options);
    if (!plan) return plan.error().text();
    std::string text;
    for (const Part& part : plan->parts)
        text += fmt::format("{}{}:{}+{}", text.empty() ? "" : " ", part.host, part.first, part.count);
    return text;
}

const std::string figure3 =
    std::string(__FILE__).substr(0, std::string(__FILE__).find("src/kumi/")) + "lab/figure3.toml";

TEST(Plan, hosts_without_nodes_have_no_part) {
    EXPECT_EQ(planned({.nodes = 4, .hosts = "a,b:2,c[0-3]:4"}), "a:0+1 b:1+2 c0:3+1");
    EXPECT_EQ(planned({.nodes = 4, .hosts = "a,b:2,c[0-3]:4", .place = "spread"}), "a:0+1 b:1+1 c0:2+1 c1:3+1");
    EXPECT_EQ(planned({.nodes = 4, .hosts = "a:9,b:9", .place = "2-per-host"}), "a:0+2 b:2+2");
}

TEST(Plan, the_cluster_file_has_hosts_and_slots_unless_others_are_named) {
    EXPECT_EQ(planned({.nodes = 7, .cluster_file = figure3}), "a0:0+2 a1:2+2 a2:4+2 a3:6+1");
    EXPECT_EQ(planned({.nodes = 2, .hosts = "b3,a0", .cluster_file = figure3}), "b3:0+1 a0:1+1");
    EXPECT_TRUE(plan_job({.nodes = 1, .cluster_file = figure3})->cluster_text);
}

TEST(Plan, what_cannot_be_is_refused_in_a_line) {
    EXPECT_EQ(planned({.nodes = 2, .hosts = "a0,x", .cluster_file = figure3}),
              "--hosts: " + figure3 + " says nothing of a host x; it has a0, a1, a2, a3, b0, b1, b2, b3");
    EXPECT_EQ(planned({.nodes = 4, .hosts = "a,b:2"}),
              "-n 4: 4 nodes wanted, and the 2 hosts have 3 slots in all: start fewer, or give hosts more slots");
    EXPECT_EQ(planned({.nodes = 1, .hosts = "a:x"}),
              "--hosts: \"a:x\": \"x\" is no number of slots; write it like a:2");
    EXPECT_EQ(planned({.nodes = 1, .hosts = ""}), "--hosts: \"\" is no host name; write hosts like a,b:2,c[0-3]:4");
    EXPECT_EQ(planned({.nodes = 1, .hosts = "a", .place = "evenly"}),
              "--place: evenly: write pack, spread, or a number like 2-per-host");
    EXPECT_EQ(planned({.nodes = 1, .place = "pack"}), "--place: on which hosts? Name them with --hosts or --cluster");
    EXPECT_EQ(planned({.nodes = 1, .cluster_file = "/no/such/file"}),
              "reading the cluster file /no/such/file: No such file or directory");
}

TEST(Plan, each_node_belongs_to_one_part) {
    const std::vector<Part> parts{{"a", 0, 2}, {"b", 2, 1}, {"c", 3, 4}};
    for (const auto& [node, part] : {std::pair{0u, 0u}, {1u, 0u}, {2u, 1u}, {3u, 2u}, {6u, 2u}})
        EXPECT_EQ(part_of(parts, node), part) << node;
}

TEST(Plan, a_host_is_known_with_and_without_its_domain) {
    EXPECT_TRUE(names_this_host("localhost", "x"));
    EXPECT_TRUE(names_this_host("x", "x"));
    EXPECT_TRUE(names_this_host("x", "x.lab.org"));
    EXPECT_FALSE(names_this_host("x.lab.org", "x")) << "it may be of another place";
    EXPECT_FALSE(names_this_host("x.lab.org", "x.other.org"));
    EXPECT_FALSE(names_this_host("x1", "x"));
    EXPECT_FALSE(names_this_host("x", "x1"));
}

TEST(Plan, a_job_is_here_when_all_of_it_is) {
    EXPECT_TRUE(plan_job({.nodes = 3})->is_here());
    EXPECT_EQ(plan_job({.nodes = 3})->parts.at(0).count, 3u);
    EXPECT_FALSE(plan_job({.nodes = 3})->cluster_text);
    EXPECT_TRUE(plan_job({.nodes = 2, .hosts = "localhost:2"})->is_here());
    EXPECT_FALSE(plan_job({.nodes = 2, .hosts = "localhost,elsewhere"})->is_here());
    EXPECT_FALSE(plan_job({.nodes = 1, .hosts = "elsewhere"})->is_here());
}

TEST(Plan, of_many_hosts_that_a_file_has_eight_are_named) {
    char file[] = "/tmp/kumi-test-plan-XXXXXX";
    const int descriptor = ::mkstemp(file);
    ASSERT_GE(descriptor, 0);
    const std::string text = "[[host]]\nname = \"h[0-8]\"\n";
    ASSERT_EQ(::write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(descriptor);
    EXPECT_EQ(planned({.nodes = 1, .hosts = "x", .cluster_file = file}),
              std::string("--hosts: ") + file +
                  " says nothing of a host x; it has h0, h1, h2, h3, h4, h5, h6, h7, ...");
    ::unlink(file);
}

} // namespace
} // namespace kumi::launch
