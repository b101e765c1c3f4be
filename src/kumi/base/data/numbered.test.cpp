#include "kumi/base/data/numbered.hpp"

#include <gtest/gtest.h>

namespace kumi::base {
namespace {

struct Id {
    std::uint32_t index;
    std::uint32_t generation;
};
struct Thing {
    int value = 0;
    void reset() { value = 0; }
};

TEST(Numbered, who_has_an_old_number_finds_nothing) {
    Numbered<Thing, Id> things;
    const auto [first, one] = things.add();
    one.value = 1;
    EXPECT_EQ(things.find(first), &one);
    things.give_back(things.remove(first));
    EXPECT_EQ(things.find(first), nullptr);
    const auto [second, other] = things.add();
    EXPECT_EQ(second.index, first.index);
    EXPECT_EQ(things.find(first), nullptr);
    EXPECT_EQ(things.find(second), &other);
    EXPECT_EQ(&other, &one) << "its memory was to be used again";
    EXPECT_EQ(other.value, 0) << "as good as new";
    EXPECT_EQ(things.find({7, 1}), nullptr);
}

TEST(Numbered, what_is_visited_may_go_and_others_may_come) {
    Numbered<Thing, Id> things;
    std::vector<Id> ids;
    for (int i = 0; i < 4; ++i) {
        const auto [id, thing] = things.add();
        ids.push_back(id);
        thing.value = i;
    }
    std::vector<int> visited;
    things.for_each([&](Thing& thing) {
        visited.push_back(thing.value);
        if (thing.value == 1) {
            things.give_back(things.remove(ids[1]));
            things.give_back(things.remove(ids[2]));
            for (int i = 0; i < 3; ++i) things.add().second.value = 9;
        }
    });
    EXPECT_EQ(visited, (std::vector<int>{0, 1, 9, 3, 9}));
    EXPECT_EQ(things.size(), 5u);
}

} // namespace
} // namespace kumi::base
