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

TEST(Sharing, a_second_descriptor_is_not_the_first_however_late_somebody_is) {
    Sharing sharing(2);
    const base::Descriptor one(::open("/dev/null", O_RDONLY));
    EXPECT_EQ(sharing.on_share(0, base::Descriptor(::dup(one.get()))).size(), 1u);
    EXPECT_EQ(sharing.on_share(0, base::Descriptor(::dup(one.get()))).size(), 1u);
    const auto first = sharing.on_share(1, {}), second = sharing.on_share(1, {});
    ASSERT_EQ(first.size(), 1u);
    ASSERT_EQ(second.size(), 1u);
    EXPECT_NE(first[0].descriptor->get(), second[0].descriptor->get());
    EXPECT_TRUE(sharing.on_share(1, {}).empty()) << "there is no third yet";
}

} // namespace
} // namespace kumi::launch::host
