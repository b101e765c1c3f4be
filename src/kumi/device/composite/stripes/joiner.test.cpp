#include "kumi/device/composite/stripes/joiner.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace kumi::device::composite {
namespace {

using Outcome = Joiner::Outcome;

constexpr std::size_t message_bytes_max = 1000;

struct JoinerTest : testing::Test {
    Outcome add(Sequence sequence, std::uint32_t total, std::uint32_t offset, std::size_t bytes) {
        std::vector<std::byte> piece(sizeof(PieceHead) + bytes);
        const PieceHead head{total, offset};
        std::memcpy(piece.data(), &head, sizeof head);
        for (std::size_t i = 0; i < bytes; ++i) piece[sizeof head + i] = std::byte(offset + i);
        return joiner.add(sequence, piece, whole);
    }
    void expect_whole(std::size_t bytes) {
        ASSERT_EQ(whole.bytes, sizeof(Envelope) + bytes);
        for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(whole.memory[sizeof(Envelope) + i], std::byte(i)) << i;
    }

    Joiner joiner{message_bytes_max, 3 * message_bytes_max};
    Joiner::Whole whole;
};

TEST_F(JoinerTest, pieces_in_any_order_make_a_message) {
    EXPECT_EQ(add(7, 1000, 600, 400), Outcome::waits);
    EXPECT_EQ(add(8, 500, 0, 250), Outcome::waits);
    EXPECT_EQ(add(7, 1000, 0, 200), Outcome::waits);
    EXPECT_EQ(add(7, 1000, 200, 400), Outcome::complete);
    expect_whole(1000);
    EXPECT_EQ(add(8, 500, 250, 250), Outcome::complete);
    expect_whole(500);
    EXPECT_EQ(joiner.waiting(), 0u);
}

TEST_F(JoinerTest, a_piece_that_comes_twice_counts_once) {
    EXPECT_EQ(add(0, 100, 0, 50), Outcome::waits);
    EXPECT_EQ(add(0, 100, 0, 50), Outcome::duplicate);
    EXPECT_EQ(add(0, 100, 50, 50), Outcome::complete);
    expect_whole(100);
}

TEST_F(JoinerTest, what_does_not_fit_together_is_dropped_and_harms_nobody) {
    EXPECT_EQ(joiner.add(0, {}, whole), Outcome::unsound) << "no head";
    EXPECT_EQ(add(0, 100, 0, 0), Outcome::unsound) << "nothing in it";
    EXPECT_EQ(add(0, 0, 0, 8), Outcome::unsound);
    EXPECT_EQ(add(0, 1001, 0, 8), Outcome::unsound) << "larger than any message";
    EXPECT_EQ(add(0, 0xffffffff, 0, 8), Outcome::unsound);
    EXPECT_EQ(add(0, 100, 100, 8), Outcome::unsound) << "behind the end";
    EXPECT_EQ(add(0, 100, 96, 8), Outcome::unsound) << "over the end";
    EXPECT_EQ(add(0, 100, 0xfffffff8, 16), Outcome::unsound) << "around the end of numbers";
    EXPECT_EQ(joiner.waiting(), 0u);

    EXPECT_EQ(add(0, 100, 40, 20), Outcome::waits);
    EXPECT_EQ(add(0, 200, 60, 20), Outcome::unsound) << "another total";
    EXPECT_EQ(add(0, 100, 30, 20), Outcome::unsound) << "overlaps the next";
    EXPECT_EQ(add(0, 100, 50, 20), Outcome::unsound) << "overlaps the one before";
    EXPECT_EQ(add(0, 100, 40, 30), Outcome::unsound) << "the same place, but longer";
    EXPECT_EQ(add(0, 100, 0, 100), Outcome::unsound) << "all of it";
    EXPECT_EQ(add(0, 100, 0, 40), Outcome::waits);
    EXPECT_EQ(add(0, 100, 60, 40), Outcome::complete);
    expect_whole(100);
}

TEST_F(JoinerTest, what_waits_is_bounded) {
    for (Sequence sequence = 0; sequence < 3; ++sequence) EXPECT_EQ(add(sequence, 1000, 0, 8), Outcome::waits);
    EXPECT_EQ(add(3, 1000, 0, 8), Outcome::unsound);
    EXPECT_EQ(add(2, 1000, 8, 992), Outcome::complete);
    EXPECT_EQ(add(3, 1000, 0, 8), Outcome::waits) << "there is room again";
}

TEST_F(JoinerTest, a_piece_may_end_with_the_message_and_not_one_byte_behind_it) {
    EXPECT_EQ(add(0, 100, 99, 2), Outcome::unsound);
    EXPECT_EQ(add(0, 100, 0, 101), Outcome::unsound);
    EXPECT_EQ(add(0, 100, 99, 1), Outcome::waits);
    EXPECT_EQ(add(1, 100, 0, 100), Outcome::complete);
    expect_whole(100);
    EXPECT_EQ(add(2, 1, 0, 1), Outcome::complete) << "the smallest message";
    EXPECT_EQ(add(3, 1000, 0, 1000), Outcome::complete) << "the largest";
    EXPECT_EQ(add(4, 1001, 0, 1000), Outcome::unsound);
}

TEST_F(JoinerTest, a_head_that_lacks_a_byte_is_no_piece) {
    const PieceHead head{100, 0};
    EXPECT_EQ(joiner.add(0, bytes_of(head).first(sizeof head - 1), whole), Outcome::unsound);
    EXPECT_EQ(joiner.add(0, bytes_of(head), whole), Outcome::unsound) << "nothing in it";
    EXPECT_EQ(joiner.waiting(), 0u);
}

TEST_F(JoinerTest, pieces_may_touch_and_not_overlap_by_one_byte) {
    EXPECT_EQ(add(0, 100, 40, 20), Outcome::waits);
    EXPECT_EQ(add(0, 100, 20, 21), Outcome::unsound) << "its last byte is there";
    EXPECT_EQ(add(0, 100, 59, 10), Outcome::unsound) << "its first byte is there";
    EXPECT_EQ(add(0, 100, 45, 5), Outcome::unsound) << "inside";
    EXPECT_EQ(add(0, 100, 40, 19), Outcome::unsound) << "the same place, but shorter";
    EXPECT_EQ(add(0, 101, 60, 10), Outcome::unsound) << "a total that is one more";
    EXPECT_EQ(add(0, 100, 20, 20), Outcome::waits);
    EXPECT_EQ(add(0, 100, 60, 40), Outcome::waits);
    EXPECT_EQ(add(0, 100, 0, 20), Outcome::complete);
    expect_whole(100);
}

TEST_F(JoinerTest, what_waits_may_fill_its_bound_and_no_byte_more) {
    EXPECT_EQ(add(0, 1000, 0, 8), Outcome::waits);
    EXPECT_EQ(add(1, 1000, 0, 8), Outcome::waits);
    EXPECT_EQ(add(2, 999, 0, 8), Outcome::waits);
    EXPECT_EQ(add(3, 2, 0, 1), Outcome::unsound);
    EXPECT_EQ(add(4, 1, 0, 1), Outcome::complete) << "this one fits";
    EXPECT_EQ(add(5, 2, 0, 1), Outcome::unsound);
    EXPECT_EQ(add(2, 999, 8, 991), Outcome::complete);
    EXPECT_EQ(add(5, 1000, 0, 8), Outcome::waits);
    EXPECT_EQ(joiner.waiting(), 3u);
}

} // namespace
} // namespace kumi::device::composite
