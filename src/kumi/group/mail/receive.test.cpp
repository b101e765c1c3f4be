#include "kumi/group/mail/receive.hpp"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <stdexcept>

namespace kumi::group::receive_test {
namespace {

using Pair = std::array<std::uint16_t, 2>;

/// Ten times the first operand, and the second one.
void in_order(std::byte* into, const std::byte* mine, const std::byte* other, std::size_t bytes, bool other_is_first) {
    for (std::size_t at = 0; at < bytes; at += 2) {
        std::uint16_t first = 0, second = 0;
        std::memcpy(&first, (other_is_first ? other : mine) + at, 2);
        std::memcpy(&second, (other_is_first ? mine : other) + at, 2);
        first = static_cast<std::uint16_t>(first * 10 + second);
        std::memcpy(into + at, &first, 2);
    }
}
const Combine combine(in_order);

Receive into(MutableBytes target) { return {.from = 1, .step = 3, .target = target.data(), .bytes = target.size()}; }

TEST(Receive, a_message_of_another_step_or_size_is_not_meant) {
    std::array<std::byte, 4> target;
    Receive receive = into(target);
    EXPECT_TRUE(receive.is_meant(3, 4));
    EXPECT_FALSE(receive.is_meant(2, 4));
    EXPECT_FALSE(receive.is_meant(3, 5));
    std::vector<std::byte> content;
    receive.content = &content;
    EXPECT_TRUE(receive.is_meant(3, 5)) << "it may have any size";
    EXPECT_FALSE(receive.is_meant(2, 5));
    receive.combine = &combine;
    EXPECT_FALSE(receive.is_meant(3, 5)) << "what is combined has the size of the values";
}

TEST(Receive, parts_come_one_after_the_other_and_no_more_than_the_message_has) {
    Pair target{};
    Receive receive = into(std::as_writable_bytes(std::span(target)));
    const Pair came{7, 8};
    const Bytes all = std::as_bytes(std::span(came));
    EXPECT_TRUE(receive.fits(all, 2));
    receive.take(all.first(3)); // not combined: it may be cut anywhere
    EXPECT_FALSE(receive.is_done);
    EXPECT_FALSE(receive.fits(all.first(2), 1));
    EXPECT_TRUE(receive.fits(all.last(1), 2));
    receive.take(all.last(1));
    EXPECT_TRUE(receive.is_done);
    EXPECT_EQ(target, came);
}

TEST(Receive, an_empty_message_is_done_at_once) {
    Receive receive = into({});
    EXPECT_TRUE(receive.fits({}, 1));
    receive.take({});
    EXPECT_TRUE(receive.is_done);
}

TEST(Receive, values_are_combined_as_they_come_and_not_cut) {
    Pair target{}, mine{1, 2};
    const Pair came{3, 4};
    const Bytes all = std::as_bytes(std::span(came));
    for (const bool is_first : {false, true}) {
        Receive receive = into(std::as_writable_bytes(std::span(target)));
        receive.combine = &combine;
        receive.mine = std::as_bytes(std::span(mine)).data();
        receive.is_first = is_first;
        EXPECT_FALSE(receive.fits(all.first(3), 2));
        ASSERT_TRUE(receive.fits(all.first(2), 2));
        receive.take(all.first(2));
        EXPECT_EQ(target[0], is_first ? 31 : 13);
        receive.take(all.last(2));
        EXPECT_TRUE(receive.is_done);
        EXPECT_EQ(target[1], is_first ? 42 : 24);
    }
}

TEST(Receive, values_that_are_put_together_first_are_combined_when_all_of_them_are_here) {
    Pair target{9, 9};
    const Pair mine{1, 2}, came{3, 4};
    const Bytes all = std::as_bytes(std::span(came));
    std::vector<std::byte> content;
    Receive receive = into(std::as_writable_bytes(std::span(target)));
    receive.content = &content;
    receive.combine = &combine;
    receive.mine = std::as_bytes(std::span(mine)).data();
    receive.make_room(4);
    ASSERT_TRUE(receive.fits(all.first(3), 4)) << "it may be cut anywhere";
    receive.take(all.first(3));
    EXPECT_EQ(target, (Pair{9, 9}));
    receive.take(all.last(1));
    EXPECT_TRUE(receive.is_done);
    EXPECT_EQ(target, (Pair{13, 24}));
}

TEST(Receive, a_message_of_any_size_has_memory_of_its_own_unless_it_fits) {
    Pair target{};
    const Pair came{7, 8};
    std::vector<std::byte> content;
    Receive any = into(std::as_writable_bytes(std::span(target)));
    any.content = &content;
    any.may_fit = true;
    Receive fitting = any;
    any.make_room(6);
    EXPECT_EQ(content.size(), 6u);
    EXPECT_EQ(any.bytes, 6u);
    any.take(std::as_bytes(std::span(came)));
    EXPECT_FALSE(any.is_done);
    EXPECT_EQ(target, Pair{}) << "it is not the target's";
    fitting.make_room(4);
    fitting.take(std::as_bytes(std::span(came)));
    EXPECT_TRUE(fitting.is_done);
    EXPECT_EQ(target, came);
}

TEST(Receive, what_the_operation_threw_leaves_the_message_open) {
    Pair target{}, mine{};
    const auto throws = [](std::byte*, const std::byte*, const std::byte*, std::size_t, bool) {
        throw std::runtime_error("no");
    };
    const Combine bad(throws);
    Receive receive = into(std::as_writable_bytes(std::span(target)));
    receive.combine = &bad;
    receive.mine = std::as_bytes(std::span(mine)).data();
    EXPECT_THROW(receive.take(std::as_bytes(std::span(mine))), std::runtime_error);
    EXPECT_FALSE(receive.is_done);
    EXPECT_EQ(receive.arrived, 0u);
}

} // namespace
} // namespace kumi::group::receive_test
