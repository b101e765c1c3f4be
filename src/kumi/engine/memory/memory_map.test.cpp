// Bounds are crossed by exactly one here. What lies behind them is another segment, so what gets through shows.

#include "kumi/engine/memory/memory_map.hpp"

#include "kumi/base/system/machine.hpp"
#include "loopback/scripted_channel.hpp"
#include "loopback/windows.hpp"

#include <deque>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <set>

namespace kumi::engine {
namespace {

using loopback::ScriptedChannel;
using loopback::Windows;

constexpr std::uint64_t farthest = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t window_bytes = 1 << 20;

/// Node 0 of three, which reaches node 1 too.
struct MapOfThree {
    explicit MapOfThree() { channel.memory = &windows; }

    Windows windows{3, window_bytes, {0, 1}};
    ScriptedChannel channel{3};
    std::unique_ptr<MemoryMap> map = std::move(*[this] {
        channel.memory = &windows;
        return MemoryMap::open(channel);
    }());
};

TEST(MemoryMap, finds_what_lies_in_a_segment_and_not_one_byte_more) {
    ScriptedChannel channel(1);
    const auto map = *MemoryMap::open(channel);
    ASSERT_TRUE(map->make(4096));
    const SegmentId id = *map->make(4096);
    ASSERT_TRUE(map->make(4096)); // right behind it
    std::byte* const start = map->find(0, id, 0, 1);
    ASSERT_NE(start, nullptr);
    struct Part {
        std::uint64_t offset, bytes;
    };
    for (const auto& [offset, bytes] : {Part{0, 4096}, Part{4095, 1}, Part{1, 4095}, Part{0, 0}, Part{4096, 0}}) {
        EXPECT_EQ(map->find(0, id, offset, bytes), start + offset) << bytes << " at " << offset;
        EXPECT_TRUE(map->contains(0, id, offset, bytes)) << bytes << " at " << offset;
    }
    for (const auto& [offset, bytes] :
         {Part{0, 4097}, Part{1, 4096}, Part{4095, 2}, Part{4096, 1}, Part{4097, 0}, Part{farthest, 0},
          Part{farthest, 1}, Part{farthest, 2}, Part{farthest - 7, 8}, Part{farthest - 7, 16}, Part{0, farthest},
          Part{1, farthest}, Part{4096, farthest}, Part{farthest, farthest},
          Part{std::uint64_t{1} << 63, std::uint64_t{1} << 63}}) {
        EXPECT_EQ(map->find(0, id, offset, bytes), nullptr) << bytes << " at " << offset;
        EXPECT_FALSE(map->contains(0, id, offset, bytes)) << bytes << " at " << offset;
    }
}

TEST(MemoryMap, segments_that_do_not_exist_have_no_memory) {
    ScriptedChannel channel(1);
    const auto map = *MemoryMap::open(channel);
    const SegmentId id = *map->make(100);
    for (const SegmentId other : {id + 1, MemoryMap::segments_max - 1, MemoryMap::segments_max, ~SegmentId{0}}) {
        EXPECT_EQ(map->find(0, other, 0, 1), nullptr) << other;
        EXPECT_FALSE(map->contains(0, other, 0, 1)) << other;
        EXPECT_EQ(map->explain(0, other, 0, 1), fmt::format("there is no segment {} (any more)", other));
    }
    EXPECT_EQ(map->find(0, MemoryMap::segments_max, 0, 0), nullptr) << "not even for nothing";
    EXPECT_EQ(map->explain(0, id, 96, 8), fmt::format("segment {} has 100 bytes, and these are 8 at 96", id));
    map->drop(id);
    EXPECT_EQ(map->find(0, id, 0, 1), nullptr);
    EXPECT_EQ(map->explain(0, id, 0, 1), fmt::format("there is no segment {} (any more)", id));
    const SegmentId next = *map->make(100);
    EXPECT_NE(next, id) << "numbers are not used again soon";
    EXPECT_EQ(map->find(0, id, 0, 1), nullptr);
}

TEST(MemoryMap, segments_do_not_overlap_and_begin_behind_the_page_of_the_engine) {
    MapOfThree three;
    MemoryMap& map = *three.map;
    std::byte* const window = three.windows.direct(0, 0);
    std::byte* end = window + shared_page_bytes;
    constexpr std::uint64_t page = base::page_bytes_max;
    for (const std::uint64_t bytes : {std::uint64_t{1}, page - 1, page, page + 1, std::uint64_t{0}}) {
        const auto id = map.make(bytes);
        ASSERT_TRUE(id);
        std::byte* const start = map.find(0, *id, 0, bytes);
        EXPECT_EQ(start, end) << "no gap either: all nodes count alike";
        end = start + std::max<std::uint64_t>(1, (bytes + page - 1) / page) * page;
        EXPECT_EQ(three.windows.exposed.back(),
                  (Windows::Range{static_cast<std::uint64_t>(start - window), static_cast<std::size_t>(end - start)}));
        EXPECT_EQ(map.find(1, *id, 0, bytes), three.windows.direct(1, 0) + (start - window))
            << "at the same place of each window";
    }
}

TEST(MemoryMap, what_is_dropped_is_given_back_whole_and_made_again_there) {
    MapOfThree three;
    const SegmentId first = *three.map->make(base::page_bytes_max + 1);
    const SegmentId second = *three.map->make(1);
    const auto range = three.windows.exposed[three.windows.exposed.size() - 2];
    EXPECT_EQ(range.bytes, 2 * base::page_bytes_max);
    three.map->drop(first);
    EXPECT_EQ(three.windows.concealed, std::vector<Windows::Range>{range});
    EXPECT_NE(three.map->find(0, second, 0, 1), nullptr);
    ASSERT_TRUE(three.map->make(2 * base::page_bytes_max));
    EXPECT_EQ(three.windows.exposed.back(), range);
}

TEST(MemoryMap, segments_end_where_the_heap_begins) {
    MapOfThree three;
    const std::uint64_t room = window_bytes / 2 - shared_page_bytes;
    const auto too_much = three.map->make(room + 1);
    ASSERT_FALSE(too_much);
    EXPECT_NE(too_much.error().text().find("KUMI_SHMEM_EXPOSED"), std::string::npos);
    EXPECT_FALSE(three.map->make(farthest)) << "nor where rounding up would begin anew";
    const auto all = three.map->make(room);
    ASSERT_TRUE(all);
    EXPECT_NE(three.map->find(0, *all, room - 1, 1), nullptr);
    EXPECT_FALSE(three.map->make(1));
    three.map->drop(*all);
    EXPECT_TRUE(three.map->make(room));
}

TEST(MemoryMap, a_segment_that_found_no_memory_uses_up_its_number_and_no_addresses) {
    MapOfThree three;
    three.windows.is_full = true;
    const auto none = three.map->make(100);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().text().find("the machine is full"), std::string::npos);
    three.windows.is_full = false;
    const auto next = three.map->make(100);
    ASSERT_TRUE(next);
    EXPECT_EQ(*next, 2u) << "another node may have made segment 1";
    EXPECT_EQ(three.map->find(0, *next, 0, 1), three.windows.direct(0, shared_page_bytes));
    EXPECT_EQ(three.map->find(0, 1, 0, 1), nullptr);
}

/// Addresses for as many segments as there may be, and no memory.
class Addresses final : public pm::RemoteMemory {
public:
    std::size_t window_bytes() const noexcept override { return std::size_t{16} << 30; }
    Result<MutableBytes> expose(std::uint64_t, std::size_t) override { return MutableBytes(); }
    void conceal(std::uint64_t, std::size_t) noexcept override {}
    Result<void> reach(Node) override { return {}; }
    std::byte* direct(Node, std::uint64_t offset) noexcept override { return first_ + offset; }

private:
    alignas(64) std::byte first_[sizeof(SharedPage)]{}; // what lies behind is never looked at
};

struct ManySegments {
    ManySegments() { channel.memory = &addresses; }

