#pragma once

// A received message is read where it lies. The handler may look at it until it returns, or keep it.

#include "kumi/base/bytes.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <memory>

namespace kumi::pm {

/// Who gets a kept buffer back. Implemented by channels.
class BufferOwner {
public:
    /// From any thread.
    virtual void release(std::uint64_t token) noexcept = 0;

protected:
    ~BufferOwner() = default;
};

/// A message that outlives its handler. Its buffer goes back when this is destroyed, from whatever thread;
/// it must not outlive its channel. While it is held the sender has that much less room.
class KeptMessage {
public:
    KeptMessage() = default;
    /// Holds a buffer of the channel's.
    KeptMessage(Node source, Bytes bytes, BufferOwner& owner, std::uint64_t token) noexcept
        : source_(source), bytes_(bytes), owner_(&owner), token_(token) {}
    /// Holds a copy.
    KeptMessage(Node source, Bytes bytes);
    KeptMessage(KeptMessage&& other) noexcept { swap(other); }
    KeptMessage& operator=(KeptMessage&& other) noexcept {
        KeptMessage(std::move(other)).swap(*this);
        return *this;
    }
    ~KeptMessage() {
        if (owner_ != nullptr) owner_->release(token_);
    }

    Node source() const noexcept { return source_; }
    Bytes bytes() const noexcept { return bytes_; }
    /// False after the message was moved away, or for a default one.
    explicit operator bool() const noexcept { return owner_ != nullptr || copy_ != nullptr; }

private:
    void swap(KeptMessage& other) noexcept {
        std::swap(source_, other.source_);
        std::swap(bytes_, other.bytes_);
        std::swap(owner_, other.owner_);
        std::swap(token_, other.token_);
        std::swap(copy_, other.copy_);
    }

    Node source_ = 0;
    Bytes bytes_;
    BufferOwner* owner_ = nullptr;
    std::uint64_t token_ = 0;
    std::unique_ptr<std::byte[]> copy_;
};

/// A message in its handler's hands.
class Message {
public:
    Message(Node source, Bytes bytes, BufferOwner* owner = nullptr, std::uint64_t token = 0) noexcept
        : bytes_(bytes), owner_(owner), token_(token), source_(source) {}
    /// The same message, for somebody who knows its source by another number. If that one is kept, `same` is too: tell
    /// it by note_kept().
    Message(const Message& same, Node source) noexcept
        : bytes_(same.bytes_), owner_(same.owner_), token_(same.token_), source_(source) {}
    /// The same for somebody who knows `bytes` of it only.
    Message(const Message& same, Node source, Bytes bytes) noexcept
        : bytes_(bytes), owner_(same.owner_), token_(same.token_), source_(source) {}
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

    Node source() const noexcept { return source_; }
    /// Aligned to 8 bytes at least.
    Bytes bytes() const noexcept { return bytes_; }

    /// Takes the message over, once: without a copy where the device has it in a buffer of its own (large
    /// messages), with one where it lies in a ring that must move on (small ones).
    KeptMessage keep();

    bool was_kept() const noexcept { return kept_; }
    void note_kept() noexcept { kept_ = true; }

private:
    Bytes bytes_;
    BufferOwner* owner_; // null: the bytes are gone when the handler returns
    std::uint64_t token_;
    Node source_;
    bool kept_ = false;
};

} // namespace kumi::pm
