#include "kumi/engine/progress/turn_lock.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/log.hpp"
#include "kumi/engine/progress/wait_observer.hpp"
#include "kumi/pm/wait.hpp"

#include <sched.h>
#include <utility>

namespace kumi::engine {
namespace {

using namespace std::chrono_literals;

/// A visit costs a microsecond, a shared lock its owner some nanoseconds each time.
constexpr unsigned worker_visits_max = 10'000;
/// Most handlers end earlier, and a loan costs some microseconds.
constexpr Duration borrow_after = 20us;
/// Then the holder may need this core.
constexpr unsigned spins_max = 64;

} // namespace

TurnLock::TurnLock(Duration stuck_after) noexcept : stuck_after_(stuck_after) {
#if defined(__SANITIZE_THREAD__)
    can_own_ = false; // ThreadSanitizer does not follow the fence
#else
    can_own_ = base::register_for_heavy_fence();
#endif
    if (!can_own_) {
        lock_.disable();
        loan_.disable();
        is_shared_.store(true, std::memory_order_relaxed); // no other thread knows this object
    }
    reclaim(); // nothing is lent
}

// ---- taking

/// Waits for a lock that is held for short times. False: the turn was borrowed instead.
template <class Done>
bool TurnLock::spin_until(Done&& done, bool may_borrow) noexcept {
    Instant since{};
    for (unsigned looks = 1; !done(); ++looks) {
        if (looks <= spins_max) pm::relax();
        else ::sched_yield();
        if (looks % spins_max != 0) continue;
        const Instant time = now();
        if (looks == spins_max) since = time;
        if (may_borrow && time - since >= borrow_after && try_borrow()) return false;
        if (time - since >= stuck_after_) warn_once(time - since);
    }
    return true;
}

TurnLock::Hold TurnLock::take_slowly(bool may_borrow) noexcept {
    const void* const me = base::thread_mark();
    if (is_borrowed_here()) {
        KUMI_ASSERT(may_borrow);
        run_errands(Hold::borrowed_again);
        return Hold::borrowed_again;
    }
    const bool is_worker = WaitObserver::of_this_thread() != nullptr;
    if (const void* nobody = nullptr; !is_background() && !is_worker && can_own_ &&
                                      owner_.compare_exchange_strong(nobody, me) && lock_.try_lock_as_owner()) {
        holder_.store(me, std::memory_order_relaxed);
        return Hold::whole;
    }
    wanted_.fetch_add(1, std::memory_order_relaxed); // a hint
    const bool is_whole = take_as_visitor(may_borrow);
    wanted_.fetch_sub(1, std::memory_order_relaxed); // not before the owner is outside, which may spin inside
    if (!is_whole) {
        run_errands(Hold::borrowed_again); // this thread's own among them: they were left before
        return Hold::borrowed;
    }
    is_visit_ = true;
    holder_.store(me, std::memory_order_relaxed);
    run_errands(Hold::again); // as above
    return Hold::whole;
}

/// False: the turn was borrowed instead.
bool TurnLock::take_as_visitor(bool may_borrow) noexcept {
    if (!spin_until([&] { return lock_.try_lock(); }, may_borrow)) return false;
    // With the lock; the owner needs no more, and nobody does where all take it.
    if (is_shared_.load(std::memory_order_relaxed) || owner_.load(std::memory_order_relaxed) == base::thread_mark())
        return true;
    lock_.begin_visit();
    if (!spin_until([&] { return lock_.is_owner_outside(); }, may_borrow)) {
        lock_.end_visit();
        lock_.unlock();
        return false;
    }
    // A second thread of the program, or functions that use the engine much.
    const bool is_worker = WaitObserver::of_this_thread() != nullptr;
    is_shared_.store(is_worker ? ++worker_visits_ > worker_visits_max : !is_background(), std::memory_order_relaxed);
    return true;
}

void TurnLock::leave_slowly() noexcept {
    const bool is_shared = is_shared_.load(std::memory_order_relaxed); // stays as it is: written with the turn
    do {
        run_errands(Hold::again);
        is_visit_ = false;
        holder_.store(nullptr, std::memory_order_relaxed);
        if (!is_shared) lock_.end_visit();
        lock_.unlock(std::memory_order_seq_cst); // partner: try_lock() in try_take_shared(), of leave_errand()
    } while (is_shared && errands_.has_any() && try_take_shared());
}

// ---- errands

/// Where all take it as visitors do.
bool TurnLock::try_take_shared() noexcept {
    if (!lock_.try_lock(std::memory_order_seq_cst)) return false; // partner: unlock() in leave_slowly()
    is_visit_ = true;
    holder_.store(base::thread_mark(), std::memory_order_relaxed);
    return true;
}

void TurnLock::leave_errand(std::unique_ptr<Errand> errand) noexcept {
    errands_left_.fetch_add(1, std::memory_order_relaxed); // a bound that may be passed by as many as there are threads
    errands_.add(*errand.release());
    // The thread that had the turn may have looked for errands before this one was there, and given the turn away; or
    // has lent it now.
    if (try_take_shared()) return leave();
    if (!try_borrow()) return;
    run_errands(Hold::borrowed_again);
    give_back(Hold::borrowed);
}

void TurnLock::run_errands(Hold hold) noexcept {
    if (!errands_.seems_to_have_any()) [[likely]]
        return; // this thread sees its own, and leave_slowly() looks again
    const Turn turn(*this, hold);
    for (base::ErrandLink* next = errands_.take_all(); next != nullptr;) {
        const std::unique_ptr<Errand> errand(static_cast<Errand*>(std::exchange(next, next->next)));
        errand->run(turn);
        errands_left_.fetch_sub(1, std::memory_order_relaxed);
    }
}

TurnLock::~TurnLock() { run_errands(Hold::again); } // none, unless a thread uses an engine that has ended

void TurnLock::warn_once(Duration waited) noexcept {
    if (has_warned_.exchange(true)) return;
    base::log_warning(
        "a call of Kumi has waited {} ms for another thread, which may run a handler: if the handler waits "
        "for a mutex, do not hold that mutex in calls of Kumi that wait",
        std::chrono::duration_cast<std::chrono::milliseconds>(waited).count());
}

// ---- loans

bool TurnLock::try_borrow() noexcept {
    // The first look spares the fence where nothing is lent.
    if (!loan_.seems_owner_outside() || !loan_.try_lock()) return false;
    if (can_own_) {
        loan_.begin_visit();
        if (!loan_.is_owner_outside()) {
            loan_.end_visit();
            loan_.unlock();
            return false;
        }
    }
    borrower_.store(base::thread_mark(), std::memory_order_relaxed);
    return true;
}

void TurnLock::give_back(Hold hold) noexcept {
    if (hold == Hold::borrowed_again) return;
    borrower_.store(nullptr, std::memory_order_relaxed);
    if (can_own_) loan_.end_visit();
    loan_.unlock();
}

void TurnLock::reclaim_slowly() noexcept {
    for (unsigned looks = 1; !(can_own_ ? loan_.try_lock_as_owner() : loan_.try_lock()); ++looks) {
        if (looks <= spins_max) pm::relax();
        else ::sched_yield();
    }
    if (!can_own_) loan_.mark_inside();
}

// ---- letting others

void TurnLock::pause() const noexcept {
    // Threads that want it spin or yield: a moment is enough, unless all cores are busy.
    for (int i = 0; i < 32 && wanted_.load(std::memory_order_relaxed) != 0; ++i) pm::relax();
    if (wanted_.load(std::memory_order_relaxed) != 0) ::sched_yield();
}

void TurnLock::let_others_now() noexcept {
    run_errands(Hold::again);
    if (wanted_.load(std::memory_order_relaxed) == 0) return; // a hint
    leave();
    pause();
    take();
}

void TurnLock::yield() noexcept {
    leave();
    ::sched_yield();
    take();
}

} // namespace kumi::engine
