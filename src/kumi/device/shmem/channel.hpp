#pragma once

// PM over shared memory. There is one LineRing for each pair of nodes and each direction. A node polls only the rings
// that its doorbell names, so idle peers cost nothing. A message that does not fit into a ring is put into a buffer of
// the sender, which the receiver reads in place; the ring carries its position.
//
// Nodes that leave or die are announced by a word of each doorbell that belongs to no writer. Departures wake sleepers
// as messages do. A node looks at that word once in many polls, and before it sleeps.

#include "kumi/base/data/range_set.hpp"
#include "kumi/device/shmem/buffers.hpp"
#include "kumi/device/shmem/presence.hpp"
#include "kumi/device/shmem/segment.hpp"
#include "kumi/pm/channel.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace kumi::device::shmem {

class ShmemChannel final : public pm::Channel,
                           private pm::BufferOwner,
                           private pm::RemoteMemory,
                           private pm::JointSleep {
public:
    /// The part of `self` in the segment must have been reserved. With a waker, nodes sleep on this channel and others.
    /// Without a lock the death of this node is not noticed, and this node notices no death.
    ShmemChannel(std::shared_ptr<Segment> segment, Node self, pm::Waker* waker = nullptr, LifeLock lock = {});
    /// Tells the other nodes that this node has left.
    ~ShmemChannel() override;

    Node self() const noexcept override { return self_; }
    Node nodes() const noexcept override { return segment_->layout().nodes; }
    const pm::Traits& traits() const noexcept override { return traits_; }

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override;
    void commit(const pm::SendSlot& slot) noexcept override;
    using pm::Channel::try_send;
    bool try_send(Node to, Bytes bytes) noexcept override;
    bool try_send(Node to, Bytes head, Bytes body) noexcept override;
    void cancel(const pm::SendSlot& slot) noexcept override;
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override;
    bool arm() noexcept override;
    void sleep(Instant deadline) noexcept override;
    void wake() noexcept override;
    /// True once `node` has left or died, and all messages that it sent have been handed out.
    bool lost(Node node) const noexcept override { return outgoing_[node].is_closed; }
    pm::Traffic sent(Node to) const noexcept override { return outgoing_[to].sent; }
    std::vector<pm::Counter> counters() const override;
    std::vector<pm::Counter> counters(Node peer) const override;
    pm::JointSleep* joint_sleep() noexcept override { return this; }
    pm::RemoteMemory* remote_memory() noexcept override { return this; }

    /// How many rings the next poll() will check.
    std::size_t rings_watched() const noexcept { return watched_.size(); }

private:
    using Writer = base::RingWriter<Memory, base::RingLine>;
    using Reader = base::RingReader<Memory, base::RingLine>;
    using Button = base::DoorbellButton<Memory>;

    /// State for sending to one node.
    struct alignas(64) Outgoing { // so its size is a power of two, and try_send() finds its place by a shift
        Writer ring;
        Button bell;
        pm::Traffic sent;
        std::uint32_t lines_refused = 0; // not zero: the last try_reserve() found no room for so many lines
        bool is_closed = false;          // the node is lost
    };

    /// A ring that poll() checks.
    struct Watched {
        Reader* reader;
        Node node;
        std::uint32_t window = 1; // most messages to take at the next poll
        bool active = true; // has had a message since the last forget_quiet_rings()
    };

    // RemoteMemory
    std::size_t window_bytes() const noexcept override { return segment_->layout().window_bytes; }
    Result<MutableBytes> expose(std::uint64_t offset, std::size_t bytes) override;
    void conceal(std::uint64_t offset, std::size_t bytes) noexcept override;
    Result<void> reach(Node node) override;
    std::byte* direct(Node node, std::uint64_t offset) noexcept override;

    // JointSleep
    pm::Watched begin_sleep() noexcept override;
    void end_sleep() noexcept override;

    // BufferOwner: a kept message was released.
    void release(std::uint64_t token) noexcept override;

    void count_and_ring(Node to, std::size_t bytes) noexcept;
    bool try_send_inline(Node to, const Pieces& content, std::uint32_t lines) noexcept;
    pm::SendSlot refuse(Node to, std::uint32_t lines) noexcept;
    pm::SendSlot try_reserve_buffer(Node to, std::size_t bytes) noexcept;
    void watch_rings(std::size_t word, std::uint64_t bits) noexcept;
    void forget_quiet_rings() noexcept;
    std::size_t drain(const Watched& from, pm::Handler handler, std::size_t messages_max) noexcept;
    void deliver_buffer(Node from, const std::byte* record, pm::Handler handler) noexcept;
    void stop_waiting_for_room() noexcept;
    bool something_to_do() noexcept;
    void after_many_polls() noexcept;
    void look_for_departures(Instant time) noexcept;
    void announce_departures() noexcept;
    void wake_node(Node node) noexcept;
    void rouse(Node node) noexcept;

    std::shared_ptr<Segment> segment_;
    Node self_;
    pm::Waker* waker_;
    bool polling_ = false;
    bool is_slept_on_ = false; // from begin_sleep() to end_sleep()
    bool has_lost_ = false;    // a node has been lost since arm() last said so
    std::uint32_t inline_bytes_max_;
    std::vector<Outgoing> outgoing_; // by destination
    std::vector<Reader> incoming_;   // by source
    base::DoorbellKeeper<Memory> bell_;
    std::vector<Watched> watched_;            // the rings that poll() checks, in no order
    std::vector<std::uint64_t> watched_bits_; // the same as bits, as in the doorbell
    std::uint32_t polls_ = 0;                 // since the last forget_quiet_rings()
    LookPace pace_;
    std::uint32_t polls_of_look_ = pace_.polls(); // after so many, after_many_polls() is due
    Instant paced_{};                             // when the clock was last looked at by a poll
    Attendance attendance_;
    BufferHeap buffers_;
    std::vector<Node> refused_;        // destinations whose lines_refused is not zero
    std::size_t buffer_refused_ = 0;   // not zero: the last try_reserve() found no buffer of this size
    std::atomic<bool> woken_{false};   // wake() was called
    base::RangeSet exposed_;           // ranges of this node's window that are exposed
    std::uint64_t sends_refused_ = 0;
    std::uint64_t sleeps_ = 0;
    pm::Traits traits_;
};

} // namespace kumi::device::shmem
