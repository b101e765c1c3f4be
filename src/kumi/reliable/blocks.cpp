#include "kumi/reliable/blocks.hpp"

#include <bit>
#include <new>

namespace kumi::reliable {
namespace {

constexpr std::align_val_t alignment{64};
constexpr std::uint8_t smallest_class = 8;

} // namespace

BlockPool::~BlockPool() {
    for (Block* block = collect(); block != nullptr;) {
        Block* const next = block->next;
        give_back(block);
        block = next;
    }
    for (Block*& list : idle_)
        while (list != nullptr) {
            Block* const block = list;
            list = block->next;
            ::operator delete(block, alignment);
        }
}

std::uint8_t BlockPool::size_class_of(std::size_t bytes) noexcept {
    const auto exact = static_cast<std::uint8_t>(bytes <= 1 ? 0 : std::bit_width(bytes - 1));
    return exact < smallest_class ? smallest_class : exact;
}

Block* BlockPool::take(std::size_t bytes) noexcept {
    const std::uint8_t size_class = size_class_of(bytes);
    if (bytes_used_ + (std::size_t{1} << size_class) > bytes_max_) [[unlikely]] return nullptr;
    Block* block = idle_[size_class];
    if (block != nullptr) {
        idle_[size_class] = block->next;
        idle_bytes_ -= block->capacity();
    } else {
        void* memory = ::operator new(Block::data_offset + (std::size_t{1} << size_class), alignment, std::nothrow);
        if (memory == nullptr) return nullptr;
        block = static_cast<Block*>(memory);
    }
    new (block) Block{};
    block->size_class = size_class;
    bytes_used_ += block->capacity();
    return block;
}

void BlockPool::give_back(Block* block) noexcept {
    if (!block->is_starts) ++given_back_; // messages do not wait for the room of starts
    bytes_used_ -= block->capacity();
    if (idle_bytes_ + block->capacity() > idle_bytes_max_) return ::operator delete(block, alignment);
    idle_bytes_ += block->capacity();
    block->next = idle_[block->size_class];
    idle_[block->size_class] = block;
}

void BlockPool::give_back_from_outside(Block* block) noexcept {
    // Release: partner of the acquire in collect(), which gives the block's memory to its next user.
    block->next = outside_.load(std::memory_order_relaxed); // the compare-exchange checks it
    while (!outside_.compare_exchange_weak(block->next, block, std::memory_order_release, std::memory_order_relaxed)) {}
}

Block* BlockPool::collect() noexcept {
    if (outside_.load(std::memory_order_relaxed) == nullptr) return nullptr; // a hint; the exchange below decides
    // Acquire: partner of the release in give_back_from_outside().
    return outside_.exchange(nullptr, std::memory_order_acquire);
}

} // namespace kumi::reliable
