#include "kumi/boot/handover.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kumi::boot {
namespace {

using namespace std::chrono_literals;

TEST(Handover, a_descriptor_goes_from_who_answers_to_who_knocked) {
    const auto door = open_door();
    ASSERT_TRUE(door) << door.error().text();
    const auto visit = knock(door->name, bytes_of(std::string_view("hello")));
    ASSERT_TRUE(visit) << visit.error().text();
    const auto visitor = next_visitor(*door);
    ASSERT_TRUE(visitor);
    EXPECT_EQ(text_of(visitor->words), "hello");
    EXPECT_FALSE(next_visitor(*door));

    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const base::Descriptor out(ends[0]), in(ends[1]);
    ASSERT_TRUE(hand_over(visitor->socket.get(), in.get(), "node 1"));
    const auto got = take_over(visit->get(), now() + 10s, "node 0");
    ASSERT_TRUE(got) << got.error().text();
    ASSERT_EQ(::write(got->get(), "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(::read(out.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    EXPECT_EQ(::fcntl(got->get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Handover, a_door_that_is_none_is_an_error) { EXPECT_FALSE(knock(DoorName{}, {})); }

TEST(Handover, two_doors_have_two_names) { EXPECT_NE(open_door()->name, open_door()->name); }

TEST(Handover, who_says_nothing_is_waited_for_to_the_deadline_and_named) {
    const auto door = open_door();
    const auto visit = knock(door->name, bytes_of('x'));
    ASSERT_TRUE(visit);
    const auto got = take_over(visit->get(), now() + 20ms, "node 7 on vm");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().text(), "node 7 on vm did not hand over its shared memory in time: is it stopped?");
}

TEST(Handover, who_goes_away_is_noticed_at_once) {
    const auto door = open_door();
    const auto visit = knock(door->name, bytes_of('x'));
    ASSERT_TRUE(visit);
    EXPECT_TRUE(next_visitor(*door)); // and closes
    const auto got = take_over(visit->get(), now() + 60s, "node 7 on vm");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().text(), "node 7 on vm, which shares its memory with this node, is gone");
}

} // namespace
} // namespace kumi::boot
