#include "kumi/reliable/blocks.hpp"
#include "kumi/reliable/endpoint/node_ring.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace kumi::reliable {
namespace {

TEST(Blocks, a_block_has_room_for_what_was_asked_and_no_more_than_twice_that) {
    BlockPool pool(0);
    for (const std::size_t bytes : {0u, 1u, 256u, 257u, 1472u, 65'536u, 65'537u, 1'000'000u}) {
        Block* block = pool.take(bytes);
        ASSERT_NE(block, nullptr);
        EXPECT_GE(block->capacity(), bytes);
        EXPECT_LE(block->capacity(), std::max<std::size_t>(256, 2 * bytes));
        EXPECT_EQ(pool.bytes_used(), block->capacity());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % 64, 0u);
        block->data()[block->capacity() - 1] = std::byte{1};
        pool.give_back(block);
        EXPECT_EQ(pool.bytes_used(), 0u);
    }
}

TEST(Blocks, what_was_given_back_last_is_used_first) {
    BlockPool pool(1 << 20);
    Block* first = pool.take(1000);
    Block* second = pool.take(1000);
    pool.give_back(first);
    pool.give_back(second);
    EXPECT_EQ(pool.take(900), second);
    EXPECT_EQ(pool.take(1024), first);
    pool.give_back(first);
    pool.give_back(second);
}

TEST(Blocks, one_that_is_used_again_is_as_new) {
    BlockPool pool(1 << 20);
    Block* block = pool.take(1000);
    block->bytes = block->cut = block->node = 7;
    block->stride = 1472;
    pool.give_back(block);
    block = pool.take(1000);
    EXPECT_EQ(block->bytes + block->cut + block->node, 0u);
    EXPECT_EQ(block->stride, 0u);
    pool.give_back(block);
}

TEST(Blocks, those_from_other_threads_are_collected_once_each) {
    BlockPool pool(1 << 20);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        std::vector<Block*> blocks;
        for (int j = 0; j < 100; ++j) blocks.push_back(pool.take(300));
        threads.emplace_back([&pool, blocks] {
            for (Block* block : blocks) pool.give_back_from_outside(block);
        });
    }
    std::size_t collected = 0;
    while (collected < 400)
        for (Block* block = pool.collect(); block != nullptr; ++collected) {
            Block* const next = block->next;
            pool.give_back(block);
            block = next;
        }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(pool.collect(), nullptr);
    EXPECT_EQ(pool.bytes_used(), 0u);
}

TEST(Blocks, a_queue_gives_them_in_the_order_they_came) {
    Block blocks[3];
    BlockQueue queue;
    for (int round = 0; round < 2; ++round) {
        EXPECT_TRUE(queue.empty());
        for (Block& block : blocks) queue.push(&block);
        for (Block& block : blocks) {
            EXPECT_EQ(queue.front(), &block);
            EXPECT_EQ(queue.pop(), &block);
        }
    }
    EXPECT_TRUE(queue.empty());
}

TEST(Blocks, no_more_memory_is_kept_idle_than_was_said) {
    BlockPool pool(2048);
    Block* const first = pool.take(1024);
    Block* const second = pool.take(1024);
    Block* const third = pool.take(1024);
    for (Block* block : {first, second, third}) pool.give_back(block); // the third goes back to the system
    EXPECT_EQ(pool.given_back(), 3u);
    Block* const warmest = pool.take(1024);
    EXPECT_EQ(warmest, second);
    pool.give_back(warmest);
    EXPECT_EQ(pool.bytes_used(), 0u);
}

TEST(Blocks, size_classes_are_powers_of_two_from_256_bytes_on) {
    EXPECT_EQ(BlockPool::size_class_of(0), 8);
    EXPECT_EQ(BlockPool::size_class_of(256), 8);
    EXPECT_EQ(BlockPool::size_class_of(257), 9);
    EXPECT_EQ(BlockPool::size_class_of(512), 9);
    EXPECT_EQ(BlockPool::size_class_of(513), 10);
    EXPECT_EQ(BlockPool::size_class_of(std::size_t{1} << 24), 24);
    EXPECT_EQ(BlockPool::size_class_of((std::size_t{1} << 24) + 1), 25);
}

TEST(Blocks, a_ring_of_nodes_gives_them_in_the_order_they_came_however_often_it_goes_round) {
    NodeRing ring(3);
    for (Node round = 0; round < 10; ++round) {
        EXPECT_TRUE(ring.empty());
        for (Node node = 0; node <= round % 3; ++node) ring.push(node + round);
        for (Node node = 0; node <= round % 3; ++node) {
            EXPECT_FALSE(ring.empty());
            EXPECT_EQ(ring.pop(), node + round);
        }
    }
}

} // namespace
} // namespace kumi::reliable
