#pragma once

// Which thread makes progress: each thread that waits, and a thread of its own, the background, while none does.
//
// A thread that waits keeps the turn (turn_lock.hpp) while it spins, and lets others in when they ask. Asleep, nobody
// has it: the sleeper has armed the channel, and others may send and poll meanwhile.
//
// The sleeper. One thread at a time sleeps on the channel; threads of the program before the background. Further
// threads that wait sleep on a word of ours, and whoever handled something wakes them to look again.
//
// The background. While threads of the program come and wait, it naps, for longer each time, up to nap_max_: they do
// what there is to do, and it would only be in their way. When nobody has come since the last nap, it is on duty: it
// handles what is there, arms the channel and sleeps until something comes. A wait that begins while it is on duty
// takes nothing from it; the first message wakes it, it sees that somebody waits, and naps. So a node that computes is
// answered at once, one that has just left a wait after two naps at the latest, and on_duty() calls it earlier. Threads
// that wait for room run no handlers: while there are only such, the background works after each nap.

#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/base/system/shown_wait.hpp"
#include "kumi/engine/progress/naps.hpp"
#include "kumi/engine/progress/turn_lock.hpp"
#include "kumi/engine/progress/wait_observer.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/wait.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

namespace kumi::engine {

/// What there is to do.
class Work {
public:
    struct Done {
        std::size_t count = 0;  // of what was handled or sent
        bool has_tasks = false; // run_tasks() is to be called
        bool is_any() const noexcept { return count != 0 || has_tasks; }
    };
    /// Handles what has arrived and sends what waits.
    virtual Done work(const Turn& turn) noexcept = 0;
    /// The same for a thread that must not run anything of the program's: that is kept for work() by other threads.
    /// Answers how much was done.
    virtual std::size_t take_in(const Turn& turn) noexcept { return work(turn).count; }
    /// Before somebody sleeps; false: there is something to do first, and end_sleep() is not called.
    virtual bool prepare_sleep(const Turn& turn, bool is_background) noexcept = 0;
    virtual void end_sleep(const Turn& turn, bool is_background) noexcept = 0;
    /// Nobody sleeps for longer, without another look.
    virtual Duration sleep_max() const noexcept = 0;
    /// Without the turn: what may itself wait. True if there was something.
    virtual bool run_tasks() noexcept = 0;
    /// What this node has begun and waits for, for people: "2 requests that node 1 on a has not handled"; or nothing.
    virtual std::string under_way(const Turn&) const { return {}; }

protected:
    ~Work() = default;
};

struct ProgressOptions {
    bool in_background = true;
    std::optional<unsigned> core; // for the background thread
    unsigned workers = 4;         // functions that run at once, where there is a background
    /// A thread that waits so long for the turn warns: a handler may wait for a mutex that the thread holds.
    Duration stuck_after = std::chrono::seconds(5);
    /// A deadline has passed in a call that waited for a second or more: told what it waited for. With the turn.
    std::function<void(std::string_view)> on_late;
};

class ProgressLoop {
public:
    ProgressLoop(pm::Channel& channel, Work& work, pm::Patience patience, const ProgressOptions& options);
    ProgressLoop(const ProgressLoop&) = delete;
    ProgressLoop& operator=(const ProgressLoop&) = delete;
    ~ProgressLoop() { stop(); }

    /// Starts the background thread. It does nothing before a thread of the program waits or calls it, for `hold` at
    /// most.
    void start(Duration hold = {});
    /// Ends the background thread.
    void stop() noexcept;
    bool has_background() const noexcept { return has_background_.load(); }
    /// base::thread_number() of the background thread; 0: it has never had the turn.
    std::uint32_t background_number(const Turn&) const noexcept {
        return background_number_.load(std::memory_order_relaxed); // the turn orders it after the store
    }
    unsigned workers() const noexcept { return options_.workers; }
    Duration stuck_after() const noexcept { return options_.stuck_after; }
    /// From now on threads with an observer (workers) do not wait any more: their waits end as if their deadline had
    /// come. For the end of the engine.
    void end_observed_waits(const Turn&) noexcept;

    /// From now on ProgressOptions::on_late is not called: deadlines are not the program's.
    void end_late_reports(const Turn&) noexcept { has_told_late_ = true; }

    TurnLock& turn_lock() noexcept { return lock_; }
    /// This thread has the turn: it is inside a handler, or inside a call for which it has borrowed the turn.
    bool has_turn() const noexcept { return lock_.is_held_here() || lock_.is_borrowed_here(); }

