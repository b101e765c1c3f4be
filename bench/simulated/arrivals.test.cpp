#include "simulated/arrivals.hpp"

#include <gtest/gtest.h>

namespace kumi::bench {
namespace {

TEST(Arrivals, last_from_the_beginning_to_the_last_member) {
    Arrivals arrivals(1000, {0, 4, 8});
    arrivals.begin(2);
    arrivals.take(0, arrivals.content(), 2);
    arrivals.take(8, arrivals.content(), 5);
    arrivals.take(4, arrivals.content(), 3);
    EXPECT_EQ(arrivals.mistake(), std::nullopt);
    EXPECT_DOUBLE_EQ(arrivals.seconds(), 3);
}

TEST(Arrivals, name_members_that_got_nothing) {
    Arrivals arrivals(1000, {0, 4, 8});
    EXPECT_EQ(arrivals.mistake(), "nothing came to 0,4,8");
    arrivals.take(4, arrivals.content(), 1);
    EXPECT_EQ(arrivals.mistake(), "nothing came to 0,8");
}

TEST(Arrivals, count_only_whole_content_once_and_at_members) {
    const auto mistake_after = [](auto&& wrong) {
        Arrivals arrivals(1000, {0, 4});
        for (const group::Node node : {0u, 4u}) wrong(arrivals, node);
        return arrivals.mistake();
    };
    const auto right = [](Arrivals& arrivals, group::Node node) { arrivals.take(node, arrivals.content(), 1); };
    EXPECT_EQ(mistake_after(right), std::nullopt);
    EXPECT_EQ(mistake_after([&](Arrivals& arrivals, group::Node node) { right(arrivals, node), right(arrivals, 0); }),
              "node 0 got the content twice");
    EXPECT_EQ(mistake_after([&](Arrivals& arrivals, group::Node node) { right(arrivals, node), right(arrivals, 5); }),
              "node 5 is no member and got something");
    EXPECT_EQ(mistake_after([](Arrivals& arrivals, group::Node node) {
                  arrivals.take(node, arrivals.content().first(node == 0 ? 1000 : 999), 1);
              }),
              "node 4 got something else than what was sent");
}

TEST(Arrivals, know_parts_that_are_at_the_place_of_others) {
    for (const std::size_t part : {1u, 256u, 320u, 1024u}) {
        Arrivals arrivals(2 * part, {0});
        std::vector<std::byte> swapped(arrivals.content().begin(), arrivals.content().end());
        std::rotate(swapped.begin(), swapped.begin() + static_cast<std::ptrdiff_t>(part), swapped.end());
        arrivals.take(0, swapped, 1);
        EXPECT_EQ(arrivals.mistake(), "node 0 got something else than what was sent") << part;
    }
}

} // namespace
} // namespace kumi::bench
