#include "kumi/device/shmem/presence.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace kumi::device::shmem {
namespace {

struct flock lock_of(Node node) noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(node);
    lock.l_len = 1;
    return lock;
}

} // namespace

// ---- the lock

Result<LifeLock> LifeLock::take(const Segment& segment, Node self) {
    const base::Descriptor shared = segment.duplicate();
    // A description of its own: that of the segment's descriptor is shared by all nodes, and so would be its locks.
    const std::string path = fmt::format("/proc/self/fd/{}", shared.get());
    base::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file) return system_error(errno, fmt::format("opening shared memory once more ({})", path));
    struct flock lock = lock_of(self);
    if (::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) return system_error(errno, "locking a byte of shared memory");
    // Relaxed: the nodes meet after this, and look at the word only then.
    segment.mailbox(self).presence.store(Presence::locked, std::memory_order_relaxed);
    return LifeLock(std::move(file));
}

bool LifeLock::is_free(Node node) const noexcept {
    struct flock lock = lock_of(node);
    return ::fcntl(file_.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

// ---- pace

void LookPace::on_polls(Duration took) noexcept {
    constexpr Duration quick = Attendance::look_every / 16;
    if (took < quick / 2) polls_ = std::min(2 * polls_, polls_max);
    else if (took > quick) polls_ = std::max(polls_ / 4, 1u);
}

// ---- attendance

Attendance::Attendance(std::shared_ptr<Segment> segment, Node self, LifeLock lock, Instant time)
    : segment_(std::move(segment)), self_(self), lock_(std::move(lock)), process_(::getpid()),
      next_look_(lock_.is_held() && segment_->layout().nodes > 1 ? time + look_every : never) {}

bool Attendance::leave() noexcept {
    if (::getpid() != process_) return false;
    // Release: partner of the acquire in is_gone(): who sees that this node has left sees all that it sent.
    segment_->mailbox(self_).presence.store(Presence::left, std::memory_order_release);
    return true;
}

bool Attendance::is_gone(Node node) const noexcept {
    // Acquire: partner of the releases in leave() and in look_at().
    return segment_->mailbox(node).presence.load(std::memory_order_acquire) > Presence::locked;
}

Attendance::Sight Attendance::look_at(Node node) noexcept {
    std::atomic<Presence>& presence = segment_->mailbox(node).presence;
    // Relaxed: the exchange below checks it.
    if (presence.load(std::memory_order_relaxed) != Presence::locked) return Sight::not_to_be_seen;
    if (!lock_.is_free(node)) return Sight::alive;
    Presence known = Presence::locked;
    // Release: partner of the acquire in is_gone(). The kernel released the lock after the last store of the dead node,
    // and this node has seen the lock released; so who sees this word sees these stores. Relaxed on failure: the node
    // has left since, or another node was faster.
    const bool is_first = presence.compare_exchange_strong(known, Presence::died, std::memory_order_release,
                                                           std::memory_order_relaxed);
    return is_first ? Sight::just_died : Sight::not_to_be_seen;
}

bool Attendance::find_dead(Instant time) noexcept {
    const Node others = segment_->layout().nodes - 1;
    bool have_any_died = false;
    Sight sight = Sight::not_to_be_seen;
    // Dead nodes are passed over: if all but this one have died, one call finds them all.
    for (Node i = 1; i <= others && sight != Sight::alive; ++i) {
        sight = look_at((self_ + i) % (others + 1));
        have_any_died |= sight == Sight::just_died;
    }
    have_any_died |= look_at((self_ + 1 + round_) % (others + 1)) == Sight::just_died;
    round_ = (round_ + 1) % others;
    // Without a node that lives and holds its lock there will be nothing to see: nobody joins later.
    next_look_ = sight == Sight::alive ? time + look_every : never;
    return have_any_died;
}

} // namespace kumi::device::shmem