    /// Makes progress until `until()` or `until(turn)`, which is looked at with the turn; false when the deadline came
    /// first. `describe()` says what is waited for, for people: it is asked, with the turn, when that takes long. Not
    /// for a thread that has the turn.
    template <class Until, class Describe = std::string (*)()>
    bool serve_until(Until&& until, Instant deadline, const Describe& describe = describe_nothing) {
        const Turn turn(lock_, Turn::Whole{});
        const auto done = [&] {
            if constexpr (std::is_invocable_v<Until&, const Turn&>) return until(turn);
            else return until();
        };
        // A call that need not wait does no work. It must not count as a visit, or the background would leave the work
        // to a thread that makes one such call after the other.
        if (done()) {
            if (naps_.length() > nap_max_) [[unlikely]]
                end_hold();
            return true;
        }
        const Wait wait(*this, turn, serving_);
        LongWait long_wait;
        pm::Idling idling(patience_, polls_per_clock_);
        do {
            if (const Work::Done worked = work_.work(turn); worked.is_any()) {
                idling.reset();
                after_work(turn, worked.has_tasks);
                continue;
            }
            lock_.let_others();
            const pm::Idling::Step step = idling.next();
            if (step == pm::Idling::Step::look) continue;
            if (idling.time() >= deadline || wait.is_to_end()) [[unlikely]] {
                if (done()) return true;
                if (idling.time() >= deadline && long_wait.is_late(idling.time())) tell_late(turn, long_wait, describe);
                return false;
            }
            if (step == pm::Idling::Step::yield) {
                lock_.yield();
                continue;
            }
            idling.reset();
            if (const PreparedSleep prepared(work_, turn); prepared && !done()) {
                if (long_wait.is_to_show(idling.time())) show(turn, long_wait, describe);
                if (sleep(std::min(deadline, idling.time() + work_.sleep_max()))) idling.end_sleep();
            }
        } while (!done());
        return true;
    }

    /// Waits until `until(turn)`, for a thread that sends. Where there is a background thread, this thread runs nothing
    /// of the program's meanwhile. `describe()` as above. Not for a thread that has the turn.
    void wait_for_room(base::FunctionRef<bool(const Turn&)> until,
                       base::FunctionRef<std::string()> describe = describe_nothing);

