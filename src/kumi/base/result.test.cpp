#include "kumi/base/result.hpp"

#include <cerrno>
#include <gtest/gtest.h>
#include <memory>

namespace kumi {
namespace {

Result<std::unique_ptr<int>> half(int number) {
    if (number % 2 != 0) return error("{} is odd: give an even number", number);
    return std::make_unique<int>(number / 2);
}

TEST(Result, carries_a_value_that_can_only_be_moved) {
    auto four = half(8);
    ASSERT_TRUE(four);
    std::unique_ptr<int> taken = *std::move(four);
    EXPECT_EQ(*taken, 4);
}

TEST(Result, carries_the_reason_untouched) {
    const auto odd = half(7);
    ASSERT_FALSE(odd);
    EXPECT_EQ(odd.error().text(), "7 is odd: give an even number");
}

TEST(Result, a_system_error_says_what_was_tried_and_what_the_system_said) {
    EXPECT_EQ(system_error(ENOENT, "open /nowhere").text(), "open /nowhere: No such file or directory");
}

TEST(ResultDeathTest, reading_the_value_of_a_failure_is_a_bug) {
    EXPECT_DEATH((void)half(7).value(), "has_value");
}

} // namespace
} // namespace kumi
