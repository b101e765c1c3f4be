#include "kumi/engine/operation/operations.hpp"

#include <gtest/gtest.h>
#include <memory>

namespace kumi::engine {
namespace {

TEST(Operations, a_number_is_good_once) {
    Operations operations;
    const OperationId first = operations.begin({.peer = 1});
    ASSERT_NE(operations.find(first), nullptr);
    EXPECT_EQ(operations.find(first)->peer, 1u);
    operations.end(first);
    EXPECT_EQ(operations.find(first), nullptr);
    const OperationId second = operations.begin({.peer = 2});
    EXPECT_EQ(second.index, first.index) << "slots are used again";
    EXPECT_NE(second.generation, first.generation);
    EXPECT_EQ(operations.find(first), nullptr) << "what answers late finds nothing";
    operations.end(first); // by somebody who comes late
    ASSERT_NE(operations.find(second), nullptr);
    EXPECT_EQ(operations.find(second)->peer, 2u);
    EXPECT_EQ(operations.count(), 1u);
}

TEST(Operations, numbers_that_were_never_given_lead_nowhere) {
    Operations operations;
    EXPECT_EQ(operations.find({0, 0}), nullptr);
    EXPECT_EQ(operations.find(no_operation), nullptr);
    const OperationId only = operations.begin({});
    EXPECT_EQ(operations.find({only.index + 1, only.generation}), nullptr);
    EXPECT_EQ(operations.find({only.index, only.generation + 1}), nullptr);
    operations.end(only);
    EXPECT_EQ(operations.find({only.index, only.generation + 1}), nullptr) << "the next of its slot is not begun yet";
}

TEST(Operations, those_that_sync_waits_for_are_counted_and_others_are_not) {
    Operations operations;
    const OperationId counted = operations.begin({});
    const OperationId other = operations.begin({.is_for_sync = false});
    EXPECT_EQ(operations.count(), 1u);
    operations.end(other);
    EXPECT_EQ(operations.count(), 1u);
    operations.end(counted);
    operations.end(counted);
    EXPECT_EQ(operations.count(), 0u);
}

TEST(Operations, a_node_may_complete_what_is_its_own) {
    EXPECT_TRUE((Operation{.peer = 1}.is_from(1)));
    EXPECT_FALSE((Operation{.peer = 1}.is_from(2)));
}

TEST(Operations, those_of_a_node_are_found_and_no_others) {
    Operations operations;
    const OperationId own = operations.begin({.peer = 1});
    operations.begin({.peer = 2});
    operations.end(operations.begin({.peer = 1}));
    std::vector<OperationId> found;
    operations.each_of(1, [&](OperationId id) { found.push_back(id); });
    EXPECT_EQ(found, (std::vector<OperationId>{own}));
    operations.find(own)->is_done = true;
    std::size_t open = 0;
    operations.each([&](const Operation&) { ++open; });
    EXPECT_EQ(open, 1u) << "neither what is done nor what has ended";
}

TEST(Operations, what_an_ended_one_held_may_begin_another) {
    Operations operations;
    OperationId next = no_operation;
    struct Last {
        Operations& operations;
        OperationId& next;
        ~Last() { next = operations.begin({.peer = 7}); }
    };
    const OperationId first = operations.begin(
        {.answered = [last = std::shared_ptr<Last>(new Last{operations, next})](const Result<Bytes>&) {}});
    operations.end(first);
    EXPECT_EQ(operations.find(first), nullptr);
    ASSERT_NE(operations.find(next), nullptr);
    EXPECT_EQ(operations.find(next)->peer, 7u);
    EXPECT_EQ(operations.count(), 1u);
}

TEST(Operations, clear_ends_all) {
    Operations operations;
    std::vector<OperationId> ids;
    const auto held = std::make_shared<int>(0);
    for (int i = 0; i < 3; ++i) ids.push_back(operations.begin({.answered = [held](const Result<Bytes>&) {}}));
    EXPECT_EQ(held.use_count(), 4);
    operations.clear();
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(operations.count(), 0u);
    for (const OperationId id : ids) EXPECT_EQ(operations.find(id), nullptr);
}

} // namespace
} // namespace kumi::engine
