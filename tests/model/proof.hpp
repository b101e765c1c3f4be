#pragma once

// Tests that hold for every execution of a model, not for the one that happened.

#include "model/explorer.hpp"

#include <gtest/gtest.h>

namespace kumi::model {

/// Every execution was tried, they were more than a handful, and none failed.
inline void expect_proved(const Outcome& outcome) {
    EXPECT_FALSE(outcome.failure) << *outcome.failure;
    EXPECT_TRUE(outcome.complete) << "not every execution was tried";
    EXPECT_GT(outcome.executions, 10u);
}

} // namespace kumi::model
