#include "kumi/device/shmem/buffers.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace kumi::device::shmem {
namespace {

std::shared_ptr<Segment> make_segment(Node nodes) {
    auto segment = Segment::create(nodes, {.node_buffers_bytes_max = std::size_t{1} << 20});
    EXPECT_TRUE(segment);
    for (Node node = 0; node < nodes; ++node) EXPECT_TRUE((*segment)->reserve_part(node));
    return *segment;
}

TEST(ShmemBuffers, what_comes_back_can_be_had_again_in_any_order) {
    const auto segment = make_segment(2);
    BufferHeap heap(*segment, 0);
    const std::size_t all = heap.units_free();
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::uint32_t> taken;
        while (const auto unit = heap.try_take(1 + random() % 60'000)) taken.push_back(*unit);
        std::shuffle(taken.begin(), taken.end(), random);
        for (const std::uint32_t unit : taken) return_buffer(*segment, 0, unit);
        ASSERT_EQ(heap.units_free(), all);
    }
    EXPECT_TRUE(heap.try_take(segment->layout().buffer_bytes)) << "the largest message fits an empty heap";
    EXPECT_FALSE(heap.try_take(1));
}

TEST(ShmemBuffers, the_lowest_free_buffer_is_taken_first) {
    const auto segment = make_segment(1);
    BufferHeap heap(*segment, 0);
    const auto first = heap.try_take(10'000);
    const auto second = heap.try_take(10'000);
    ASSERT_TRUE(first && second);
    EXPECT_LT(*first, *second);
    return_buffer(*segment, 0, *first);
    EXPECT_EQ(heap.try_take(5'000), first);
}

TEST(ShmemBuffers, a_return_tells_whether_the_owner_waits_for_it) {
    const auto segment = make_segment(1);
    BufferHeap heap(*segment, 0);
    const auto unit = heap.try_take(segment->layout().buffer_bytes);
    ASSERT_TRUE(unit);
    EXPECT_TRUE(heap.wait_for(1));
    EXPECT_TRUE(return_buffer(*segment, 0, *unit));
    EXPECT_FALSE(heap.wait_for(1));
}

TEST(ShmemBuffers, several_receivers_return_at_once) {
    const auto segment = make_segment(4);
    BufferHeap heap(*segment, 0);
    const std::size_t all = heap.units_free();
    for (int round = 0; round < 300; ++round) {
        std::vector<std::uint32_t> taken;
        while (const auto unit = heap.try_take(4096)) taken.push_back(*unit);
        std::vector<std::thread> receivers;
        for (std::size_t part = 0; part < 3; ++part)
            receivers.emplace_back([&, part] {
                for (std::size_t i = part; i < taken.size(); i += 3) return_buffer(*segment, 0, taken[i]);
            });
        while (heap.units_free() < all) std::this_thread::yield();
        for (std::thread& receiver : receivers) receiver.join();
    }
}

TEST(ShmemBuffers, a_buffer_has_as_many_units_as_its_bytes_need) {
    const auto segment = make_segment(1);
    BufferHeap heap(*segment, 0);
    const std::size_t all = heap.units_free();
    for (const auto& [bytes, units] :
         {std::pair<std::size_t, std::size_t>{1, 1}, {unit_bytes, 1}, {unit_bytes + 1, 2}, {2 * unit_bytes, 2}}) {
        const auto unit = heap.try_take(bytes);
        ASSERT_TRUE(unit);
        EXPECT_EQ(heap.units_free(), all - units) << bytes << " bytes";
        heap.give_back(*unit);
        EXPECT_EQ(heap.units_free(), all);
    }
    EXPECT_FALSE(heap.try_take(segment->layout().buffer_bytes + 1));
}

TEST(ShmemBuffers, two_buffers_never_overlap) {
    const auto segment = make_segment(1);
    BufferHeap heap(*segment, 0);
    std::mt19937 random(4);
    std::vector<std::pair<std::uint32_t, std::size_t>> taken; // first unit and bytes
    std::vector<int> used(segment->layout().units());
    const auto mark = [&](const auto& buffer, int by) {
        for (std::size_t unit = buffer.first; unit * unit_bytes < buffer.first * unit_bytes + buffer.second; ++unit)
            used.at(unit) += by;
    };
    for (int i = 0; i < 5'000; ++i) {
        const std::size_t bytes = 1 + random() % 40'000;
        if (const auto unit = random() % 2 == 0 ? heap.try_take(bytes) : std::nullopt) {
            taken.emplace_back(*unit, bytes);
            mark(taken.back(), 1);
            EXPECT_EQ(heap.address(*unit), segment->buffers(0) + *unit * unit_bytes);
        } else if (!taken.empty()) {
            std::swap(taken[random() % taken.size()], taken.back());
            mark(taken.back(), -1);
            return_buffer(*segment, 0, taken.back().first);
            taken.pop_back();
        }
        ASSERT_TRUE(std::all_of(used.begin(), used.end(), [](int count) { return count == 0 || count == 1; }))
            << "step " << i;
        ASSERT_EQ(heap.units_free(), static_cast<std::size_t>(std::count(used.begin(), used.end(), 0))) << "step " << i;
    }
}

TEST(ShmemBuffers, who_finds_what_it_waits_for_or_gives_up_waiting_is_not_woken) {
    const auto segment = make_segment(1);
    BufferHeap heap(*segment, 0);
    const std::size_t all = segment->layout().buffer_bytes;
    const auto half = heap.try_take(all / 2), one = heap.try_take(unit_bytes);
    ASSERT_TRUE(half && one);
    EXPECT_FALSE(heap.wait_for(unit_bytes)) << "there is one";
    EXPECT_FALSE(return_buffer(*segment, 0, *one));
    EXPECT_TRUE(heap.wait_for(all)) << "there is no piece that long";
    heap.stop_waiting();
    EXPECT_FALSE(return_buffer(*segment, 0, *half));
}

TEST(ShmemBuffersDeathTest, a_buffer_that_was_not_taken_does_not_come_back) {
    const auto segment = make_segment(1);
    BufferHeap heap(*segment, 0);
    EXPECT_DEATH(heap.give_back(0), "lengths_");
    EXPECT_DEATH(heap.give_back(static_cast<std::uint32_t>(segment->layout().units())), "lengths_");
}

} // namespace
} // namespace kumi::device::shmem