    /// A thread looks whether something has come, and will look again: like one that has just waited, until it stops.
    void note_visit(const Turn&) noexcept {
        // Relaxed: as in Wait.
        serving_.visits.store(serving_.visits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (naps_.length() > nap_max_) [[unlikely]]
            naps_.kick();
    }
    /// Something has happened that threads which wait may wait for.
    void wake_waiters(const Turn&) noexcept { wake_waiters(); }
    /// Something goes on that needs the background soon, though its thread has waited lately.
    void on_duty(const Turn&) noexcept { on_duty(); }
    /// Wakes the thread that sleeps on the channel, or calls the background, for work that no message announces.
    void call(const Turn&) noexcept;
    /// Like call(), but leaves the work to a thread that waits and is awake, and does not wake a background that comes
    /// by itself after two short naps at the latest.
    void call_soon(const Turn& turn) noexcept;

private:
    static std::string describe_nothing() { return "waiting"; }
    void wake_waiters() noexcept;
    void on_duty() noexcept;
    enum class Sleeper {
        none,
        thread,
        for_room,  // a thread that waits for room, and does not do what there is to do
        abandoned, // such a thread went on with a borrowed turn, which cannot end the channel's sleep
        background,
    };
    /// Written with the turn; the background looks at them without.
    struct Waits {
        std::atomic<unsigned> waits{0};       // threads of the program that wait
        std::atomic<std::uint32_t> visits{0}; // waits that have begun
    };
    bool has_waits() const noexcept {
        // Relaxed: written with the turn, or a hint.
        return serving_.waits.load(std::memory_order_relaxed) + room_.waits.load(std::memory_order_relaxed) != 0;
    }
    /// While a thread of the program waits. Begins and ends with the turn.
    class Wait {
    public:
        [[gnu::always_inline]] Wait(ProgressLoop& loop, const Turn&, Waits& counts) noexcept
            : loop_(loop), counts_(counts), observer_(WaitObserver::of_this_thread()) {
            if (observer_ != nullptr) [[unlikely]]
                observer_->begin_wait();
            // Relaxed, and not in one step: only a thread with the turn writes, and a look too early does no harm.
            counts_.waits.store(counts_.waits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            counts_.visits.store(counts_.visits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        }
        Wait(const Wait&) = delete;
        Wait& operator=(const Wait&) = delete;
        [[gnu::always_inline]] ~Wait() {
            counts_.waits.store(counts_.waits.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
            if (loop_.naps_.length() > loop_.nap_max_) [[unlikely]]
                loop_.naps_.kick();
            if (observer_ != nullptr) [[unlikely]]
                observer_->end_wait();
        }
        bool is_to_end() const noexcept { return observer_ != nullptr && loop_.observed_waits_end_; }

    private:
        ProgressLoop& loop_;
        Waits& counts_;
        WaitObserver* observer_;
    };
    /// While a thread waits for room, which takes the turn only for moments.
    class RoomWait {
    public:
        explicit RoomWait(ProgressLoop& loop) noexcept : lock_(loop.lock_) {
            const Turn turn(lock_);
            wait_.emplace(loop, turn, loop.room_);
        }
        RoomWait(const RoomWait&) = delete;
        RoomWait& operator=(const RoomWait&) = delete;
        ~RoomWait() {
            const Turn turn(lock_);
            wait_.reset();
        }
        bool is_to_end() const noexcept { return wait_->is_to_end(); }

    private:
        TurnLock& lock_;
        std::optional<Wait> wait_;
    };
    /// A wait that lasts: shown to people who ask, and renewed as it goes on.
    class LongWait {
    public:
        /// Asked before each sleep. A wait that ends before its first sleep is never shown.
        bool is_to_show(Instant time) noexcept {
            constexpr Duration every = std::chrono::milliseconds(100);
            if (since == Instant{}) since = shown_at = time;
            if (time - shown_at < every) return false;
            shown_at = time;
            return true;
        }
        /// At a deadline. Programs that look again and again, with short deadlines, are not late.
        bool is_late(Instant time) const noexcept {
            return since != Instant{} && time - since >= std::chrono::seconds(1);
        }

        Instant since{};
        Instant shown_at{};
        base::ShownWait shown;
    };
    template <class Describe>
    [[gnu::noinline]] void show(const Turn& turn, LongWait& wait, const Describe& describe) noexcept {
        try {
            wait.shown.show(wait.since, text_of_wait(turn, describe()));
        } catch (const std::bad_alloc&) { // shown some other time
        }
    }
    template <class Describe>
    [[gnu::noinline]] void tell_late(const Turn& turn, const LongWait& wait, const Describe& describe) noexcept {
        try {
            tell_late(wait, text_of_wait(turn, describe()));
        } catch (const std::bad_alloc&) { // the deadline passes all the same
        }
    }
    void tell_late(const LongWait& wait, const std::string& text);
    std::string text_of_wait(const Turn& turn, std::string text) const;

    /// From prepare_sleep() to end_sleep(); `done` may throw in between.
    class PreparedSleep {
    public:
        PreparedSleep(Work& work, const Turn& turn) noexcept
            : work_(work), turn_(turn), is_prepared_(work.prepare_sleep(turn, false)) {}
        ~PreparedSleep() {
            if (is_prepared_) work_.end_sleep(turn_, false);
        }
        explicit operator bool() const noexcept { return is_prepared_; }

    private:
        Work& work_;
        const Turn& turn_;
        bool is_prepared_;
    };

    void after_work(const Turn& turn, bool has_tasks) noexcept {
        if (followers_ != 0 || is_thread_asleep()) [[unlikely]] wake_waiters(turn);
        if (has_tasks) [[unlikely]]
            run_tasks();
        lock_.let_others();
    }
    void run_tasks() noexcept;
    /// A thread of the program sleeps on the channel.
    bool is_thread_asleep() const noexcept { return sleeper_ == Sleeper::thread || sleeper_ == Sleeper::for_room; }
    /// False: there is something to do first.
    bool sleep(Instant deadline) noexcept;
    bool sleep_on_channel(Sleeper who, Instant deadline) noexcept;
    void sleep_for_room() noexcept;
    std::optional<pm::Watched> begin_sleep(Sleeper who) noexcept;
    void block(const pm::Watched& watched, Instant deadline) noexcept;
    void end_sleep() noexcept;
    void end_abandoned_sleep() noexcept;
    void ask_for_sleep() noexcept;
    void hold_background(Duration longest) noexcept;
    void end_hold() noexcept;
    void run_background() noexcept;

    pm::Channel& channel_;
    pm::JointSleep* joint_;
    Work& work_;
    pm::Patience patience_;
    ProgressOptions options_;
    unsigned polls_per_clock_; // reading the clock costs more than an empty poll of memory
    TurnLock lock_;

    // With the turn.
    bool observed_waits_end_ = false;
    bool has_told_late_ = false;
    Sleeper sleeper_ = Sleeper::none;
    bool is_asked_for_ = false; // the background's sleep, by a thread
    unsigned followers_ = 0;    // threads that sleep on events_
    std::atomic<std::uint32_t> events_{0};

    Waits serving_; // threads that do what there is to do
    Waits room_;    // threads that wait for room
    std::atomic<bool> duty_wanted_{false};
    std::atomic<bool> is_hold_over_{false}; // at the start; a thread of the program has made a call that may wait
    Naps naps_; // of the background
    /// The longest nap while threads of the program come and go. A nap costs some microseconds, so naps are longer
    /// where the backgrounds of many nodes share a core.
    Duration nap_max_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> has_background_{false};
    std::atomic<std::uint32_t> background_number_{0};
    std::thread background_;
};

inline Turn::Turn(ProgressLoop& loop) noexcept : Turn(loop.turn_lock()) {}

} // namespace kumi::engine
