#pragma once

// PM, the message layer: what every network looks like to the layers above it. Include it to send messages by hand,
// with back-pressure, through PmJob::channel().

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/pm/counters.hpp"
#include "kumi/pm/joint_sleep.hpp"
#include "kumi/pm/message.hpp"
#include "kumi/pm/node.hpp"
#include "kumi/pm/remote_memory.hpp"
#include "kumi/pm/traits.hpp"
#include "kumi/pm/ways.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace kumi::pm {

/// Room for one message: reserved by try_reserve(), filled through bytes(), sent by commit(). Empty when refused.
class SendSlot {
public:
    SendSlot() = default;
    SendSlot(Node to, MutableBytes bytes, std::uint64_t token = 0) noexcept
        : data_(bytes.data()), size_(bytes.size()), token_(token), to_(to) {}

    explicit operator bool() const noexcept { return data_ != nullptr; }
    /// Where the message is to be written; aligned to 8 bytes at least. Contains old bytes until it is filled.
    MutableBytes bytes() const noexcept { return {data_, size_}; }
    Node to() const noexcept { return to_; }
    /// For the device that made the slot.
    std::uint64_t token() const noexcept { return token_; }

private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t token_ = 0;
    Node to_ = 0;
};

/// What has been sent since a channel was opened.
struct Traffic {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
};

/// Called with each message; Message says how long the bytes live. A handler may send on the same channel (by the try_…
/// calls only). It must not poll the channel, and must not throw.
using Handler = base::FunctionRef<void(Message&)>;

/// Carries whole messages between nodes: reliably, exactly once, and in order for each pair of source and destination.
/// One thread at a time uses a channel, except where a call says otherwise. Only sleep() blocks.
class Channel {
public:
    Channel() = default;
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    /// What was committed before is still delivered to nodes that go on polling. Requires that all kept messages have
    /// been destroyed.
    virtual ~Channel() = default;

    virtual Node self() const noexcept = 0;
    /// The number of nodes that the channel connects, this node included. A node may send to itself.
    virtual Node nodes() const noexcept = 0;
    virtual const Traits& traits() const noexcept = 0;

    /// Reserves room for one message to `to`, which the caller fills in place and commits. At most one reservation for
    /// each destination at a time. An empty slot is back-pressure, not failure: the caller calls poll() and tries
    /// again. Reservations for a lost node are always refused.
    virtual SendSlot try_reserve(Node to, std::size_t bytes) noexcept = 0;

    /// Sends a message that was written into its slot. A small message that follows others back to back may be held
    /// back for a moment, to share a packet with them; flush(), poll() and arm() send it.
    virtual void commit(const SendSlot& slot) noexcept = 0;

    /// Gives up a reservation. Nothing is sent.
    virtual void cancel(const SendSlot& slot) noexcept = 0;

    /// Calls `handler` with up to `messages_max` messages that have arrived. Answers how many.
    virtual std::size_t poll(Handler handler, std::size_t messages_max) noexcept = 0;

    /// Announces that this node is about to sleep. False: there is something to do already, or a node has been lost
    /// since the last arm(), also if a poll() noticed it; the caller must not sleep but look at what it waits for, and
    /// call poll().
    virtual bool arm() noexcept = 0;

    /// Sleeps until a message arrives, a send that was refused may succeed, a node is lost, wake() is called or the
    /// deadline passes. May also return for no reason. Requires that arm() has answered true. Senders pay for a wake-up
    /// only while a node sleeps.
    virtual void sleep(Instant deadline) noexcept = 0;

    /// Ends the sleep of the thread in sleep(), or the next sleep if no thread sleeps. From any thread.
    virtual void wake() noexcept = 0;

    /// True when it is known that `node` will never answer again: it has closed its channel or its process has ended,
    /// which is known within a second to nodes that poll or sleep (later if many end at once on another host); or its
    /// host cannot be reached, and it has not answered for as long as the device waits (KUMI_SILENCE, 60 s). A process
    /// that is stopped is not lost.
    virtual bool lost(Node node) const noexcept = 0;

    /// Stops all traffic with `node` on this channel: messages that were sent to it may not arrive, and messages from
    /// it are not delivered. For a caller that has another path to it. Does nothing on devices whose paths do not fail.
    virtual void give_up(Node) noexcept {}

    /// The messages that were committed to `to` so far.
    virtual Traffic sent(Node to) const noexcept = 0;
    /// The name of what carries messages to a node: this channel's device, or one of the networks that the channel is
    /// made of.
    virtual std::string_view carrier(Node) const noexcept { return traits().device; }

    /// The counters of the channel as a whole. Each device has its own.
    virtual std::vector<Counter> counters() const { return {}; }
    /// The counters of one peer: the same ones in the same order for each peer. A counter that the channel as a whole
    /// also has is the sum over its peers there.
    virtual std::vector<Counter> counters(Node) const { return {}; }

    /// For a caller that sleeps on several channels at once, or while other threads use this channel. Null where the
    /// device does not support it.
    virtual JointSleep* joint_sleep() noexcept { return nullptr; }

    /// For a caller that has other paths to the same nodes. Null where paths do not fail.
    virtual Ways* ways() noexcept { return nullptr; }

    /// Access to the memory of other nodes. Null where the device does not have it.
    virtual RemoteMemory* remote_memory() noexcept { return nullptr; }

    /// Copies one message and sends it. False is back-pressure. For small messages this is faster than a slot.
    virtual bool try_send(Node to, Bytes bytes) noexcept {
        const SendSlot slot = try_reserve(to, bytes.size());
        if (!slot) return false;
        copy_bytes(slot.bytes().data(), bytes);
        commit(slot);
        return true;
    }

    /// Sends a message in two pieces.
    virtual bool try_send(Node to, Bytes head, Bytes body) noexcept {
        const SendSlot slot = try_reserve(to, head.size() + body.size());
        if (!slot) return false;
        Pieces(head, body).copy_to(slot.bytes().data());
        commit(slot);
        return true;
    }

    /// Sends a message in more than two pieces.
    template <class... Pieces>
        requires(sizeof...(Pieces) > 2)
    bool try_send(Node to, const Pieces&... pieces) noexcept {
        const SendSlot slot = try_reserve(to, (Bytes(pieces).size() + ...));
        if (!slot) return false;
        std::byte* at = slot.bytes().data();
        ((copy_bytes(at, Bytes(pieces)), at += Bytes(pieces).size()), ...);
        commit(slot);
        return true;
    }

    /// Sends small messages that are held back to share a packet. poll() and arm() do it too; this is for a node that
    /// sends and then computes.
    virtual void flush() noexcept {}
};

/// The best message size for a program that copies long contents from private memory to private memory over shared
/// memory. With messages of this size the copy into the channel and the copy out of it overlap; with one message the
/// second copy waits for the first. Contents that are produced in a slot, or read where they arrive, go as one message.
inline constexpr std::size_t piece_bytes = std::size_t{32} << 10;

/// No limit for poll(): all messages that have arrived. Still bounded: a device delivers at most what its buffers hold.
inline constexpr std::size_t all_messages = std::numeric_limits<std::size_t>::max();

} // namespace kumi::pm
