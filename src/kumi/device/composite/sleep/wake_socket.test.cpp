#include "kumi/device/composite/sleep/wake_socket.hpp"

#include "kumi/device/composite/sleep/descriptor_set.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

namespace kumi::device::composite {
namespace {

bool is_readable(int descriptor) {
    pollfd one{descriptor, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

TEST(WakeSocket, calls_reach_the_one_that_is_named_and_are_forgotten_when_it_says_so) {
    auto one = WakeSocket::open(), other = WakeSocket::open();
    ASSERT_TRUE(one && other);
    EXPECT_FALSE(is_readable(one->descriptor()));
    for (int i = 0; i < 3; ++i) one->wake(other->name());
    EXPECT_TRUE(is_readable(other->descriptor()));
    EXPECT_FALSE(is_readable(one->descriptor()));
    other->drain();
    EXPECT_FALSE(is_readable(other->descriptor())) << "all of them";
    other->wake_self();
    EXPECT_TRUE(is_readable(other->descriptor()));
}

TEST(WakeSocket, calls_to_one_that_is_full_or_gone_do_not_hang) {
    auto one = WakeSocket::open(), other = WakeSocket::open();
    ASSERT_TRUE(one && other);
    const WakeSocket::Name name = other->name();
    for (int i = 0; i < 2000; ++i) one->wake(name);
    EXPECT_TRUE(is_readable(other->descriptor()));
    other = WakeSocket::open();
    one->wake(name);
    EXPECT_FALSE(is_readable(other->descriptor())) << "that is another one";
}

TEST(WakeSocket, a_flood_of_calls_keeps_nobody_from_going_on) {
    auto one = WakeSocket::open(), other = WakeSocket::open();
    ASSERT_TRUE(one && other);
    for (int i = 0; i < 200; ++i) one->wake(other->name()); // ten of them are kept at least
    other->drain();
    EXPECT_TRUE(is_readable(other->descriptor())) << "not all in one go: there may always be more";
    for (int i = 0; i < 25; ++i) other->drain();
    EXPECT_FALSE(is_readable(other->descriptor()));
}

TEST(WakeSocket, a_waker_knows_nodes_by_their_numbers) {
    std::vector<WakeSocket> sockets;
    std::vector<WakeSocket::Name> names;
    for (int i = 0; i < 3; ++i) {
        sockets.push_back(*WakeSocket::open());
        names.push_back(sockets.back().name());
    }
    SocketWaker waker(sockets[0]);
    waker.set_names(names);
    waker.wake(2);
    EXPECT_FALSE(is_readable(sockets[0].descriptor()) || is_readable(sockets[1].descriptor()));
    EXPECT_TRUE(is_readable(sockets[2].descriptor()));
}

TEST(DescriptorSet, is_ready_when_one_of_its_own_is_and_says_which) {
    auto set = DescriptorSet::open();
    auto one = WakeSocket::open(), other = WakeSocket::open();
    ASSERT_TRUE(set && one && other);
    DescriptorSet::Entry first, second;
    ASSERT_TRUE(set->watch(first, {.descriptor = one->descriptor()}, 1));
    ASSERT_TRUE(set->watch(second, {.descriptor = other->descriptor()}, 2));
    EXPECT_EQ(set->ready(), 0u);
    EXPECT_FALSE(is_readable(set->descriptor()));
    other->wake_self();
    EXPECT_TRUE(is_readable(set->descriptor()));
    EXPECT_EQ(set->ready(), 2u);
    one->wake_self();
    EXPECT_EQ(set->ready(), 3u);
    ASSERT_TRUE(set->watch(second, {}, 2));
    EXPECT_EQ(set->ready(), 1u) << "the other is watched no more";
    ASSERT_TRUE(set->watch(first, {.descriptor = other->descriptor()}, 4));
    EXPECT_EQ(set->ready(), 4u) << "in place of the first";
}

TEST(DescriptorSet, room_is_watched_for_only_where_that_is_wanted) {
    auto set = DescriptorSet::open();
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const base::Descriptor ours(pair[0]), theirs(pair[1]);
    ASSERT_TRUE(set);
    DescriptorSet::Entry entry;
    ASSERT_TRUE(set->watch(entry, {.descriptor = ours.get()}, 1));
    EXPECT_EQ(set->ready(), 0u);
    ASSERT_TRUE(set->watch(entry, {.descriptor = ours.get(), .or_writable = true}, 1));
    EXPECT_EQ(set->ready(), 1u);
    ASSERT_TRUE(set->watch(entry, {.descriptor = ours.get()}, 1));
    EXPECT_EQ(set->ready(), 0u);
    EXPECT_FALSE(set->watch(entry, {.descriptor = 9999}, 1)) << "there is no such descriptor";
    EXPECT_TRUE(set->watch(entry, {.descriptor = ours.get(), .or_writable = true}, 1)) << "and it can be used again";
    EXPECT_EQ(set->ready(), 1u);
}

} // namespace
} // namespace kumi::device::composite
