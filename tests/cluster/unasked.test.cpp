// Errors that a program does not ask about: the user reads them, and the exit code is not 0.
#include "cluster/command.hpp"

using namespace kumi::cluster_test;

namespace {

Outcome run_unasked(const std::string& what) {
    return run({.words = {kumi_command, "run", "-n", "2", program("unasked"), what}});
}

} // namespace

TEST(Unasked, what_a_function_or_handler_threw_is_said_and_the_exit_code_is_not_0) {
    for (const auto& [what, told] : {std::pair{"invoke", "no such number"},
                                     {"multicast", "no such thing"},
                                     {"send", "no such thing"},
                                     {"then", "what was given to then()"}}) {
        const Outcome outcome = run_unasked(what);
        EXPECT_EQ(outcome.code, 1) << what;
        EXPECT_TRUE(contains(outcome.err, told)) << what << ": " << outcome.err;
        EXPECT_TRUE(contains(outcome.err, "(the program did not ask: it dropped the future, or did not call sync())"))
            << what << ": " << outcome.err;
    }
}

TEST(Unasked, a_broadcast_with_two_roots_is_said_at_the_end_where_no_call_follows_that_would_find_it) {
    const Outcome outcome = run_unasked("roots");
    EXPECT_EQ(outcome.code, 1);
    // Both nodes say it, unless the exit code of one ends the other before.
    const auto says = [&](const std::string& whose, const std::string& other) {
        return contains(outcome.err, "has called broadcast with root " + whose + ", and node " + other) &&
               contains(outcome.err, "its last call on that set was broadcast with root " + other + ": members");
    };
    EXPECT_TRUE(says("0", "1") || says("1", "0")) << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "did not ask")) << outcome.err;
}

TEST(Unasked, of_many_the_first_ten_are_said_and_the_others_counted) {
    const Outcome outcome = run_unasked("many");
    EXPECT_EQ(outcome.code, 1);
    std::size_t told = 0;
    for (auto at = outcome.err.find("no such number"); at != std::string::npos;
         at = outcome.err.find("no such number", at + 1))
        ++told;
    EXPECT_EQ(told, 10u) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "15 more errors")) << outcome.err;
}

TEST(Unasked, what_the_program_asked_about_cancelled_or_had_another_answer_for_is_not_said) {
    for (const auto& [what, out] : {std::pair{"asked", "known\n"},
                                    {"synced", "known\n"},
                                    {"cancelled", ""},
                                    {"good", ""},
                                    {"same root", ""},
                                    {"any", "one came\n"}}) {
        const Outcome outcome = run_unasked(what);
        EXPECT_EQ(outcome.code, 0) << what << ": " << outcome.err;
        EXPECT_EQ(outcome.out, out) << what;
        EXPECT_EQ(outcome.err, "") << what;
    }
    EXPECT_EQ(run_unasked("own code").code, 7);
}
