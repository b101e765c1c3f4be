#include "kumi/device/composite/letters/passing_letters.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

Envelope passed_head(Node source, Node destination, Sequence sequence = 0) {
    return {.sequence = sequence,
            .source = source,
            .destination = destination,
            .kind = Envelope::Kind::message,
            .asks = 0,
            .hops = 0,
            .at = 0};
}

Letter passed_letter(const Envelope& head, std::size_t bytes = sizeof(Envelope)) {
    Letter letter(bytes);
    std::memcpy(letter.data(), &head, sizeof head);
    return letter;
}

TEST(PassingLetters, what_is_put_back_goes_before_what_came_later) {
    PassingLetters passing;
    passing.push(passed_letter(passed_head(1, 2, 7)));
    Letters older;
    for (const Sequence sequence : {5u, 6u}) older.push_back(passed_letter(passed_head(1, 2, sequence)));
    passing.put_back(std::move(older));
    for (const Sequence sequence : {5u, 6u, 7u}) {
        ASSERT_FALSE(passing.empty());
        EXPECT_EQ(head_of(passing.front()).sequence, sequence);
        passing.pop_front();
    }
    EXPECT_TRUE(passing.empty());
}

TEST(PassingLetters, each_source_and_destination_have_two_windows_or_one_letter) {
    PassingLetters passing;
    const std::size_t half = PassingLetters::bytes_max / 2;
    EXPECT_TRUE(passing.has_room(passed_head(1, 2), 10 * half)) << "the first one, however large";
    passing.push(passed_letter(passed_head(1, 2), half));
    EXPECT_TRUE(passing.has_room(passed_head(1, 2), half));
    EXPECT_FALSE(passing.has_room(passed_head(1, 2), half + 1));
    EXPECT_TRUE(passing.has_room(passed_head(1, 3), half + 1));
    EXPECT_TRUE(passing.has_room(passed_head(3, 2), half + 1));
}

TEST(PassingLetters, what_has_left_makes_room) {
    PassingLetters passing;
    passing.push(passed_letter(passed_head(1, 2), PassingLetters::bytes_max));
    Letters older;
    older.push_back(passed_letter(passed_head(3, 2), PassingLetters::bytes_max));
    passing.put_back(std::move(older));
    EXPECT_FALSE(passing.has_room(passed_head(3, 2), 1));
    passing.pop_front();
    EXPECT_TRUE(passing.has_room(passed_head(3, 2), PassingLetters::bytes_max));
    EXPECT_FALSE(passing.has_room(passed_head(1, 2), 1));
    passing.clear();
    EXPECT_TRUE(passing.empty());
    EXPECT_TRUE(passing.has_room(passed_head(1, 2), 1));
}

} // namespace
} // namespace kumi::device::composite
