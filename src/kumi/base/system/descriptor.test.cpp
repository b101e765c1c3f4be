#include "kumi/base/system/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <utility>

namespace kumi::base {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, is_closed_by_its_last_owner_and_not_before) {
    const int number = open_null();
    {
        Descriptor first(number);
        Descriptor second(std::move(first));
        EXPECT_FALSE(first);
        EXPECT_TRUE(is_open(number));
        Descriptor third;
        third = std::move(second);
        EXPECT_EQ(third.get(), number);
        EXPECT_EQ(second.get(), -1);
        EXPECT_TRUE(is_open(number));
    }
    EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, closes_what_it_had_when_it_gets_another) {
    const int one = open_null(), other = open_null(), third = open_null();
    Descriptor descriptor(one);
    descriptor.reset(other);
    EXPECT_FALSE(is_open(one));
    descriptor = Descriptor(third);
    EXPECT_FALSE(is_open(other));
    EXPECT_EQ(descriptor.release(), third);
    EXPECT_FALSE(descriptor);
    EXPECT_TRUE(is_open(third)) << "it is somebody else's now";
    ::close(third);
}

TEST(Descriptor, zero_is_one_too) {
    Descriptor descriptor(0);
    EXPECT_TRUE(descriptor);
    EXPECT_EQ(descriptor.release(), 0);
}

} // namespace
} // namespace kumi::base
