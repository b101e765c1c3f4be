#include "kumi/base/system/keys.hpp"

#include <gtest/gtest.h>

namespace kumi::base {
namespace {

TEST(JobKeys, two_jobs_have_different_keys) {
    const auto one = make_job_keys();
    const auto other = make_job_keys();
    ASSERT_TRUE(one && other);
    EXPECT_NE(one->token, 0u);
    EXPECT_NE(other->token, 0u);
    EXPECT_NE(one->token, other->token);
    EXPECT_NE(one->secret, other->secret);
}

TEST(JobKeys, every_part_of_the_secret_is_random) {
    // By chance a byte is the same in 8 tries once in 2^56.
    const JobKeys first = *make_job_keys();
    std::array<bool, 32> changed{};
    for (int i = 0; i < 8; ++i) {
        const JobKeys next = *make_job_keys();
        for (std::size_t at = 0; at < changed.size(); ++at) changed[at] |= next.secret[at] != first.secret[at];
    }
    for (std::size_t at = 0; at < changed.size(); ++at) EXPECT_TRUE(changed[at]) << "byte " << at;
}

} // namespace
} // namespace kumi::base