    Addresses addresses;
    ScriptedChannel channel{1};
    std::unique_ptr<MemoryMap> map = std::move(*[this] {
        channel.memory = &addresses;
        return MemoryMap::open(channel);
    }());
};

TEST(MemoryMap, so_many_segments_are_there_at_once_and_no_more) {
    ManySegments many;
    for (SegmentId id = 1; id < MemoryMap::segments_max; ++id) ASSERT_EQ(*many.map->make(1), id);
    EXPECT_NE(many.map->find(0, MemoryMap::segments_max - 1, 0, 1), nullptr);
    const auto beyond = many.map->make(1);
    ASSERT_FALSE(beyond);
    EXPECT_NE(beyond.error().text().find("65535"), std::string::npos) << beyond.error().text();
    EXPECT_EQ(beyond.error().code(), ErrorCode::no_memory);
    many.map->drop(4711);
    const auto again = many.map->make(1);
    ASSERT_TRUE(again);
    EXPECT_NE(*again, 4711u) << "its slot, by another number";
    EXPECT_EQ(many.map->find(0, 4711, 0, 1), nullptr);
    EXPECT_NE(many.map->find(0, *again, 0, 1), nullptr);
    EXPECT_FALSE(many.map->make(1));
}

TEST(MemoryMap, segments_are_made_and_dropped_as_often_as_one_likes_and_old_numbers_lead_nowhere) {
    ManySegments many;
    MemoryMap& map = *many.map;
    const SegmentId lasting = *map.make(100);
    std::set<SegmentId> numbers;
    std::deque<SegmentId> dropped;
    for (int i = 0; i < 200'000; ++i) {
        const SegmentId id = *map.make(4096);
        ASSERT_TRUE(numbers.insert(id).second) << "a number comes again";
        ASSERT_NE(id, 0u);
        ASSERT_EQ(id >> 31, 0u) << "landings have this bit";
        ASSERT_NE(map.find(0, id, 4095, 1), nullptr);
        for (const SegmentId old : dropped) ASSERT_EQ(map.find(0, old, 0, 0), nullptr);
        map.drop(id);
        ASSERT_EQ(map.find(0, id, 0, 0), nullptr);
        dropped.push_back(id);
        if (dropped.size() > 5) dropped.pop_front();
    }
    EXPECT_EQ(map.find(0, lasting, 99, 1), many.addresses.direct(0, shared_page_bytes) + 99);
    // Numbers of the slot that is in use and of the heap's, of all generations.
    for (SegmentId generation = 1; generation < 1u << 16; ++generation)
        for (const SegmentId slot : {SegmentId{0}, lasting})
            ASSERT_EQ(map.find(0, generation << 16 | slot, 0, 0), nullptr) << generation;
}

TEST(MemoryMap, numbers_are_alike_on_all_nodes_though_some_calls_fail_on_some) {
    ManySegments many[2];
    std::mt19937 random(1);
    std::vector<SegmentId> made;
    for (int i = 0; i < 150'000; ++i) {
        if (random() % 100 == 0) { // one node has no memory, so both drop it
            const auto failed = many[0].map->make(farthest);
            ASSERT_FALSE(failed);
            many[1].map->drop(*many[1].map->make(1));
        } else if (random() % 2 == 0 && !made.empty()) {
            std::swap(made[random() % made.size()], made.back());
            for (auto& node : many) node.map->drop(made.back());
            made.pop_back();
        } else {
            made.push_back(*many[0].map->make(1));
            ASSERT_EQ(*many[1].map->make(1), made.back());
        }
    }
    for (const SegmentId id : made) EXPECT_EQ(many[0].map->find(0, id, 0, 1) - many[0].addresses.direct(0, 0),
                                              many[1].map->find(0, id, 0, 1) - many[1].addresses.direct(0, 0));
}

TEST(MemoryMap, a_segment_of_no_bytes_is_there_until_it_is_dropped) {
    ManySegments many;
    const SegmentId id = *many.map->make(0);
    EXPECT_NE(many.map->find(0, id, 0, 0), nullptr);
    EXPECT_EQ(many.map->find(0, id, 0, 1), nullptr);
    EXPECT_EQ(many.map->find(0, id, 1, 0), nullptr);
    EXPECT_TRUE(many.map->contains(0, id, 0, 0));
    many.map->drop(id);
    EXPECT_EQ(many.map->find(0, id, 0, 0), nullptr);
    EXPECT_FALSE(many.map->contains(0, id, 0, 0));
}

TEST(MemoryMap, a_heap_grows_by_what_is_asked_of_it_and_what_lies_in_it_is_found) {
    MapOfThree three;
    MemoryMap& map = *three.map;
    EXPECT_EQ(map.find(0, 0, 0, 1), nullptr);
    const std::uint64_t first = *map.allocate(1), second = *map.allocate(65), third = *map.allocate(64);
    EXPECT_EQ(first, 0u);
    EXPECT_EQ(second, 64u) << "aligned";
    EXPECT_EQ(third, 64u + 128u);
    const std::uint64_t size = map.page(0).heap_bytes;
    EXPECT_EQ(size, window_bytes / 2);
    EXPECT_EQ(map.find(0, 0, 0, size), three.windows.direct(0, window_bytes / 2));
    EXPECT_EQ(map.find(0, 0, size - 1, 1), three.windows.direct(0, window_bytes - 1));
    EXPECT_EQ(map.find(0, 0, size, 1), nullptr);
    EXPECT_EQ(map.find(0, 0, 1, size), nullptr);
    EXPECT_EQ(map.find(0, 0, farthest, 1), nullptr);
    EXPECT_NE(map.explain(0, 0, size, 1).find("heap"), std::string::npos);
}

TEST(MemoryMap, a_heap_gives_no_more_than_its_addresses) {
    MapOfThree three;
    EXPECT_FALSE(three.map->allocate(window_bytes / 2 + 1));
    EXPECT_FALSE(three.map->allocate(farthest)) << "nor where rounding up would begin anew";
    const auto all = three.map->allocate(window_bytes / 2);
    ASSERT_TRUE(all);
    EXPECT_FALSE(three.map->allocate(1));
    ASSERT_TRUE(three.map->release(*all));
    EXPECT_TRUE(three.map->allocate(1));
}

TEST(MemoryMap, heap_memory_is_released_once_and_by_its_start) {
    MapOfThree three;
    const std::uint64_t place = *three.map->allocate(200);
    EXPECT_FALSE(three.map->release(place + 64));
    EXPECT_FALSE(three.map->release(1 << 19));
    EXPECT_TRUE(three.map->release(place));
    EXPECT_FALSE(three.map->release(place)) << "twice";
    EXPECT_EQ(*three.map->allocate(256), place) << "all of it is free again";
}

TEST(MemoryMap, heaps_have_sizes_of_their_own_and_those_of_other_hosts_know_themselves) {
    MapOfThree three;
    MemoryMap& map = *three.map;
    EXPECT_TRUE(map.reaches(0) && map.reaches(1));
    EXPECT_FALSE(map.reaches(2));
    map.page(1).heap_bytes = 8192;
    EXPECT_EQ(map.find(1, 0, 8191, 1), three.windows.direct(1, window_bytes / 2 + 8191));
    EXPECT_EQ(map.find(1, 0, 8191, 2), nullptr);
    EXPECT_TRUE(map.contains(1, 0, 0, 8192));
    EXPECT_FALSE(map.contains(1, 0, 0, 8193));
    EXPECT_FALSE(map.contains(0, 0, 0, 1)) << "this one is empty";
    EXPECT_TRUE(map.contains(2, 0, farthest, 100)) << "to be refused there";
    const SegmentId id = *map.make(100);
    EXPECT_TRUE(map.contains(2, id, 0, 100));
    EXPECT_FALSE(map.contains(2, id, 0, 101)) << "segments are alike everywhere";
}

} // namespace
} // namespace kumi::engine
