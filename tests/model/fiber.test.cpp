#include "fiber.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kumi::model {
namespace {

TEST(Fiber, goes_on_where_it_was_suspended) {
    std::vector<int> steps;
    Fiber* self = nullptr;
    Fiber fiber([&] {
        steps.push_back(1);
        self->suspend();
        steps.push_back(3);
    });
    self = &fiber;
    fiber.resume();
    steps.push_back(2);
    fiber.resume();
    steps.push_back(4);
    fiber.resume();
    EXPECT_EQ(steps, (std::vector{1, 2, 3, 4, 1}));
    fiber.resume();
}

#if defined(KUMI_ADDRESS_SANITIZER)
TEST(Fiber, leaves_no_red_zones_where_its_stack_was) {
    constexpr std::size_t outer_frames = 1024;
    char* where = nullptr; // on the stack of the fiber, below its outermost frames
    {
        Fiber fiber([&] {
            char local[64] = {};
            where = local;
        });
        fiber.resume();
        ASSERT_NE(__asan_region_is_poisoned(where, outer_frames), nullptr) << "while it lives, it has red zones there";
    }
    EXPECT_EQ(__asan_region_is_poisoned(where, outer_frames), nullptr);
}
#endif

} // namespace
} // namespace kumi::model
