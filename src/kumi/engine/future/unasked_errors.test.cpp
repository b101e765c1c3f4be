#include "kumi/engine/future/unasked_errors.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace kumi::engine::unasked_errors_test {
namespace {

/// What a process exits with, and says, that adds an error of this code.
template <class Steps>
void run_and_exit(Steps&& steps) {
    UnaskedErrors errors;
    steps(errors);
    std::exit(0);
}

TEST(UnaskedErrorsDeathTest, an_error_is_said_and_fails_the_exit_of_a_process_that_wants_that) {
    EXPECT_EXIT(run_and_exit([](UnaskedErrors& errors) {
                    errors.fail_exit();
                    errors.add(Error(ErrorCode::refused, "something threw"));
                    errors.say_rest();
                }),
                testing::ExitedWithCode(1), "something threw .the program did not ask");
    EXPECT_EXIT(run_and_exit([](UnaskedErrors& errors) {
                    errors.add(Error(ErrorCode::refused, "something threw"));
                    errors.fail_exit(); // later
                }),
                testing::ExitedWithCode(1), "");
    EXPECT_EXIT(run_and_exit([](UnaskedErrors& errors) {
                    errors.add(Error(ErrorCode::refused, "something threw"));
                    errors.say_rest();
                }),
                testing::ExitedWithCode(0), "something threw");
}

TEST(UnaskedErrorsDeathTest,
     a_loss_or_a_passed_deadline_is_said_and_what_was_cancelled_or_ended_is_not_and_neither_fails_the_exit) {
    EXPECT_EXIT(run_and_exit([](UnaskedErrors& errors) {
                    errors.fail_exit();
                    errors.add(Error(ErrorCode::cancelled, "cancelled"));
                    errors.add(Error(ErrorCode::ended, "ended"));
                    errors.say_rest();
                }),
                testing::ExitedWithCode(0), "^$");
    for (const ErrorCode code : {ErrorCode::node_lost, ErrorCode::timed_out})
        EXPECT_EXIT(run_and_exit([code](UnaskedErrors& errors) {
                        errors.fail_exit();
                        errors.add(Error(code, "node 3 is late"));
                        errors.say_rest();
                    }),
                    testing::ExitedWithCode(0), "node 3 is late");
}

TEST(UnaskedErrorsDeathTest, of_many_the_first_are_said_and_the_others_are_counted) {
    EXPECT_EXIT(run_and_exit([](UnaskedErrors& errors) {
                    for (int i = 0; i < 12; ++i) errors.add(Error(ErrorCode::refused, "number " + std::to_string(i)));
                    errors.say_rest();
                }),
                testing::ExitedWithCode(0), "number 9 [^\n]*\n[^\n]*2 more errors");
}

} // namespace
} // namespace kumi::engine::unasked_errors_test
