// Jobs on several hosts that no file describes: the nodes find out by themselves what joins them, and what is fast.
#include "cluster/hydra_lab.hpp"

#include <fstream>
#include <unistd.h>
#include <vector>

using namespace kumi::cluster_test;

namespace {

// As the lab's file has them.
const std::string myrinet = "10.77.1.0/24", gigabit = "10.77.2.0/24", lan = "10.77.3.0/24";

class Looking : public HydraLab {
protected:
    Outcome look(const std::string& hosts, int nodes, const std::string& network = "lan") {
        return on_hosts(hosts, nodes, program("carriers"), {"KUMI_LOG="}, network);
    }
    /// Two hosts that share no network, and a front end on the networks of both.
    std::string two_islands() {
        const std::string file = folder_.path() + "/islands.toml";
        std::ofstream(file) << "[[network]]\nname = \"one\"\n[[network]]\nname = \"other\"\n[[host]]\nname = "
                               "\"a0\"\naddress.one = \"10.77.1.1\"\n"
                               "[[host]]\nname = \"b0\"\naddress.other = \"10.77.2.1\"\n";
        return file;
    }
};

} // namespace

TEST_F(Looking, the_papers_cluster_talks_by_the_papers_routes_without_a_file) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP();
    const Outcome outcome = look("a0:2,a1:2,a2:2,a3:2,b0,b1,b2,b3", 12);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(carriers(outcome), papers_routes(myrinet, gigabit, lan));
}

TEST_F(Looking, the_network_that_carries_more_is_used_whatever_its_name) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP();
    ASSERT_EQ(lab({"rate", "myrinet", "10mbit"}).code, 0); // a tenth of the LAN's
    const Outcome outcome = look("a0,a1,b0,b1", 4);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(carriers(outcome),
              (std::vector<std::string>{"- " + lan + " " + lan + " " + lan, lan + " - " + lan + " " + lan,
                                        lan + " " + lan + " - " + gigabit, lan + " " + lan + " " + gigabit + " -"}));
}

TEST_F(Looking, a_network_that_is_mute_is_not_used_and_that_is_said) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP();
    ASSERT_EQ(lab({"mute", "a0", "myrinet", "on"}).code, 0);
    const Outcome outcome = look("a0,a1,a2", 3);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(carriers(outcome),
              (std::vector<std::string>{"- " + lan + " " + lan, lan + " - " + myrinet, lan + " " + myrinet + " -"}));
    EXPECT_TRUE(
        contains(outcome.err, "kumi: warning: " + myrinet + ": no answer within 2 s between node 0 and nodes 1, 2; "))
        << outcome.err;
}

TEST_F(Looking, hosts_of_one_name_are_still_two) {
    HYDRA_OR_SKIP();
    if (::geteuid() != 0) KUMI_SKIP(skips::not_root); // who alone may rename hosts
    LAB_OR_SKIP();
    for (const char* const host : {"a0", "a1"}) ASSERT_EQ(exec(host, {"hostname", "twin"}).err, "");
    const Outcome outcome = look("a0:2,a1:2", 4);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(carriers(outcome),
              (std::vector<std::string>{"- shmem " + myrinet + " " + myrinet, "shmem - " + myrinet + " " + myrinet,
                                        myrinet + " " + myrinet + " - shmem", myrinet + " " + myrinet + " shmem -"}));
}

TEST(LookingAtNames, a_host_of_two_names_is_still_one) {
    HYDRA_OR_SKIP();
    if (::geteuid() != 0) KUMI_SKIP(skips::not_root); // who alone may rename hosts
    const Outcome outcome = run({.words = {"mpiexec.hydra", "-n", "1", program("carriers"), ":", "-n", "1", "unshare",
                                           "--uts", "sh", "-c", "hostname other && exec " + program("carriers")}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "0: - shmem\n") && contains(outcome.out, "1: shmem -\n")) << outcome.out;
}

TEST_F(Looking, hosts_that_nothing_joins_are_named_with_their_addresses) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP(two_islands());
    // only for the launcher
    ASSERT_EQ(exec("a0", {"ip", "route", "add", "10.77.2.254/32", "via", "10.77.1.254"}).code, 0);
    std::string said;
    // hydra may drop what nodes say last
    for (int i = 0; i < 10 && !contains(said, "10.77"); ++i) said += look("a0,b0", 2, "other").err;
    EXPECT_TRUE(contains(said, "kumi: hosts a0 and b0 have no addresses in one subnet: a0 has 10.77.1.1/24, and b0 has "
                               "10.77.2.1/24; set KUMI_CLUSTER to "))
        << said;
}

TEST_F(Looking, hosts_of_two_subnets_are_joined_by_a_router) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP(two_islands());
    ASSERT_EQ(exec("front", {"sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"}).code, 0);
    ASSERT_EQ(exec("a0", {"ip", "route", "add", "default", "via", "10.77.1.254"}).code, 0);
    ASSERT_EQ(exec("b0", {"ip", "route", "add", "default", "via", "10.77.2.254"}).code, 0);
    const Outcome outcome = look("a0:2,b0", 3, "other");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(carriers(outcome),
              (std::vector<std::string>{"- shmem routed-ipv4", "shmem - routed-ipv4", "routed-ipv4 routed-ipv4 -"}));
}
