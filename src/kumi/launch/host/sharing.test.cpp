#include "kumi/launch/host/sharing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <vector>

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

TEST(Sharing, each_gets_all_descriptors_in_the_order_in_which_they_were_given) {
    Sharing sharing(3);
    std::vector<int> given;
    for (int i = 0; i < 3; ++i) {
        base::Descriptor one(::open("/dev/null", O_RDONLY));
        given.push_back(one.get());
        EXPECT_EQ(sharing.on_share(0, std::move(one)).size(), 1u);
    }
    std::vector<int> got;
    for (int i = 0; i < 3; ++i) got.push_back(sharing.on_share(2, {}).at(0).descriptor->get());
    EXPECT_EQ(got, given);
    EXPECT_TRUE(sharing.on_share(2, {}).empty()) << "it waits for a fourth";
    got.clear();
    for (int i = 0; i < 3; ++i)
        got.push_back(sharing.on_share(1, {}).at(0).descriptor->get()); // the last: then they are let go
    EXPECT_EQ(got, given);
    const auto fourth = sharing.on_share(0, base::Descriptor(::open("/dev/null", O_RDONLY)));
    ASSERT_EQ(fourth.size(), 2u);
    EXPECT_EQ(fourth[0].slot, 0u);
    EXPECT_FALSE(fourth[0].descriptor);
    EXPECT_EQ(fourth[1].slot, 2u);
    EXPECT_TRUE(fourth[1].descriptor);
}

TEST(Sharing, a_descriptor_is_closed_when_everybody_has_had_it) {
    Sharing sharing(2);
    base::Descriptor one(::open("/dev/null", O_RDONLY));
    const int number = one.get();
    sharing.on_share(0, std::move(one));
    EXPECT_EQ(::fcntl(number, F_GETFD) >= 0, true);
    sharing.on_share(1, {}); // and the answer is let go
    EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

} // namespace
} // namespace kumi::launch::host
