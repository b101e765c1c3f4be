// When handlers run, in real jobs.
#include "cluster/command.hpp"

using namespace kumi::cluster_test;

TEST(Handlers, none_runs_before_the_program_has_its_job) {
    for (int i = 0; i < 5; ++i) {
        const Outcome outcome = run({.words = {kumi_command, "run", "-n", "2", program("early")}});
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        EXPECT_EQ(outcome.out, "200 ran, 200 by call, 200 by pointer\n");
    }
}

TEST(Handlers, a_node_that_makes_no_call_answers_soon_all_the_same) {
    const Outcome outcome =
        run({.words = {"env", "EARLY=late", kumi_command, "run", "-n", "3", program("early")}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "200 ran, 200 by call, 200 by pointer\n200 ran, 200 by call, 200 by pointer\n");
}

TEST(Handlers, a_function_for_messages_may_throw_anything_replace_itself_and_keep_what_it_got) {
    for (const char* const way : {"pm", "job"}) {
        const Outcome outcome = run({.words = {program("throwing"), way}});
        EXPECT_EQ(outcome.code, std::string(way) == "pm" ? 0 : 1) << outcome.err; // it does not ask for what was thrown
        EXPECT_EQ(outcome.out, "0 1 102 103 all kept\n");
        EXPECT_TRUE(contains(outcome.err, "the first")) << outcome.err;
    }
}
