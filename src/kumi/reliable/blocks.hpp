#pragma once

// Memory for messages and packets. A sender fills a block, sends from it, keeps it for retransmission, and returns it
// when the receiver has acknowledged all of it. A receiver reassembles a long message in a block.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kumi::reliable {

/// A piece of memory, with a link for lists.
struct Block {
    Block* next = nullptr;
    std::uint32_t bytes = 0;   // in use
    std::uint32_t cut = 0;     // of these, already cut into packets
    std::uint32_t unfilled = 0; // of these, at the end: not written yet
    std::uint32_t node = 0;    // the peer whose memory limit the block counts against
    std::uint8_t size_class = 0;
    bool is_long = false;      // one message in pieces, not small messages that share a packet
    bool is_starts = false;    // a packet of starts: copies of bytes of another block
    // not 0: the block holds whole packets with room for their headers, one every `stride` bytes; 0: one plain message
    std::uint32_t stride = 0;
    // of a plain message: pieces whose starts are cut already, and how far apart they lie
    std::uint32_t started = 0;
    std::uint32_t started_stride = 0;

    std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this) + data_offset; }
    std::size_t capacity() const noexcept { return std::size_t{1} << size_class; }

    static constexpr std::size_t data_offset = 64;
};
static_assert(sizeof(Block) <= Block::data_offset);

/// Allocates blocks whose capacities are powers of two. Reuses the block that was returned last, which is most likely
/// in the caches.
class BlockPool {
public:
    /// Keeps at most `idle_bytes_max` of unused blocks.
    explicit BlockPool(std::size_t idle_bytes_max) : idle_bytes_max_(idle_bytes_max) {}
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;
    ~BlockPool();

    /// For tests: from now on take() fails as if the system had only `bytes`.
    void limit(std::size_t bytes) noexcept { bytes_max_ = bytes; }
    /// Null when the system has no memory.
    Block* take(std::size_t bytes) noexcept;
    void give_back(Block* block) noexcept;

    /// Returns a block from any thread. The owner's thread finds it with collect().
    void give_back_from_outside(Block* block) noexcept;
    /// The blocks that other threads have returned since the last call, as a list. The caller must give_back() each.
    Block* collect() noexcept;

    /// A hint for the owner's thread: collect() is likely to return blocks.
    bool has_outside() const noexcept { return outside_.load(std::memory_order_relaxed) != nullptr; }

    std::size_t bytes_used() const noexcept { return bytes_used_; }
    /// How many blocks have been returned so far. A caller that was refused a block can wait for this to change.
    std::uint64_t given_back() const noexcept { return given_back_; }

    static std::uint8_t size_class_of(std::size_t bytes) noexcept;

private:
    static constexpr std::size_t size_classes = 40;

    Block* idle_[size_classes] = {};
    std::size_t idle_bytes_ = 0;
    std::size_t idle_bytes_max_;
    std::size_t bytes_max_ = SIZE_MAX;
    std::size_t bytes_used_ = 0;
    std::uint64_t given_back_ = 0;
    std::atomic<Block*> outside_{nullptr};
};

/// First-in first-out queue of blocks, linked through Block::next.
class BlockQueue {
public:
    bool empty() const noexcept { return first_ == nullptr; }
    Block* front() const noexcept { return first_; }
    void push(Block* block) noexcept {
        block->next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = block;
        last_ = block;
    }
    Block* pop() noexcept {
        Block* block = first_;
        first_ = block->next;
        return block;
    }

private:
    Block* first_ = nullptr;
    Block* last_ = nullptr;
};

} // namespace kumi::reliable
