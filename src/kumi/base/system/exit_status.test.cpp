#include "kumi/base/system/exit_status.hpp"

#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

namespace kumi::base {
namespace {

TEST(ExitStatusDeathTest, a_process_that_has_failed_without_knowing_exits_with_one) {
    const auto leave_with = [](int status) {
        fail_exit();
        fail_exit();
        std::exit(status);
    };
    EXPECT_EXIT(leave_with(0), testing::ExitedWithCode(1), "");
    EXPECT_EXIT(leave_with(3), testing::ExitedWithCode(3), "");
    EXPECT_EXIT(std::exit(0), testing::ExitedWithCode(0), "");
}

TEST(ExitStatusDeathTest, what_was_registered_before_still_runs_at_exit) {
    const auto leave = [] {
        std::atexit([] { std::fputs("the earlier one ran\n", stderr); });
        fail_exit();
        std::exit(0);
    };
    EXPECT_EXIT(leave(), testing::ExitedWithCode(1), "the earlier one ran");
}

} // namespace
} // namespace kumi::base
