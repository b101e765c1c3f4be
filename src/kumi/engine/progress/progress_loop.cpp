#include "kumi/engine/progress/progress_loop.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/sync/futex.hpp"

#include <algorithm>
#include <pthread.h>
#include <sched.h>
#include <utility>

namespace kumi::engine {
namespace {

using namespace std::chrono_literals;

/// The background's first nap after it found threads of the program at work, and the longest while they come and go.
/// Each costs some microseconds of a core.
constexpr Duration nap_min = 100us;
constexpr Duration nap_max = 1ms;
/// The longest while one and the same wait goes on; who ends such a wait wakes it.
constexpr Duration long_nap_max = 16ms;
/// A visit costs a microsecond, a shared lock its owner some nanoseconds each time.
constexpr unsigned worker_visits_max = 10'000;
/// A channel that cannot be slept on jointly is looked at this often.
constexpr Duration look_after = 1ms;

} // namespace

ProgressLoop::ProgressLoop(pm::Channel& channel, Work& work, pm::Patience patience, const ProgressOptions& options)
    : channel_(channel), joint_(channel.joint_sleep()), work_(work), patience_(patience), options_(options),
      polls_per_clock_(channel.traits().polls_memory ? 64 : 8) {
#if defined(__SANITIZE_THREAD__)
    can_own_ = false; // ThreadSanitizer does not follow the fence
#else
    can_own_ = base::register_for_heavy_fence();
#endif
    if (can_own_) return;
    lock_.disable();
    is_shared_ = true;
}

void ProgressLoop::start(Duration hold) {
    if (!options_.in_background) return;
    has_background_.store(true);
    background_ = std::thread([this, hold] {
        background_mark_.store(base::thread_mark());
        hold_background(hold);
        run_background();
    });
}

void ProgressLoop::stop() noexcept {
    if (!background_.joinable()) return;
    stopping_.store(true);
    kick();
    channel_.wake();
    background_.join();
}

// ---- the turn

namespace {

/// For a lock that is held for short times; then its holder may need this core.
template <class Done>
void spin_until(Done&& done) noexcept {
    constexpr unsigned spins_max = 64;
    for (unsigned spins = 0; !done(); ++spins) {
        if (spins < spins_max) pm::relax();
        else ::sched_yield();
    }
}

} // namespace

void ProgressLoop::take_turn_slowly() noexcept {
    const void* const me = base::thread_mark();
    const bool is_background = background_mark_.load(std::memory_order_relaxed) == me; // its own, if it is
    const bool is_worker = WaitObserver::of_this_thread() != nullptr;
    if (const void* nobody = nullptr; !is_background && !is_worker && can_own_ &&
                                      owner_.compare_exchange_strong(nobody, me) && lock_.try_lock_as_owner())
        return;
    const bool is_owner = owner_.load(std::memory_order_relaxed) == me;
    wanted_.fetch_add(1, std::memory_order_relaxed); // a hint
    unsigned looks = 0;
    Instant since{};
    const auto spin_or_warn = [&](auto&& done) {
        spin_until([&] {
            if (done()) return true;
            warn_if_stuck(++looks, since);
            return false;
        });
    };
    spin_or_warn([&] { return lock_.try_lock(); });
    // With the lock; the owner needs no more, and nobody does where all take it.
    if (!is_owner && !is_shared_) {
        lock_.begin_visit();
        spin_or_warn([&] { return lock_.is_owner_outside(); });
        // A second thread of the program, or functions that use the engine much.
        is_shared_ = is_worker ? ++worker_visits_ > worker_visits_max : !is_background;
    }
    wanted_.fetch_sub(1, std::memory_order_relaxed); // not before the owner is outside, which may spin inside
    is_visit_ = true;
}

void ProgressLoop::warn_if_stuck(unsigned looks, Instant& since) noexcept {
    constexpr unsigned looks_per_clock = 64;
    if (looks % looks_per_clock != 0) return;
    const Instant time = now();
    if (looks == looks_per_clock) since = time;
    if (time - since < options_.stuck_after || has_warned_.exchange(true)) return;
    base::log_warning("a call of Kumi has waited {} ms for a handler that another thread runs: if the handler waits "
                      "for a mutex, do not hold that mutex in calls of Kumi",
                      std::chrono::duration_cast<std::chrono::milliseconds>(time - since).count());
}

void ProgressLoop::leave_turn_slowly() noexcept {
    is_visit_ = false;
    if (!is_shared_) lock_.end_visit();
    lock_.unlock();
}

void ProgressLoop::let_others_now() noexcept {
    leave_turn();
    // Whoever wants it spins or yields: a moment is enough, unless all cores are busy.
    for (int i = 0; i < 32 && wanted_.load(std::memory_order_relaxed) != 0; ++i) pm::relax();
    if (wanted_.load(std::memory_order_relaxed) != 0) ::sched_yield();
    take_turn();
}

void ProgressLoop::yield() noexcept {
    leave_turn();
    ::sched_yield();
    take_turn();
}

void ProgressLoop::run_tasks() noexcept {
    leave_turn();
    work_.run_tasks();
    take_turn();
}

// ---- waiting

ProgressLoop::Wait::Wait(ProgressLoop& loop) noexcept : loop_(loop), observer_(WaitObserver::of_this_thread()) {
    if (observer_ != nullptr) observer_->begin_wait();
    // Relaxed, and not in one step: only who has the turn writes, and a look too early or too late does no harm.
    loop_.waits_.store(loop_.waits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    loop_.visits_.store(loop_.visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

ProgressLoop::Wait::~Wait() {
    loop_.waits_.store(loop_.waits_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    if (loop_.nap_ns_.load(std::memory_order_relaxed) > Duration(nap_max).count()) loop_.kick();
    if (observer_ != nullptr) observer_->end_wait();
}

void ProgressLoop::end_observed_waits(const Turn& turn) noexcept {
    observed_waits_end_ = true;
    wake_waiters(turn);
}

void ProgressLoop::sleep(Sleeper who, Instant deadline) noexcept {
    if (sleeper_ == Sleeper::none) return sleep_on_channel(who, deadline);
    if (sleeper_ == Sleeper::background) return ask_for_sleep();
    const std::uint32_t seen = events_.load();
    ++followers_;
    leave_turn();
    base::futex_wait(events_, seen, deadline);
    take_turn();
    --followers_;
}

void ProgressLoop::wake_waiters() noexcept {
    if (is_thread_asleep()) channel_.wake();
    if (followers_ == 0) return;
    events_.fetch_add(1);
    base::futex_wake(events_);
}

void ProgressLoop::sleep_on_channel(Sleeper who, Instant deadline) noexcept {
    if (!channel_.arm()) return;
    if (joint_ == nullptr) { // it has locks of its own
        leave_turn();
        channel_.sleep(std::min(deadline, now() + look_after));
        return take_turn();
    }
    const pm::Watched watched = joint_->begin_sleep();
    sleeper_ = who;
    leave_turn();
    pm::block(watched, deadline);
    take_turn();
    sleeper_ = Sleeper::none;
    is_asked_for_ = false;
    joint_->end_sleep();
    if (followers_ != 0) wake_waiters(); // one of them is to sleep here, if this thread does not again
}

/// A thread that is going to wait for long sleeps on the channel itself: it is to be woken by what it waits for, not by
/// another thread. So the background wakes up first, and while that takes the thread goes on looking.
void ProgressLoop::ask_for_sleep() noexcept {
    if (!std::exchange(is_asked_for_, true)) channel_.wake();
    if (patience_.spin_max == Duration{0}) yield();
}

void ProgressLoop::wait_for_room(base::FunctionRef<bool(const Turn&)> until) {
    // Relaxed: the first was written before the engine was given to the program, the second by this thread if it is the
    // background itself, which may run functions.
    if (!has_background_.load(std::memory_order_relaxed) ||
        background_mark_.load(std::memory_order_relaxed) == base::thread_mark()) {
        serve_until(until, never);
        return;
    }
    const Turn turn(*this);
    const Wait wait(*this);
    constexpr unsigned yields_max = 4; // as in serve_until()
    unsigned empty = 0;
    Instant idle_since{};
    while (!until(turn) && !wait.is_to_end()) {
        if (work_.take_in(turn) != 0) {
            empty = 0;
            if (followers_ != 0 || is_thread_asleep()) wake_waiters();
            let_others();
            continue;
        }
        let_others();
        if (patience_.spin_max > Duration{0}) {
            pm::relax();
            if (++empty % polls_per_clock_ != 0) continue;
            const Instant time = now();
            if (empty == polls_per_clock_) idle_since = time;
            if (time - idle_since < patience_.spin_max) {
                yield();
                continue;
            }
        } else if (++empty <= yields_max) {
            yield();
            continue;
        }
        sleep_for_room();
        empty = 0;
    }
}

/// The thread sleeps on the channel itself, so that room wakes this thread and no other one has to. What it takes in for
/// handlers calls the background (Work::take_in). After a long sleep the background looks for losses and deadlines.
void ProgressLoop::sleep_for_room() noexcept {
    constexpr Duration sleep_max = 100ms;
    const Instant end = now() + sleep_max;
    sleep(Sleeper::for_room, end);
    if (now() >= end) on_duty();
}

// ---- the background

void ProgressLoop::on_duty() noexcept {
    if (!has_background_.load() || sleeper_ == Sleeper::background) return;
    duty_wanted_.store(true);
    kick();
}

void ProgressLoop::call(const Turn&) noexcept {
    if (sleeper_ == Sleeper::thread || sleeper_ == Sleeper::background) channel_.wake();
    else on_duty();
}

void ProgressLoop::kick() noexcept {
    if (napping_.exchange(0) != 0) base::futex_wake(napping_);
}

void ProgressLoop::nap() noexcept {
    // Sequentially consistent, as in kick(): either it sees that we nap, or we see why it came.
    napping_.store(1);
    if (!stopping_.load() && !duty_wanted_.load())
        base::futex_wait(napping_, 1, now() + Duration(nap_ns_.load(std::memory_order_relaxed)));
    napping_.store(0);
}

void ProgressLoop::hold_background(Duration longest) noexcept {
    const Instant end = now() + longest;
    // The end of a wait kicks a background whose nap is that long.
    nap_ns_.store(std::max(longest, Duration{0}).count(), std::memory_order_relaxed);
    while (!stopping_.load() && !duty_wanted_.load() && visits_.load() == 0 && now() < end) nap();
    nap_ns_.store(0, std::memory_order_relaxed);
}

void ProgressLoop::run_background() noexcept {
    ::pthread_setname_np(::pthread_self(), "kumi-progress");
    if (options_.core) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET(*options_.core, &cores);
        if (::pthread_setaffinity_np(::pthread_self(), sizeof cores, &cores) != 0)
            base::log_warning("binding the background thread to core {} was refused; it runs anywhere", *options_.core);
    }
    std::uint32_t visits_seen = visits_.load();
    while (!stopping_.load()) {
        const std::uint32_t visits = visits_.load(std::memory_order_relaxed);
        const bool is_wanted = duty_wanted_.exchange(false);
        const bool somebody_waits = waits_.load(std::memory_order_relaxed) != 0;
        if (!is_wanted && (somebody_waits || visits != visits_seen)) {
            const Duration longest = visits == visits_seen ? Duration(long_nap_max) : Duration(nap_max);
            const Duration last(nap_ns_.load(std::memory_order_relaxed));
            nap_ns_.store(std::clamp(2 * last, Duration(nap_min), longest).count(), std::memory_order_relaxed);
            visits_seen = visits;
            nap();
            continue;
        }
        visits_seen = visits;
        nap_ns_.store(0, std::memory_order_relaxed);
        const Turn turn(*this);
        while (!stopping_.load() && work_.work(turn) != 0) {
            after_work(turn);
            if (waits_.load(std::memory_order_relaxed) != 0) break;
        }
        // A thread that waits for room leaves losses, keep-alives and deadlines to the background.
        if (sleeper_ == Sleeper::for_room && work_.prepare_sleep(turn, true)) work_.end_sleep(turn, true);
        // Other threads that wait do what there is to do.
        if (waits_.load(std::memory_order_relaxed) != 0 || sleeper_ != Sleeper::none || stopping_.load() ||
            !work_.prepare_sleep(turn, true))
            continue;
        sleep_on_channel(Sleeper::background, now() + work_.sleep_max());
        work_.end_sleep(turn, true);
    }
}

} // namespace kumi::engine
