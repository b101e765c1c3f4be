#pragma once

// The PM message API: what every network looks like to the layers above it.

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

/// Room for one message: claimed by try_reserve(), filled through bytes(), sent by commit(). Empty when refused.
class SendSlot {
public:
    SendSlot() = default;
    SendSlot(Node to, MutableBytes bytes, std::uint64_t token = 0) noexcept
        : data_(bytes.data()), size_(bytes.size()), token_(token), to_(to) {}

    explicit operator bool() const noexcept { return data_ != nullptr; }
    /// Where the message goes; aligned to 8 bytes at least. Holds old bytes until filled.
    MutableBytes bytes() const noexcept { return {data_, size_}; }
    Node to() const noexcept { return to_; }
    /// The device's own note.
    std::uint64_t token() const noexcept { return token_; }

private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t token_ = 0;
    Node to_ = 0;
};

/// Counted since a channel was opened.
struct Traffic {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
};

/// Called with each message; see Message for how long the bytes live. It may send on the same channel
/// (try_… only) and must neither poll it nor throw.
using Handler = base::FunctionRef<void(Message&)>;

/// Carries whole messages between nodes: reliable, exactly once, in order per (source, destination).
/// One thread at a time uses a channel, except where a call says otherwise. Nothing blocks but sleep().
class Channel {
public:
    Channel() = default;
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    /// What was committed before is still delivered, to nodes that go on polling. Kept messages are gone by then.
    virtual ~Channel() = default;

    virtual Node self() const noexcept = 0;
    /// Number of nodes that the channel joins, self included. A node may send to itself.
    virtual Node nodes() const noexcept = 0;
    virtual const Traits& traits() const noexcept = 0;

    /// Claims room for one message to `to`, to be filled in place and committed. At most one reservation per
    /// destination at a time. An empty slot is back-pressure, not failure: poll(), then try again. To a lost
    /// node every reservation is refused.
    virtual SendSlot try_reserve(Node to, std::size_t bytes) noexcept = 0;

    /// Sends what try_reserve() gave room for. A small message that follows others back to back may be held back a
    /// little, to share a packet with them; flush(), poll() and arm() send it.
    virtual void commit(const SendSlot& slot) noexcept = 0;

    /// Gives a reservation up; nothing is sent.
    virtual void cancel(const SendSlot& slot) noexcept = 0;

    /// Hands out up to `messages_max` messages that have arrived; answers how many.
    virtual std::size_t poll(Handler handler, std::size_t messages_max) noexcept = 0;

    /// Says that this node is about to sleep. False: there is something to do already, do not sleep but poll().
    virtual bool arm() noexcept = 0;

    /// Sleeps, after arm() said true, until a message comes, a send that was refused may succeed, a node is lost,
    /// wake() is called or the deadline passes. May also return for no reason. Senders pay for a wake-up only now.
    virtual void sleep(Instant deadline) noexcept = 0;

    /// Ends the owner's sleep, or the next one if it is awake. From any thread.
    virtual void wake() noexcept = 0;

    /// True once it is known that `node` will never answer again.
    virtual bool lost(Node node) const noexcept = 0;

    /// Has nothing to do with `node` on this channel any more: what was sent to it may not arrive, and what it sends is
    /// not handed out. For whoever has another way to it; nothing, where ways do not fail.
    virtual void give_up(Node) noexcept {}

    /// What was committed to `to` so far.
    virtual Traffic sent(Node to) const noexcept = 0;
    /// What carries it there, by name: this channel's device, or one of the networks that it is made of.
    virtual std::string_view carrier(Node) const noexcept { return traits().device; }

    /// What the device counts, of the channel as a whole. Each device has counters of its own.
    virtual std::vector<Counter> counters() const { return {}; }
    /// What it counts about one peer; the same counters in the same order for each. A counter that the whole has too
    /// is there the sum over the peers.
    virtual std::vector<Counter> counters(Node) const { return {}; }

    /// For whoever sleeps on several channels at once, or while other threads use this one; null where the device
    /// cannot.
    virtual JointSleep* joint_sleep() noexcept { return nullptr; }

    /// For whoever has other ways to the same nodes; null where ways do not fail.
    virtual Ways* ways() noexcept { return nullptr; }

    /// The memory of other nodes, where the device reaches it by itself; otherwise null.
    virtual RemoteMemory* remote_memory() noexcept { return nullptr; }

    /// Copies one message and sends it. False is back-pressure. Small messages go this way faster than by a slot.
    virtual bool try_send(Node to, Bytes bytes) noexcept {
        const SendSlot slot = try_reserve(to, bytes.size());
        if (!slot) return false;
        copy_bytes(slot.bytes().data(), bytes);
        commit(slot);
        return true;
    }

    /// The same for a message in two pieces.
    virtual bool try_send(Node to, Bytes head, Bytes body) noexcept {
        const SendSlot slot = try_reserve(to, head.size() + body.size());
        if (!slot) return false;
        Pieces(head, body).copy_to(slot.bytes().data());
        commit(slot);
        return true;
    }

    /// The same for a message that is put together out of more pieces.
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

    /// Sends what was held back so that small messages share a packet. poll() and arm() do it too; for a node that
    /// sends and then computes.
    virtual void flush() noexcept {}
};

/// No limit for poll(): everything that has arrived by now. Bounded all the same: a device hands out at most what
/// its buffers hold.
inline constexpr std::size_t all_messages = std::numeric_limits<std::size_t>::max();

} // namespace kumi::pm
