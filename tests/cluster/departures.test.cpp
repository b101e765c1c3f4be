// A node that leaves early: whatever the others want of it fails by its name within a second.
#include "cluster/command.hpp"

#include <cstdlib>
#include <string>

using namespace kumi::cluster_test;

namespace {

/// Whether nodes 0 and 2 say that node 1 is lost, and soon.
void expect_told(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    for (const std::string node : {"node 0: ", "node 2: "}) {
        const auto at = outcome.out.find(node);
        ASSERT_NE(at, std::string::npos) << outcome.out;
        const std::string line = outcome.out.substr(at + node.size(), outcome.out.find('\n', at) - at - node.size());
        const auto words = line.find(" ms: ");
        ASSERT_NE(words, std::string::npos) << outcome.out;
        EXPECT_LT(std::atol(line.c_str()), one_second.count()) << outcome.out;
        EXPECT_NE(line.find("node 1", words), std::string::npos) << outcome.out;
        EXPECT_EQ(line.find("another code"), std::string::npos) << outcome.out;
    }
}

class EarlyLeaver : public testing::TestWithParam<const char*> {};

TEST_P(EarlyLeaver, is_named_within_a_second_by_what_waits_for_it) {
    for (const std::string device : {"shmem", "composite"})
        for (const char* const progress : {"on", "off"}) {
            SCOPED_TRACE(device + ", progress " + progress);
            expect_told(run({.words = kumi_run({"-n", "3", program("departure"), GetParam()}),
                             .environment = {"KUMI_DEVICE=" + device, std::string("KUMI_PROGRESS=") + progress}}));
        }
}

INSTANTIATE_TEST_SUITE_P(Calls, EarlyLeaver,
                         testing::Values("invoke", "sync", "barrier", "barrier_of_some", "group_barrier", "multicast",
                                         "send", "plain_send", "pm_send"),
                         [](const testing::TestParamInfo<const char*>& call) { return std::string(call.param); });

} // namespace
