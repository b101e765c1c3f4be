#include "kumi/launch/host/sharing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace kumi::launch::host {
namespace {

TEST(Sharing, everybody_gets_the_descriptor_of_slot_zero_whoever_comes_first) {
    Sharing sharing(3);
    EXPECT_TRUE(sharing.on_share(2, {}).empty());
    const auto answers = sharing.on_share(0, base::Descriptor(::open("/dev/null", O_RDONLY)));
    ASSERT_EQ(answers.size(), 2u);
    for (const Sharing::Answer& answer : answers) EXPECT_EQ(answer.descriptor != nullptr, answer.slot == 2);
    const auto late = sharing.on_share(1, {});
    ASSERT_EQ(late.size(), 1u);
    EXPECT_TRUE(late[0].descriptor);
}

} // namespace
} // namespace kumi::launch::host
