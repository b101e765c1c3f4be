#include "kumi/group/started/frame_stack.hpp"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>

namespace kumi::group::frame_stack_test {
namespace {

TEST(FrameStack, frames_lie_one_after_the_other_and_their_memory_is_used_again) {
    FrameStack frames;
    void* const outer = frames.take(100);
    std::memset(outer, 1, 100);
    void* const inner = frames.take(33);
    std::memset(inner, 2, 33);
    EXPECT_EQ(static_cast<std::byte*>(outer)[99], std::byte{1}) << "the frames overlap";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(inner) % __STDCPP_DEFAULT_NEW_ALIGNMENT__, 0u);
    FrameStack::give_back(inner, 33);
    EXPECT_EQ(frames.take(33), inner);
    FrameStack::give_back(inner, 33);
    FrameStack::give_back(outer, 100);
    EXPECT_EQ(frames.used(), 0u);
    EXPECT_EQ(frames.take(8), outer);
    FrameStack::give_back(outer, 8);
}

TEST(FrameStack, a_frame_that_does_not_fit_comes_from_the_heap) {
    FrameStack frames;
    void* const fitting = frames.take(FrameStack::block_bytes / 2);
    const std::size_t used = frames.used();
    void* const large = frames.take(FrameStack::block_bytes / 2);
    std::memset(large, 1, FrameStack::block_bytes / 2);
    EXPECT_EQ(frames.used(), used);
    FrameStack::give_back(large, FrameStack::block_bytes / 2);
    EXPECT_EQ(frames.used(), used);
    FrameStack::give_back(fitting, FrameStack::block_bytes / 2);
    EXPECT_EQ(frames.used(), 0u);
}

} // namespace
} // namespace kumi::group::frame_stack_test
