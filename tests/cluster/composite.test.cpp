// Jobs on several hosts: the paper's cluster of clusters, made by kumi lab, with a foreign launcher on its front end.
#include "cluster/hydra_lab.hpp"

#include <fstream>
#include <vector>

using namespace kumi::cluster_test;

namespace {

class Composite : public HydraLab {
protected:
    Outcome on_hosts(const std::string& hosts, int nodes, const std::string& program,
                     const std::string& file = figure3) {
        return HydraLab::on_hosts(hosts, nodes, program, {"KUMI_CLUSTER=" + file});
    }
    /// Whether a job is refused with these words. hydra drops what a node said when another ends at the same time, so
    /// it is asked a few times.
    bool is_refused(const std::string& hosts, int nodes, const std::string& file, const std::string& words) {
        std::string said;
        for (int i = 0; i < 10; ++i) {
            const Outcome outcome = on_hosts(hosts, nodes, program("carriers"), file);
            EXPECT_NE(outcome.code, 0) << outcome.out;
            if (contains(outcome.err, words)) return true;
            said += outcome.err;
        }
        ADD_FAILURE() << said;
        return false;
    }
};

} // namespace

TEST_F(Composite, the_papers_cluster_talks_by_the_papers_routes) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP();
    const Outcome outcome = on_hosts("a0:2,a1:2,a2:2,a3:2,b0,b1,b2,b3", 12, program("carriers"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(carriers(outcome), papers_routes("myrinet", "gigabit", "lan"));
}

TEST_F(Composite, a_network_that_is_mute_is_passed_over_and_that_is_said) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP();
    ASSERT_EQ(lab({"mute", "a0", "myrinet", "on"}).code, 0);
    const Outcome outcome = on_hosts("a0,a1,a2", 3, program("carriers"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(carriers(outcome), (std::vector<std::string>{"- lan lan", "lan - myrinet", "lan myrinet -"}));
    EXPECT_TRUE(contains(outcome.err, "kumi: warning: myrinet: no answer within 2 s between node 0 and nodes 1, 2; "))
        << outcome.err;
}

TEST_F(Composite, nodes_that_reach_each_other_by_nothing_are_named) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP();
    ASSERT_EQ(lab({"loss", "myrinet", "100"}).code, 0);
    const std::string file = folder_.path() + "/cluster.toml";
    std::ofstream(file)
        << "[[network]]\nname = \"myrinet\"\n[[host]]\nname = \"a[0-1]\"\naddress.myrinet = \"10.77.1.[1-2]\"\n";
    EXPECT_TRUE(is_refused("a0,a1", 2, file, " by no network, of those that should join them; see kumi map"));
}

TEST_F(Composite, a_file_that_does_not_fit_the_hosts_is_refused) {
    HYDRA_OR_SKIP();
    LAB_OR_SKIP();
    const std::string file = folder_.path() + "/cluster.toml";
    std::ofstream(file) << "[[network]]\nname = \"lan\"\n[[host]]\nname = \"a0\"\naddress.lan = "
                           "\"10.77.3.1\"\n[[host]]\nname = \"c0\"\n";
    EXPECT_TRUE(is_refused("a0,b0", 2, file, "kumi: this host is b0, and " + file + " describes none of that name"));
    EXPECT_TRUE(is_refused("a0,b0", 2, folder_.path() + "/nowhere.toml", "kumi: reading the cluster file "));
    std::ofstream(file) << "[[host]]\nname = \"a0\"\n[[host]]\nname = \"b0\"\n";
    EXPECT_TRUE(is_refused("a0,b0", 2, file, " have no network in common, and no node that could pass on messages"));
}
