#include "kumi/engine/barrier/sequence_table.hpp"

#include <gtest/gtest.h>
#include <random>
#include <unordered_map>

namespace kumi::engine {
namespace {

TEST(SequenceTable, knows_what_was_stored_last_and_nothing_else) {
    SequenceTable table;
    EXPECT_FALSE(table.find(5));
    std::mt19937_64 random(1);
    std::unordered_map<std::uint64_t, std::uint32_t> model;
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t set = random() % 20'000 + 1;
        const auto sequence = static_cast<std::uint32_t>(random());
        table.store(set, sequence);
        model[set] = sequence;
        EXPECT_EQ(table.size(), model.size());
    }
    for (std::uint64_t set = 1; set < 25'000; ++set) {
        const auto known = model.find(set);
        EXPECT_EQ(table.find(set), known == model.end() ? std::nullopt : std::optional(known->second)) << set;
    }
}

TEST(SequenceTable, sets_that_want_one_place_do_not_lose_each_other) {
    SequenceTable table;
    for (std::uint64_t set = 1; set <= 40; ++set) table.store(set << 32, static_cast<std::uint32_t>(set));
    for (std::uint64_t set = 1; set <= 40; ++set) EXPECT_EQ(table.find(set << 32), set);
    EXPECT_FALSE(table.find(std::uint64_t{41} << 32));
}

} // namespace
} // namespace kumi::engine
