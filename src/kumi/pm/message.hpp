#pragma once

// Received messages. A handler reads a message in place, in the buffer of the network, until the handler returns; or it
// keeps the message. Include it to write such handlers.

#include "kumi/base/bytes.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <memory>

namespace kumi::pm {

/// Gets the buffers of kept messages back. Implemented by channels.
class BufferOwner {
public:
    /// From any thread.
    virtual void release(std::uint64_t token) noexcept = 0;

protected:
    ~BufferOwner() = default;
};

/// A message that outlives its handler. Its buffer goes back to the channel when this is destroyed, from any thread. It
/// must not outlive the channel. While it is kept, the sender has less room by its size.
class KeptMessage {
public:
    KeptMessage() = default;
    /// Keeps a buffer of the channel.
    KeptMessage(Node source, Bytes bytes, BufferOwner& owner, std::uint64_t token) noexcept
        : source_(source), bytes_(bytes), owner_(&owner), token_(token) {}
    /// Keeps a copy of `bytes`.
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
    /// False for a default-constructed message, and for one that was moved from.
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

/// A message, as its handler gets it.
class Message {
public:
    Message(Node source, Bytes bytes, BufferOwner* owner = nullptr, std::uint64_t token = 0) noexcept
        : bytes_(bytes), owner_(owner), token_(token), source_(source) {}
    /// The message `same` for a layer that numbers its source differently. If the new message is kept, the caller tells
    /// `same` by note_kept().
    Message(const Message& same, Node source) noexcept
        : bytes_(same.bytes_), owner_(same.owner_), token_(same.token_), source_(source) {}
    /// As above, for a layer that sees only `bytes` of the message.
    Message(const Message& same, Node source, Bytes bytes) noexcept
        : bytes_(bytes), owner_(same.owner_), token_(same.token_), source_(source) {}
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

    Node source() const noexcept { return source_; }
    /// Aligned to 8 bytes at least.
    Bytes bytes() const noexcept { return bytes_; }

    /// Makes the message outlive the handler; at most once. Without a copy where the message has a buffer of its own
    /// (large messages), with a copy where it lies in a ring of the device (small messages).
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
