#pragma once

// Which nodes of the host are still there.
//
// A node that closes its channel says so in its mailbox. A node that dies cannot. Therefore each node locks one byte of
// the shared file, at the offset of its number, and other nodes look whether that byte is still locked. The kernel
// releases the lock when the process ends, however it ends. The lock belongs to an open file description that the node
// makes for itself (an OFD lock). So nodes may be threads of one process, and processes of different namespaces.
//
// Invariants
//  - The word of a node goes forward only: here, locked, left or died. Only the node itself stores `left`.
//  - A node whose word says `locked` holds its lock for as long as it runs. So nobody is reported dead who lives.
//  - A process that was forked from a node has the lock, too. While it runs, the death of the node is not noticed.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/device/shmem/segment.hpp"

#include <cstdint>
#include <memory>
#include <sys/types.h>
#include <utility>

namespace kumi::device::shmem {

/// The lock by which other nodes know that a node lives. Empty: the node holds none, and its death is not noticed.
class LifeLock {
public:
    LifeLock() = default;
    /// Locks the byte of `self` and says so in the mailbox. Requires that the node's part has been reserved. To be
    /// called before the node meets the others: from then on they look at the lock.
    static Result<LifeLock> take(const Segment& segment, Node self);

    bool is_held() const noexcept { return static_cast<bool>(file_); }
    /// True if no process holds the lock of `node`, which is not this node. Requires that this lock is held.
    bool is_free(Node node) const noexcept;

private:
    explicit LifeLock(base::Descriptor file) noexcept : file_(std::move(file)) {}

    base::Descriptor file_;
};

/// How many polls there are between two looks at the clock: so many that the clock costs nothing, and so few that no
/// look is late. Pure.
class LookPace {
public:
    static constexpr std::uint32_t polls_max = 1024;

    std::uint32_t polls() const noexcept { return polls_; }
    /// The last polls() polls took this long.
    void on_polls(Duration took) noexcept;

private:
    std::uint32_t polls_ = 16;
};

/// What one node knows of the presence of the others.
class Attendance {
public:
    /// Each node looks for dead nodes this often, also while it sleeps. With the time that it takes to wake the others,
    /// all of them know of a death within half a second.
    static constexpr Duration look_every = std::chrono::milliseconds(300);

    Attendance(std::shared_ptr<Segment> segment, Node self, LifeLock lock, Instant time);

    /// Stores that this node has left. False in a process that was forked from the node: the node itself is still here.
    bool leave() noexcept;

    /// True if `node` has left or died. What it sent before is visible then.
    bool is_gone(Node node) const noexcept;

    /// When find_dead() is to be called next: `never` if no death could be noticed.
    Instant next_look() const noexcept { return next_look_; }
    /// Looks at the next node by number that lives, and at one more, another one each time. So each node is looked at
    /// by its predecessor and by others in turn, whatever the number of nodes. True: some have died, and their words
    /// say so now. The nodes that sleep are to be told.
    bool find_dead(Instant time) noexcept;

private:
    enum class Sight { alive, just_died, not_to_be_seen };
    Sight look_at(Node node) noexcept;

    std::shared_ptr<Segment> segment_;
    Node self_;
    LifeLock lock_;
    pid_t process_; // that opened the channel
    Node round_ = 0;
    Instant next_look_;
};

} // namespace kumi::device::shmem
