#include "kumi/device/composite/letters/notes.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

Envelope short_head(Envelope::Kind kind, Sequence sequence, Node source = 0, Node destination = 1) {
    return {.sequence = sequence,
            .source = source,
            .destination = destination,
            .kind = kind,
            .asks = 0,
            .hops = 0,
            .at = 0};
}

TEST(Notes, a_later_note_takes_the_place_of_one_that_it_makes_void) {
    Notes notes;
    notes.add(short_head(Envelope::Kind::deaf, 7));
    notes.add(short_head(Envelope::Kind::deaf, 8));
    notes.add(short_head(Envelope::Kind::done, 7));
    notes.add(short_head(Envelope::Kind::hears, 7)); // of network 7: it is not deaf any more
    notes.add(short_head(Envelope::Kind::done, 7));
    std::vector<std::pair<Envelope::Kind, Sequence>> left;
    for (; !notes.empty(); notes.pop_front()) left.emplace_back(notes.front().kind, notes.front().sequence);
    EXPECT_EQ(left, (std::vector<std::pair<Envelope::Kind, Sequence>>{
                        {Envelope::Kind::deaf, 8}, {Envelope::Kind::hears, 7}, {Envelope::Kind::done, 7}}));
}

TEST(UrgentLetters, of_one_search_only_the_last_seek_waits) {
    UrgentLetters urgent;
    urgent.push(bytes_of(short_head(Envelope::Kind::seek, 1, 4, 5)));
    urgent.push(bytes_of(short_head(Envelope::Kind::seek, 1, 4, 6)));
    urgent.push(bytes_of(short_head(Envelope::Kind::found, 1, 4, 5)));
    urgent.push(bytes_of(short_head(Envelope::Kind::seek, 2, 4, 5)));
    EXPECT_EQ(urgent.size(), 3u);
    EXPECT_EQ(head_of(urgent.front()).destination, 6u);
    urgent.push(bytes_of(short_head(Envelope::Kind::found, 2, 4, 5)));
    EXPECT_EQ(urgent.size(), 4u) << "every answer is of use";
}

TEST(UrgentLetters, of_too_many_the_oldest_go) {
    UrgentLetters urgent;
    for (Sequence i = 0; i <= UrgentLetters::letters_max; ++i)
        urgent.push(bytes_of(short_head(Envelope::Kind::found, i)));
    EXPECT_EQ(urgent.size(), UrgentLetters::letters_max);
    EXPECT_EQ(head_of(urgent.front()).sequence, 1u);
}

} // namespace
} // namespace kumi::device::composite
