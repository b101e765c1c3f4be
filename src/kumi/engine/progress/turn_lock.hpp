#pragma once

// The turn: one thread at a time uses the channel and the state of the engine, and runs handlers.
//
// Owner and visitors. The lock belongs to the first thread of the program that comes, which takes it for a few
// nanoseconds. The background and the workers, which run functions, take it as visitors. A second thread of the program
// makes it an ordinary lock.
//
// Loans. A thread with the turn lends it while it runs code of the program: a handler, the condition of wait_until(), a
// continuation of a future. The state of the engine is in order then, because such code may itself call the engine. A
// thread that has waited for the turn for some microseconds borrows it, for one call. Thus a handler may wait for a
// mutex while the thread that holds the mutex sends. The borrower is as if inside the handler: it must neither run
// handlers nor wait. When the code of the program returns or calls the engine, the lender takes the turn back.
//
// Errands. Where several threads of the program use the engine, a thread need not wait for the turn if all it wants is
// that something be done with it: the thread leaves an errand, which the thread with the turn runs, before it lends the
// turn or gives it away at the latest. A thread that takes or borrows the turn, or takes it back, runs errands first:
// its own earlier ones, and those of other threads that it may know of.

#include "kumi/base/clock.hpp"
#include "kumi/base/sync/biased_lock.hpp"
#include "kumi/base/sync/errand_list.hpp"
#include "kumi/base/sync/thread_mark.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace kumi::engine {

class ProgressLoop;
class Turn;

/// Something to be done with the turn, by whichever thread has it: run() is called once, and then the errand is
/// deleted.
class Errand : public base::ErrandLink {
public:
    virtual ~Errand() = default;
    /// Must not wait, nor run code of the program.
    virtual void run(const Turn& turn) noexcept = 0;
};

class TurnLock {
public:
    /// A thread that waits for the turn for `stuck_after` warns.
    explicit TurnLock(Duration stuck_after) noexcept;
    TurnLock(const TurnLock&) = delete;
    TurnLock& operator=(const TurnLock&) = delete;
    ~TurnLock();

    /// How a thread came to the turn.
    enum class Hold : std::uint8_t {
        whole,          // no other thread had it
        again,          // the thread had it already
        reclaimed,      // the thread had lent it
        borrowed,       // of a thread that runs code of the program
        borrowed_again, // the thread had borrowed it already
    };
    /// For Turn. Inlined everywhere: each message passes here several times.
    [[gnu::always_inline]] Hold enter() noexcept {
        if (!is_held_here()) return take_or_borrow();
        if (!is_lent()) return Hold::again;
        reclaim();
        look_for_errands(); // which other threads left before code of the program, that this thread runs, knew of them
        return Hold::reclaimed;
    }
    [[gnu::always_inline]] void leave(Hold hold) noexcept {
        if (hold == Hold::whole) leave();
        else if (hold == Hold::reclaimed) lend_held();
        else if (hold >= Hold::borrowed) [[unlikely]] give_back(hold);
    }

    /// Requires that this thread neither has nor borrows the turn. Does not borrow.
    void take() noexcept {
        if (!try_take()) [[unlikely]] take_slowly(false);
    }
    /// For a thread that has it whole.
    void leave() noexcept {
        if (is_visit_) [[unlikely]] return leave_slowly();
        holder_.store(nullptr, std::memory_order_relaxed);
        lock_.unlock_as_owner();
    }
    /// This thread has the turn, or has lent it: it is inside a handler.
    bool is_held_here() const noexcept {
        // relaxed: only this thread writes its own mark
        return holder_.load(std::memory_order_relaxed) == base::thread_mark();
    }

    bool is_borrowed_here() const noexcept {
        return borrower_.load(std::memory_order_relaxed) == base::thread_mark(); // relaxed: as above
    }

    /// This thread runs code of the program until reclaim(). False: it does not have the turn, or has lent it already.
    bool lend() noexcept {
        if (!is_held_here() || is_lent()) return false;
        lend_held();
        return true;
    }
    /// For a thread that has the turn and has not lent it.
    [[gnu::always_inline]] void lend_held() noexcept {
        look_for_errands(); // code of the program may take long
        loan_.unlock_as_owner();
        if (!can_own_) [[unlikely]]
            loan_.unlock();
    }
    [[gnu::always_inline]] void reclaim() noexcept {
        if (!loan_.try_lock_as_owner()) [[unlikely]]
            reclaim_slowly();
    }

    /// Another thread has the turn and has not lent it, as it seems, and this thread may leave an errand.
    bool takes_errands() const noexcept {
        // Relaxed: true for ever, once it is. The others are hints.
        return is_shared_.load(std::memory_order_relaxed) && lock_.seems_taken() && !is_lent() && !is_held_here() &&
               !is_borrowed_here() && errands_left_.load(std::memory_order_relaxed) < errands_max;
    }
    /// Requires that takes_errands() was true. Errands of one thread are run in order, and before that thread has the
    /// turn again. A thread with the turn runs them before it lends the turn or gives it away.
    void leave_errand(std::unique_ptr<Errand> errand) noexcept;

