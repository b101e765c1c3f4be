#include "kumi/base/result.hpp"

#include <cerrno>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <stdexcept>

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

TEST(Result, has_a_code_beside_its_text) {
    EXPECT_EQ(half(7).error().code(), ErrorCode::failed) << "unless it says another";
    const Error late = error(ErrorCode::timed_out, "{} s have passed", 3);
    EXPECT_EQ(late.code(), ErrorCode::timed_out);
    EXPECT_EQ(late.text(), "3 s have passed");
    EXPECT_EQ(late.as_told().code(), ErrorCode::timed_out);
    EXPECT_EQ(system_error(ENOENT, "open").code(), ErrorCode::not_found);
    EXPECT_EQ(system_error(ENOSPC, "write").code(), ErrorCode::no_memory);
    EXPECT_EQ(system_error(EPERM, "open").code(), ErrorCode::failed);
}

TEST(Result, a_code_of_another_node_is_one_of_ours) {
    for (std::uint32_t number = 0; number <= static_cast<std::uint32_t>(ErrorCode::ended); ++number) {
        EXPECT_EQ(static_cast<std::uint32_t>(error_code_of(number)), number);
        EXPECT_STRNE(name_of(error_code_of(number)), "unknown");
    }
    EXPECT_EQ(error_code_of(static_cast<std::uint32_t>(ErrorCode::ended) + 1), ErrorCode::refused);
    EXPECT_EQ(error_code_of(~0u), ErrorCode::refused);
}

TEST(Result, what_was_thrown_is_an_error_whatever_it_is) {
    const auto of = [](const auto& thrown, auto&&... name) {
        try {
            throw thrown;
        } catch (...) {
            return error_of_thrown(name..., ErrorCode::misuse);
        }
    };
    EXPECT_EQ(of(std::runtime_error("no luck")).text(), "no luck");
    EXPECT_EQ(of(std::runtime_error("no luck")).code(), ErrorCode::misuse);
    EXPECT_EQ(of(Error(ErrorCode::too_large, "too much")).text(), "too much");
    EXPECT_EQ(of(Error(ErrorCode::too_large, "too much")).code(), ErrorCode::too_large);
    EXPECT_EQ(of(5).text(), "what was thrown is no std::exception");
    EXPECT_EQ(of(std::bad_alloc()).code(), ErrorCode::no_memory);
    EXPECT_EQ(of(5).code(), ErrorCode::misuse);
    EXPECT_EQ(of(std::runtime_error("no luck"), "it").text(), "it threw: no luck");
    EXPECT_EQ(of(Error(ErrorCode::too_large, "too much"), "it").text(), "it threw: too much");
    EXPECT_EQ(of(Error(ErrorCode::too_large, "too much"), "it").code(), ErrorCode::too_large);
    EXPECT_EQ(of(5, "it").text(), "it threw something that is no std::exception");
    EXPECT_EQ(of(5, "it").code(), ErrorCode::misuse);
}

TEST(ResultDeathTest, reading_the_value_of_a_failure_is_a_bug) {
    EXPECT_DEATH((void)half(7).value(), "has_value");
}

} // namespace
} // namespace kumi
