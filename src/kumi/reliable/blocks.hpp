#pragma once

// Memory for messages and packets. A block is filled by its sender, sent from, kept for retransmission, and goes back
// when the receiver has it all; on the other side a block is what a long message is put together in.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kumi::reliable {

/// A piece of memory with room for a list.
struct Block {
    Block* next = nullptr;
    std::uint32_t bytes = 0;   // in use
    std::uint32_t cut = 0;     // of these, given a sequence already
    std::uint32_t node = 0;    // whom it is charged to
    std::uint8_t size_class = 0;
    bool is_long = false;      // one message in pieces, not several that share a packet
    // not 0: whole packets with their headers, one every so many bytes; 0: a message as it is
    std::uint32_t stride = 0;

    std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this) + data_offset; }
    std::size_t capacity() const noexcept { return std::size_t{1} << size_class; }

    static constexpr std::size_t data_offset = 64;
};
static_assert(sizeof(Block) <= Block::data_offset);

/// Blocks by powers of two. What was given back is used again, the warmest first.
class BlockPool {
public:
    /// Keeps at most `idle_bytes_max` that nobody uses.
    explicit BlockPool(std::size_t idle_bytes_max) : idle_bytes_max_(idle_bytes_max) {}
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;
    ~BlockPool();

    /// From now on it is as if the system had no more than that: for tests.
    void limit(std::size_t bytes) noexcept { bytes_max_ = bytes; }
    /// Null when the system has no memory.
    Block* take(std::size_t bytes) noexcept;
    void give_back(Block* block) noexcept;

    /// From any thread: collect() finds it.
    void give_back_from_outside(Block* block) noexcept;
    /// What came from outside since the last call, as a list; the caller gives each back.
    Block* collect() noexcept;

    /// A look, from the owner's thread: collect() decides.
    bool has_outside() const noexcept { return outside_.load(std::memory_order_relaxed) != nullptr; }

    std::size_t bytes_used() const noexcept { return bytes_used_; }
    /// How many were given back so far: whoever was refused one looks whether it has changed.
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

/// First in, first out, through the blocks' own links.
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