    /// For a thread that has it whole: runs errands, and gives it to others for a moment if they wait for it.
    void let_others() noexcept {
        if (wanted_.load(std::memory_order_relaxed) != 0 || errands_.seems_to_have_any()) [[unlikely]] // hints
            let_others_now();
    }
    /// The same, and gives it away in any case.
    void yield() noexcept;
    /// Outside the turn: gives threads that wait for the turn a moment to take it.
    void pause() const noexcept;

    /// The calling thread is the background.
    void set_background() noexcept { background_.store(base::thread_mark()); }
    bool is_background() const noexcept {
        // relaxed: only the background writes its own mark
        return background_.load(std::memory_order_relaxed) == base::thread_mark();
    }

private:
    /// For the thread that has the turn: the owner of the loan is outside while it lends.
    bool is_lent() const noexcept { return loan_.seems_owner_outside(); }
    bool try_take() noexcept {
        const void* const me = base::thread_mark();
        // Relaxed: a thread always sees its own mark.
        if (owner_.load(std::memory_order_relaxed) != me || !lock_.try_lock_as_owner()) [[unlikely]] return false;
        holder_.store(me, std::memory_order_relaxed);
        return true;
    }
    Hold take_or_borrow() noexcept {
        if (try_take()) [[likely]] return Hold::whole;
        return take_slowly(true);
    }
    Hold take_slowly(bool may_borrow) noexcept;
    bool take_as_visitor(bool may_borrow) noexcept;
    template <class Done>
    bool spin_until(Done&& done, bool may_borrow) noexcept;
    void leave_slowly() noexcept;
    bool try_take_shared() noexcept;
    /// For a thread that has the turn and has not lent it.
    [[gnu::always_inline]] void look_for_errands() noexcept {
        if (errands_.seems_to_have_any()) [[unlikely]]
            run_errands(Hold::again);
    }
    void run_errands(Hold hold) noexcept;
    bool try_borrow() noexcept;
    void give_back(Hold hold) noexcept;
    void reclaim_slowly() noexcept;
    void let_others_now() noexcept;
    void warn_once(Duration waited) noexcept;

    Duration stuck_after_;
    bool can_own_ = false; // both locks
    base::BiasedLock<base::MachineMemory> lock_;
    /// Its owner is whichever thread has the turn, and is outside while it lends: several times for each message. Where
    /// it cannot own, it takes the lock as visitors do, and marks itself inside as well.
    base::BiasedLock<base::MachineMemory, base::Ordered::by_visitor> loan_;
    std::atomic<const void*> owner_{nullptr}; // of lock_: the first thread of the program that came
    std::atomic<const void*> background_{nullptr};
    std::atomic<const void*> holder_{nullptr};   // stays while the turn is lent
    std::atomic<const void*> borrower_{nullptr};
    std::atomic<unsigned> wanted_{0};
    std::atomic<bool> has_warned_{false};
    std::atomic<bool> is_shared_{false}; // all take it as visitors do, from now on; written with the turn
    base::ErrandList<base::MachineMemory> errands_;
    std::atomic<unsigned> errands_left_{0}; // and not run yet
    static constexpr unsigned errands_max = 64;

    // With the turn.
    bool is_visit_ = false; // the holder took the lock as visitors do
    unsigned worker_visits_ = 0;
};

/// The turn, for as long as this lives. A thread that has it may ask for it again. A function that may only be called
/// with the turn takes a Turn. Within serve_until() the turn is given to others for moments, between two calls of
/// `done` and Work.
class Turn {
public:
    [[gnu::always_inline]] explicit inline Turn(ProgressLoop& loop) noexcept;
    [[gnu::always_inline]] explicit Turn(TurnLock& lock) noexcept : lock_(lock), hold_(lock.enter()) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    [[gnu::always_inline]] ~Turn() { lock_.leave(hold_); }

    /// Some code of the program runs below this: nothing else of the program's may be run, and nothing may wait.
    bool is_inner() const noexcept { return hold_ != TurnLock::Hold::whole; }
    /// Another thread runs that code: this thread may wait when it has given the turn back.
    bool is_borrowed() const noexcept { return hold_ >= TurnLock::Hold::borrowed; }

private:
    friend class ProgressLoop;
    friend class TurnLock;
    friend class Lending;
    struct Whole {};
    /// For a thread that has it, or has borrowed it, already.
    Turn(TurnLock& lock, TurnLock::Hold again) noexcept : lock_(lock), hold_(again) {}
    /// Does not borrow, and is not for a thread that has the turn.
    Turn(TurnLock& lock, Whole) noexcept : lock_(lock), hold_(TurnLock::Hold::whole) { lock.take(); }

    TurnLock& lock_;
    TurnLock::Hold hold_;
};

/// While code of the program runs. Does nothing if the turn is borrowed.
class Lending {
public:
    [[gnu::always_inline]] explicit Lending(const Turn& turn) noexcept
        : lock_(turn.lock_), is_mine_(!turn.is_borrowed()) {
        if (is_mine_) [[likely]]
            lock_.lend_held();
    }
    Lending(const Lending&) = delete;
    Lending& operator=(const Lending&) = delete;
    [[gnu::always_inline]] ~Lending() {
        if (is_mine_) [[likely]]
            lock_.reclaim();
    }

private:
    TurnLock& lock_;
    bool is_mine_;
};

} // namespace kumi::engine
