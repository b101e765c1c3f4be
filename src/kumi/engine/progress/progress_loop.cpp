#include "kumi/engine/progress/progress_loop.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/sync/futex.hpp"
#include "kumi/base/sync/thread_number.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <utility>

namespace kumi::engine {
namespace {

using namespace std::chrono_literals;

/// The background's first nap after it found threads of the program at work.
constexpr Duration nap_min = 100us;
/// The longest while one and the same wait goes on; who ends such a wait wakes it.
constexpr Duration long_nap_max = 16ms;
constexpr Duration nap_max_usual = 1ms;
/// The background of a node naps for so long for each node that shares its core. Together the backgrounds then use
/// about a thirtieth of the core.
constexpr Duration nap_per_node = 128us;
/// The nap of a thread that waits for room and gets only a borrowed turn.
constexpr Duration borrower_nap = 1ms;
/// A thread that waits for room looks again after this time, whatever happens.
constexpr Duration room_sleep_max = 100ms;
/// How often a thread yields its core before it sleeps. The engine yields more often than a bare channel: in
/// collectives many nodes of a host work at once, and the message that a node waits for is sent after several of them
/// have had the core. Best for multicasts of 4 to 16 nodes on two cores.
constexpr unsigned yields_max = 16;
/// A channel that cannot be slept on jointly is looked at this often.
constexpr Duration look_after = 1ms;

} // namespace

ProgressLoop::ProgressLoop(pm::Channel& channel, Work& work, pm::Patience patience, const ProgressOptions& options)
    : channel_(channel), joint_(channel.joint_sleep()), work_(work), patience_(patience), options_(options),
      polls_per_clock_(channel.traits().polls_memory ? 64 : 8), lock_(options.stuck_after),
      nap_max_(std::max(nap_max_usual, nap_per_node * patience.nodes_per_core)) {
    patience_.yields_max = yields_max;
}

void ProgressLoop::start(Duration hold) {
    if (!options_.in_background) return;
    has_background_.store(true);
    background_ = std::thread([this, hold] {
        lock_.set_background();
        // Relaxed: read with the turn, by threads that ask about what this thread sent; it took the turn to send.
        background_number_.store(base::thread_number(), std::memory_order_relaxed);
        hold_background(hold);
        run_background();
    });
}

void ProgressLoop::stop() noexcept {
    if (!background_.joinable()) return;
    stopping_.store(true);
    naps_.kick();
    channel_.wake();
    background_.join();
}

void ProgressLoop::run_tasks() noexcept {
    lock_.leave();
    work_.run_tasks();
    lock_.take();
}

// ---- waiting

void ProgressLoop::end_observed_waits(const Turn& turn) noexcept {
    observed_waits_end_ = true;
    wake_waiters(turn);
}

bool ProgressLoop::sleep(Instant deadline) noexcept {
    end_abandoned_sleep();
    if (sleeper_ == Sleeper::none) return sleep_on_channel(Sleeper::thread, deadline);
    if (sleeper_ == Sleeper::background) {
        ask_for_sleep();
        if (patience_.spin_max == Duration{0}) lock_.yield();
        return false;
    }
    const std::uint32_t seen = events_.load();
    ++followers_;
    lock_.leave();
    base::futex_wait(events_, seen, deadline);
    lock_.take();
    --followers_;
    return true;
}

void ProgressLoop::wake_waiters() noexcept {
    if (is_thread_asleep()) channel_.wake();
    if (followers_ == 0) return;
    events_.fetch_add(1);
    base::futex_wake(events_);
}

bool ProgressLoop::sleep_on_channel(Sleeper who, Instant deadline) noexcept {
    const auto watched = begin_sleep(who);
    if (!watched) return false;
    lock_.leave();
    block(*watched, deadline);
    lock_.take();
    end_sleep();
    return true;
}

/// Nothing: there is something to do first.
std::optional<pm::Watched> ProgressLoop::begin_sleep(Sleeper who) noexcept {
    if (!channel_.arm()) return {};
    if (joint_ == nullptr) return pm::Watched{};
    sleeper_ = who;
    return joint_->begin_sleep();
}

/// Without the turn.
void ProgressLoop::block(const pm::Watched& watched, Instant deadline) noexcept {
    if (joint_ != nullptr) pm::block(watched, deadline);
    else channel_.sleep(std::min(deadline, now() + look_after)); // it has locks of its own
}

void ProgressLoop::end_sleep() noexcept {
    if (joint_ == nullptr) return;
    sleeper_ = Sleeper::none;
    is_asked_for_ = false;
    joint_->end_sleep();
    if (followers_ != 0) wake_waiters(); // one of them is to sleep here, if this thread does not again
}

void ProgressLoop::end_abandoned_sleep() noexcept {
    if (sleeper_ == Sleeper::abandoned) end_sleep();
}

/// A thread that is going to wait for long sleeps on the channel itself: it is to be woken by what it waits for, not by
/// another thread. So the background wakes up first, and while that takes the thread goes on looking.
void ProgressLoop::ask_for_sleep() noexcept {
    if (!std::exchange(is_asked_for_, true)) channel_.wake();
}

void ProgressLoop::wait_for_room(base::FunctionRef<bool(const Turn&)> until,
                                 base::FunctionRef<std::string()> describe) {
    // Relaxed: written before the engine was given to the program. The background itself may run functions.
    if (!has_background_.load(std::memory_order_relaxed) || lock_.is_background()) {
        serve_until(until, never, describe);
        return;
    }
    const RoomWait wait(*this);
    LongWait long_wait;
    pm::Idling idling(patience_, polls_per_clock_);
    for (bool has_slept = false;; lock_.pause()) {
        {
            const Turn turn(lock_);
            if (until(turn) || wait.is_to_end()) return;
            if (std::exchange(has_slept, false) && long_wait.is_to_show(now())) show(turn, long_wait, describe);
            if (!turn.is_inner() && work_.take_in(turn) != 0) {
                idling.reset();
                if (followers_ != 0 || is_thread_asleep()) wake_waiters();
                continue;
            }
        }
        const pm::Idling::Step step = idling.next();
        if (step == pm::Idling::Step::yield) pm::yield_core();
        if (step != pm::Idling::Step::sleep) continue;
        sleep_for_room();
        idling.reset();
        has_slept = true;
    }
}

// ---- telling people

std::string ProgressLoop::text_of_wait(const Turn& turn, std::string text) const {
    if (const std::string more = work_.under_way(turn); !more.empty()) text.append("; under way: ").append(more);
    return text;
}

void ProgressLoop::tell_late(const LongWait& wait, const std::string& text) {
    if (!options_.on_late || std::exchange(has_told_late_, true)) return;
    const auto seconds = std::chrono::duration<double>(now() - wait.since).count();
    options_.on_late(fmt::format("{}, for {:.1f} s", text, seconds));
}

/// The thread sleeps on the channel itself, so that room wakes this thread and no other one has to. What it takes in
/// for handlers calls the background (Work::take_in), which also comes by itself while threads wait for room.
void ProgressLoop::sleep_for_room() noexcept {
    const Instant end = now() + room_sleep_max;
    std::optional<pm::Watched> watched;
    std::optional<std::uint32_t> seen; // of events_
    {
        const Turn turn(lock_);
        if (!turn.is_inner()) {
            end_abandoned_sleep();
            if (sleeper_ == Sleeper::background) return ask_for_sleep();
            if (sleeper_ == Sleeper::none) {
                watched = begin_sleep(Sleeper::for_room);
                if (!watched) return;
            } else {
                ++followers_;
                seen = events_.load();
            }
        }
    }
    if (watched) block(*watched, end);
    else if (seen) base::futex_wait(events_, *seen, end);
    else return std::this_thread::sleep_for(borrower_nap); // the thread that runs a handler may be inside the channel
    const Turn turn(lock_);
    if (seen) {
        --followers_;
    } else if (!turn.is_inner()) {
        end_sleep();
    } else if (joint_ != nullptr) {
        sleeper_ = Sleeper::abandoned; // as above
        if (followers_ != 0) wake_waiters();
    }
}

// ---- the background

void ProgressLoop::on_duty() noexcept {
    if (!has_background_.load() || sleeper_ == Sleeper::background) return;
    duty_wanted_.store(true);
    naps_.kick();
}

void ProgressLoop::call(const Turn&) noexcept {
    if (sleeper_ == Sleeper::thread) return channel_.wake();
    if (sleeper_ != Sleeper::background) return on_duty();
    duty_wanted_.store(true); // otherwise it would leave the work to a thread that waits, which may only wait for room
    channel_.wake();
}

void ProgressLoop::call_soon(const Turn& turn) noexcept {
    // A thread that waits and is awake does it. A background that naps for nap_max_ at most looks soon by itself; the
    // end of a wait cuts a longer nap short. Relaxed: written with the turn.
    const Duration nap = naps_.length();
    const bool naps_shortly = nap > Duration{0} && nap <= nap_max_;
    const bool is_served = serving_.waits.load(std::memory_order_relaxed) != 0;
    if (sleeper_ == Sleeper::none && (is_served || naps_shortly)) return;
    call(turn);
}

void ProgressLoop::hold_background(Duration longest) noexcept {
    const Instant end = now() + longest;
    // The end of a wait kicks a background whose nap is that long.
    naps_.set_length(std::max(longest, Duration{0}));
    const auto has_visits = [&] { return serving_.visits.load() + room_.visits.load() != 0; };
    const auto is_called = [&] { return stopping_.load() || duty_wanted_.load(); };
    while (!is_called() && !has_visits() && !is_hold_over_.load() && now() < end) naps_.take(is_called);
    naps_.set_length({});
}

void ProgressLoop::end_hold() noexcept {
    is_hold_over_.store(true);
    naps_.kick();
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
    std::uint32_t visits_seen = serving_.visits.load();
    std::uint32_t room_visits_seen = room_.visits.load();
    bool has_rested = false; // while threads wait for room
    const auto is_called = [&] { return stopping_.load() || duty_wanted_.load(); };
    while (!stopping_.load()) {
        // Relaxed: a look too early or too late does no harm.
        const std::uint32_t visits = serving_.visits.load(std::memory_order_relaxed);
        const std::uint32_t room_visits = room_.visits.load(std::memory_order_relaxed);
        const bool is_served = serving_.waits.load(std::memory_order_relaxed) != 0 || visits != visits_seen;
        const bool is_rest = room_.waits.load(std::memory_order_relaxed) != 0 || room_visits != room_visits_seen;
        if (!duty_wanted_.exchange(false) && (is_served || (is_rest && !has_rested))) {
            const Duration longest = is_served && visits == visits_seen ? std::max(long_nap_max, nap_max_) : nap_max_;
            const Duration shortest = std::min(nap_min * patience_.nodes_per_core, nap_max_);
            const Duration next = is_served ? std::clamp(2 * naps_.length(), shortest, longest) : nap_max_;
            naps_.set_length(next);
            visits_seen = visits;
            has_rested = is_rest;
            naps_.take(is_called);
            continue;
        }
        visits_seen = visits;
        room_visits_seen = room_visits;
        has_rested = false;
        naps_.set_length({});
        const Turn turn(lock_, Turn::Whole{});
        while (!stopping_.load()) {
            const Work::Done worked = work_.work(turn);
            if (!worked.is_any()) break;
            after_work(turn, worked.has_tasks);
            if (has_waits()) break;
        }
        end_abandoned_sleep();
        // A thread that waits for room leaves losses, keep-alives and deadlines to the background.
        if (room_.waits.load(std::memory_order_relaxed) != 0 && sleeper_ != Sleeper::thread &&
            work_.prepare_sleep(turn, true))
            work_.end_sleep(turn, true);
        // Other threads that wait do what there is to do.
        if (has_waits() || sleeper_ != Sleeper::none || stopping_.load() || !work_.prepare_sleep(turn, true)) continue;
        sleep_on_channel(Sleeper::background, now() + work_.sleep_max());
        work_.end_sleep(turn, true);
    }
}

} // namespace kumi::engine
