#pragma once

// Runs a few threads of test code in every order, and with every value a weak memory may show them.
//
// Each atomic keeps all its writes, oldest first. Each thread has a view: per atomic, the newest write it knows of.
// A load may return any write not older than that, so weak memory becomes one more choice, like scheduling. A release
// store carries its thread's view along; an acquire load that reads it joins that view. Views also carry vector
// clocks, which are happens-before: what Plain data is checked against. Every choice goes on a stack, and running the
// scenario again with the last choice changed visits them all, depth first. Sleep sets skip orders that only swap
// independent operations.
//
// The model is C++20's with three cuts: a load never reads from a later store (no load buffering); a store becomes the
// newest write of its atomic (so litmus 2+2W, two threads storing to the same two atomics, shows no weak outcome); and
// the order of seq_cst operations agrees with happens-before. Else seq_cst is as weak as in C++20: an access orders
// only its own atomic against other seq_cst accesses and fences; it is no fence for the accesses around it. Loads of
// one thread happen in program order: where a load must not be overtaken by a later one of another atomic, as Arm
// allows even for a seq_cst one, the order has to be argued, not explored.

#include "model/fiber.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::model {

inline constexpr unsigned unlimited = std::numeric_limits<unsigned>::max();
inline constexpr unsigned threads_max = 8;
inline constexpr unsigned atomics_max = 64;

/// One execution's threads, and the check to run on the main thread once all have ended, with everything visible.
/// Threads may share only Atomic and Plain, plus result slots written by one thread and read by `finally`.
struct Scenario {
    std::vector<std::function<void()>> threads;
    std::function<void()> finally;
};

struct Limits {
    std::uint64_t executions_max = 20'000'000;
    /// Switches away from a thread that could have gone on. Any bound turns sleep sets off: together they would skip
    /// orders that have no allowed equivalent.
    unsigned context_switches_max = unlimited;
    /// Of all threads in one execution; more is a failure, for it is most likely a loop without a bound.
    unsigned operations_max = 10'000;
};

struct Outcome {
    std::uint64_t executions = 0;         // run, including those cut short as redundant
    bool complete = false;                // every choice within the limits was tried, and none failed
    std::optional<std::string> failure;   // the first one met; the search stops there
    std::vector<unsigned> choices;        // of the failing execution, for replay()
    std::vector<std::string> log;         // replay() only: each operation, in order
};

/// `make` is called once per execution, on the main thread; it must build the same scenario each time.
Outcome explore(const std::function<Scenario()>& make, Limits limits = {});

/// Runs the one execution that `choices` describes. Of the limits only operations_max matters.
Outcome replay(const std::function<Scenario()>& make, const std::vector<unsigned>& choices, Limits limits = {});

/// Tries every number below `count`. Also allowed in make() and `finally`.
unsigned choose(unsigned count);
bool choose();

/// Fails the execution unless `held`. Ends the calling thread by an exception, so not to be called under noexcept.
void check(bool held, const char* message);

/// Stops the calling thread here unless `held`, without failing: for waiting loops, whose fruitless rounds need no
/// exploring. The other threads go on, but `finally` is not run. Not to be called under noexcept.
void assume(bool held);

namespace internal {

using Stamp = std::uint16_t;
template <std::size_t count>
using Stamps = std::array<Stamp, count>;

template <std::size_t count>
void join(Stamps<count>& into, const Stamps<count>& from) noexcept {
    for (std::size_t i = 0; i < count; ++i) into[i] = std::max(into[i], from[i]);
}

/// What a thread knows, or what a write tells its readers.
struct alignas(16) View {
    Stamps<atomics_max> newest{};   // per atomic: index of the newest write known; older ones can no longer be read
    Stamps<threads_max> clock{};    // per thread: how many of its steps happened before

    void join(const View& other) noexcept {
        internal::join(newest, other.newest);
        internal::join(clock, other.clock);
    }
};

struct Write {
    std::uint64_t value;
    View released;   // what reading it with acquire makes known
};

enum class Kind : std::uint8_t { load, store, update, fence, heavy_fence };

struct Operation {
    Kind kind;
    bool seq_cst;
    unsigned atomic;   // meaningless for fences

    bool is_fence() const noexcept { return kind == Kind::fence || kind == Kind::heavy_fence; }
    bool writes() const noexcept { return kind == Kind::store || kind == Kind::update; }
};

/// Whether doing `done` first may change what `waiting` does or leaves behind. A load and a write of one atomic do
/// not count: the load can read the same old writes in either order, and the engine tracks which ones are new to it.
inline bool conflict(const Operation& waiting, const Operation& done) noexcept {
    if (waiting.kind == Kind::heavy_fence || done.kind == Kind::heavy_fence) return true;
    const bool same_atomic = !waiting.is_fence() && !done.is_fence() && waiting.atomic == done.atomic;
    if (waiting.seq_cst && done.seq_cst) return waiting.is_fence() || done.is_fence() || same_atomic;
    return same_atomic && waiting.writes() && done.writes();
}

inline bool acquires(std::memory_order order) noexcept {
    return order != std::memory_order_relaxed && order != std::memory_order_release;
}

inline bool releases(std::memory_order order) noexcept {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
}

inline std::memory_order load_part(std::memory_order order) noexcept {
    if (order == std::memory_order_release) return std::memory_order_relaxed;
    return order == std::memory_order_acq_rel ? std::memory_order_acquire : order;
}

inline const char* name_of(std::memory_order order) noexcept {
    switch (order) {
        case std::memory_order_relaxed: return "relaxed";
        case std::memory_order_release: return "release";
        case std::memory_order_acq_rel: return "acq_rel";
        case std::memory_order_seq_cst: return "seq_cst";
        default: return "acquire";
    }
}

/// Thrown to end one thread of a scenario early.
struct Stop {};

enum class Progress : std::uint8_t { idle, ready, blocked, ended };

struct Thread {
    View current;     // what it knows
    View pending;     // what its relaxed loads have met, known from the next fence on
    View released;    // what it knew at its last fence, carried by its relaxed stores
    Operation next;   // what it does when scheduled
    Progress progress = Progress::idle;
    bool asleep = false;    // running it now would only repeat an execution already seen...
    unsigned covered = 0;   // ...but for a load reading a write at this index or later
};

/// Who has touched one piece of Plain data, and when by their own clock.
struct Accesses {
    unsigned name = 0;
    unsigned writer = 0;
    Stamp written = 0;   // zero: by the main thread, before all others
    Stamps<threads_max> read{};
};

/// Carries out one exploration. Everything that code under test does to memory ends up here.
class Engine final {
public:
    Engine(const std::function<Scenario()>& make, Limits limits);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine();

    Outcome explore();
    Outcome replay(const std::vector<unsigned>& choices);

    unsigned add_atomic(std::uint64_t value);
    std::uint64_t load(unsigned atomic, std::memory_order order);
    void store(unsigned atomic, std::uint64_t value, std::memory_order order);
    template <class Change>
    std::uint64_t update(unsigned atomic, std::memory_order order, Change change);
    /// Returns what was read; the exchange was made if `success` is set.
    std::uint64_t compare_exchange(unsigned atomic, std::uint64_t expected, std::uint64_t desired,
                                   std::memory_order on_success, std::memory_order on_failure, bool& success);
    void full_fence();
    void heavy_fence();

    Accesses add_plain();
    void on_read(Accesses& accesses);
    void on_write(Accesses& accesses);

    unsigned choose(unsigned count);
    void check(bool held, const char* message);
    void assume(bool held);

private:
    static constexpr unsigned none = unlimited;   // as a thread: the main one, or nobody
    struct Choice {
        unsigned taken;
        unsigned count;
    };

    // One execution.
    void run();
    void run_scenario();
    void run_threads();
    void run_body(unsigned thread);
    void drain();
    void reset();
    void resume(unsigned thread);
    void fail(std::string message);
    void fail_race(const Accesses& accesses, const char* access, const char* earlier, unsigned by);

    // Choosing.
    template <class PositionOf>
    unsigned settle(unsigned count, unsigned open_count, PositionOf position_of);
    unsigned settle(unsigned count, unsigned open_count);
    unsigned scripted(unsigned count);
    unsigned pick(unsigned count);
    bool advance();
    void enter(const Operation& operation);
    void leave() noexcept;
    unsigned decide();
    bool is_asleep(const Thread& thread) const noexcept;
    void wake_others(unsigned chosen) noexcept;
    void pace_drain();

    // Memory.
    Thread& self() noexcept { return threads_[running_]; }
    bool direct() const noexcept { return draining_ || running_ == none; }
    unsigned lowest_readable(unsigned atomic, std::memory_order order) noexcept;
    void observe(unsigned atomic, unsigned index, std::memory_order order) noexcept;
    void append(unsigned atomic, std::uint64_t value, std::memory_order order, const View* sequence);
    void fence(Thread& thread) noexcept;
    void fence_remotely(unsigned thread, const Stamps<atomics_max>& known) noexcept;
    void note(const char* what, unsigned atomic, std::memory_order order, std::uint64_t value);
    void note(const char* what, const Accesses& accesses);
    void note_line(const std::string& what);

    const std::function<Scenario()>& make_;
    const Limits limits_;
    Engine* const outer_;

    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Choice> stack_;
    std::size_t depth_ = 0;
    const std::vector<unsigned>* script_ = nullptr;   // replaying, if set
    std::vector<unsigned> trace_;                     // choices by position among all alternatives, open or not
    std::vector<std::string> log_;
    std::optional<std::string> failure_;

    Scenario scenario_;
    std::array<Thread, threads_max> threads_;
    unsigned thread_count_ = 0;
    unsigned running_ = none;
    unsigned scheduled_ = none;
    unsigned read_floor_ = 0;   // the running load has been explored below this index
    unsigned operations_ = 0;
    unsigned drained_ = 0;
    unsigned context_switches_ = 0;
    bool starting_ = false;
    bool draining_ = false;   // nothing more to learn: threads only run to their ends, to free what they hold

    std::array<std::vector<Write>, atomics_max> writes_;
    unsigned atomic_count_ = 0;
    unsigned plain_count_ = 0;
    Stamps<atomics_max> seq_cst_newest_{};   // per atomic: the newest write the order of seq_cst operations has seen
    std::vector<unsigned> readable_;         // scratch of compare_exchange
};

// The code under test calls static functions and default constructors, so the engine must be found without a
// parameter. Set only while explore() or replay() runs.
inline constinit thread_local Engine* current_engine = nullptr;

inline Engine& engine() {
    if (current_engine == nullptr) throw std::logic_error("model memory used outside explore()");
    return *current_engine;
}

inline Engine::Engine(const std::function<Scenario()>& make, Limits limits)
    : make_(make), limits_(limits), outer_(std::exchange(current_engine, this)) {
    constexpr unsigned stamps_max = std::numeric_limits<Stamp>::max() - 8;
    if (limits.operations_max > stamps_max) throw std::invalid_argument("operations_max must fit a stamp");
}

inline Engine::~Engine() { current_engine = outer_; }

inline Outcome Engine::explore() {
    Outcome outcome;
    while (outcome.executions < limits_.executions_max) {
        run();
        ++outcome.executions;
        if (failure_) {
            outcome.failure = failure_;
            outcome.choices = trace_;
            return outcome;
        }
        if (!advance()) {
            outcome.complete = true;
            return outcome;
        }
    }
    return outcome;
}

inline Outcome Engine::replay(const std::vector<unsigned>& choices) {
    script_ = &choices;
    run();
    return {.executions = 1, .complete = false, .failure = failure_, .choices = trace_, .log = log_};
}

inline void Engine::reset() {
    depth_ = 0;
    trace_.clear();
    std::fill_n(threads_.begin(), thread_count_, Thread{});
    thread_count_ = 0;
    running_ = scheduled_ = none;
    read_floor_ = operations_ = drained_ = context_switches_ = 0;
    draining_ = false;
    for (unsigned atomic = 0; atomic < atomic_count_; ++atomic) writes_[atomic].clear();
    atomic_count_ = plain_count_ = 0;
    seq_cst_newest_.fill(0);
}

inline void Engine::run() {
    reset();
    try {
        run_scenario();
    } catch (const Stop&) {
    } catch (const std::exception& error) {
        fail(std::string("main thread threw: ") + error.what());
    }
    scenario_ = {};
}

inline void Engine::run_scenario() {
    scenario_ = make_();
    if (scenario_.threads.size() > threads_max) throw std::length_error("too many threads in the scenario");
    thread_count_ = static_cast<unsigned>(scenario_.threads.size());
    for (auto index = static_cast<unsigned>(fibers_.size()); index < thread_count_; ++index) {
        fibers_.push_back(std::make_unique<Fiber>([this, index] { run_body(index); }));
    }
    run_threads();
    running_ = none;
    if (!draining_ && scenario_.finally) scenario_.finally();
}

inline void Engine::run_threads() {
    // Up to its first operation a thread does nothing that another could notice, so the order here does not matter.
    starting_ = true;
    for (unsigned thread = 0; thread < thread_count_ && !draining_; ++thread) resume(thread);
    starting_ = false;
    running_ = none;
    while (!draining_) {
        if (scheduled_ == none) scheduled_ = decide();
        if (scheduled_ == none) break;
        resume(std::exchange(scheduled_, none));
    }
    const auto blocked = [](const Thread& thread) { return thread.progress == Progress::blocked; };
    if (draining_ || std::any_of(threads_.begin(), threads_.end(), blocked)) drain();
}

inline void Engine::resume(unsigned thread) {
    running_ = thread;
    fibers_[thread]->resume();
}

inline void Engine::run_body(unsigned thread) {
    threads_[thread].progress = Progress::ready;
    threads_[thread].current.clock[thread] = 1;
    try {
        scenario_.threads[thread]();
    } catch (const Stop&) {
    } catch (const std::exception& error) {
        fail("thread " + std::to_string(thread) + " threw: " + error.what());
    } catch (...) {
        fail("thread " + std::to_string(thread) + " threw");
    }
    threads_[thread].progress = Progress::ended;
}

// An execution that failed or proved redundant still has threads inside code under test, which may be noexcept, so an
// exception cannot fetch them out. They run on instead, each seeing the newest values, with nothing checked; only a
// thread that still does not end gets an exception.
inline void Engine::drain() {
    draining_ = true;
    for (bool busy = true; busy;) {
        busy = false;
        for (unsigned thread = 0; thread < thread_count_; ++thread) {
            const Progress& progress = threads_[thread].progress;
            if (progress == Progress::idle || progress == Progress::ended) continue;
            resume(thread);
            busy = busy || progress != Progress::ended;
        }
    }
}

inline void Engine::pace_drain() {
    // A switch while an exception is on its way would mix up the runtime's record of exceptions in flight.
    if (running_ == none || std::uncaught_exceptions() > 0) return;
    constexpr unsigned turn = 64;   // threads that wait for one another must all come to run
    ++drained_;
    if (drained_ > 4 * limits_.operations_max) throw Stop{};
    if (drained_ % turn == 0) fibers_[running_]->suspend();
}

inline void Engine::fail(std::string message) {
    if (!draining_ && !failure_) failure_ = std::move(message);
    draining_ = true;
}

inline unsigned Engine::pick(unsigned count) {
    if (count == 1) return 0;
    if (depth_ == stack_.size()) stack_.push_back({0, count});
    const Choice& choice = stack_[depth_];
    if (choice.count != count) {
        fail("the scenario is not deterministic: the same choices led elsewhere");
        return 0;
    }
    ++depth_;
    return choice.taken;
}

inline bool Engine::advance() {
    while (!stack_.empty() && ++stack_.back().taken == stack_.back().count) stack_.pop_back();
    return !stack_.empty();
}

inline unsigned Engine::scripted(unsigned count) {
    const std::size_t position = trace_.size();
    return position < script_->size() ? std::min((*script_)[position], count - 1) : 0;
}

/// Takes one of `open_count` open alternatives out of `count`, and returns which of the open ones. The trace keeps
/// its position among all of them, so that a replay needs neither sleep sets nor limits.
template <class PositionOf>
unsigned Engine::settle(unsigned count, unsigned open_count, PositionOf position_of) {
    if (count == 1) return 0;
    const unsigned taken = script_ != nullptr ? scripted(count) : pick(open_count);
    trace_.push_back(position_of(taken));
    return taken;
}

inline unsigned Engine::settle(unsigned count, unsigned open_count) {
    return settle(count, open_count, [](unsigned position) { return position; });
}

/// The scheduling point before each operation: returns when it is this thread's turn to do it.
inline void Engine::enter(const Operation& operation) {
    if (direct()) {
        if (!operation.is_fence()) pace_drain();
        return;
    }
    self().next = operation;
    if (!starting_) {
        const unsigned next = decide();
        if (draining_ || next == running_) return;
        scheduled_ = next;
    }
    fibers_[running_]->suspend();
}

/// Ends the step that enter() began: plain accesses from here on are no longer covered by what it released.
inline void Engine::leave() noexcept { ++self().current.clock[running_]; }

inline bool Engine::is_asleep(const Thread& thread) const noexcept {
    if (!thread.asleep) return false;
    return thread.next.kind != Kind::load || writes_[thread.next.atomic].size() <= thread.covered;
}

/// Which thread does its next operation; none if all have ended, or if going on would only repeat (then draining).
inline unsigned Engine::decide() {
    std::array<unsigned, threads_max> ready{};   // the running thread first
    std::array<unsigned, threads_max> open{};    // positions in `ready`
    unsigned ready_count = 0;
    unsigned open_count = 0;
    const auto is_ready = [&](unsigned thread) { return threads_[thread].progress == Progress::ready; };
    const bool can_go_on = running_ != none && is_ready(running_);
    if (can_go_on) ready[ready_count++] = running_;
    for (unsigned thread = 0; thread < thread_count_; ++thread) {
        if (thread != running_ && is_ready(thread)) ready[ready_count++] = thread;
    }
    if (ready_count == 0) return none;

    if (++operations_ > limits_.operations_max) {
        fail("more than " + std::to_string(limits_.operations_max) + " operations: a loop without a bound?");
        return none;
    }
    const bool must_go_on = can_go_on && context_switches_ >= limits_.context_switches_max;
    for (unsigned position = 0; position < ready_count; ++position) {
        const bool allowed = !must_go_on || position == 0;
        if (allowed && !is_asleep(threads_[ready[position]])) open[open_count++] = position;
    }
    if (open_count == 0) {
        draining_ = true;
        return none;
    }
    const unsigned taken = settle(ready_count, open_count, [&](unsigned index) { return open[index]; });
    if (draining_) return none;
    const bool sleep_sets = script_ == nullptr && limits_.context_switches_max == unlimited;
    for (unsigned earlier = 0; sleep_sets && earlier < taken; ++earlier) {
        Thread& explored = threads_[ready[open[earlier]]];
        explored.asleep = true;
        explored.covered = explored.next.is_fence() ? 0 : static_cast<unsigned>(writes_[explored.next.atomic].size());
    }
    const unsigned chosen = ready[open[taken]];
    if (can_go_on && chosen != running_) ++context_switches_;
    wake_others(chosen);
    return chosen;
}

/// Wakes the threads for which it matters that `chosen` goes first.
inline void Engine::wake_others(unsigned chosen) noexcept {
    Thread& runs = threads_[chosen];
    read_floor_ = runs.asleep ? runs.covered : 0;
    runs.asleep = false;
    for (Thread& thread : threads_) {
        if (thread.asleep && conflict(thread.next, runs.next)) thread.asleep = false;
    }
}

inline unsigned Engine::add_atomic(std::uint64_t value) {
    if (atomic_count_ == atomics_max) throw std::length_error("too many atomics in the scenario");
    writes_[atomic_count_].push_back({value, {}});
    return atomic_count_++;
}

inline unsigned Engine::lowest_readable(unsigned atomic, std::memory_order order) noexcept {
    const Stamp known = self().current.newest[atomic];
    return order == std::memory_order_seq_cst ? std::max(known, seq_cst_newest_[atomic]) : known;
}

inline void Engine::observe(unsigned atomic, unsigned index, std::memory_order order) noexcept {
    Thread& thread = self();
    const auto stamp = static_cast<Stamp>(index);
    thread.current.newest[atomic] = stamp;
    (acquires(order) ? thread.current : thread.pending).join(writes_[atomic][index].released);
    if (order == std::memory_order_seq_cst) seq_cst_newest_[atomic] = std::max(seq_cst_newest_[atomic], stamp);
}

inline void Engine::append(unsigned atomic, std::uint64_t value, std::memory_order order, const View* sequence) {
    Thread& thread = self();
    const auto stamp = static_cast<Stamp>(writes_[atomic].size());
    thread.current.newest[atomic] = stamp;
    Write write{value, releases(order) ? thread.current : thread.released};
    // A read-modify-write continues the release sequence it reads from.
    if (sequence != nullptr) write.released.join(*sequence);
    writes_[atomic].push_back(write);
    if (order == std::memory_order_seq_cst) seq_cst_newest_[atomic] = stamp;
}

inline std::uint64_t Engine::load(unsigned atomic, std::memory_order order) {
    enter({Kind::load, order == std::memory_order_seq_cst, atomic});
    if (direct()) return writes_[atomic].back().value;
    const auto size = static_cast<unsigned>(writes_[atomic].size());
    const unsigned lowest = lowest_readable(atomic, order);
    const unsigned open_from = std::max(lowest, read_floor_);
    const unsigned index = size - 1 - settle(size - lowest, size - open_from);
    observe(atomic, index, order);
    leave();
    const std::uint64_t value = writes_[atomic][index].value;
    note(index + 1 == size ? "load" : "stale load", atomic, order, value);
    return value;
}

inline void Engine::store(unsigned atomic, std::uint64_t value, std::memory_order order) {
    enter({Kind::store, order == std::memory_order_seq_cst, atomic});
    if (direct()) {
        writes_[atomic].back().value = value;
        return;
    }
    append(atomic, value, order, nullptr);
    leave();
    note("store", atomic, order, value);
}

template <class Change>
std::uint64_t Engine::update(unsigned atomic, std::memory_order order, Change change) {
    enter({Kind::update, order == std::memory_order_seq_cst, atomic});
    const std::uint64_t value = writes_[atomic].back().value;
    const std::uint64_t changed = change(value);
    if (direct()) {
        writes_[atomic].back().value = changed;
        return value;
    }
    observe(atomic, static_cast<unsigned>(writes_[atomic].size() - 1), order);
    const View sequence = writes_[atomic].back().released;
    append(atomic, changed, order, &sequence);
    leave();
    note("update", atomic, order, changed);
    return value;
}

inline std::uint64_t Engine::compare_exchange(unsigned atomic, std::uint64_t expected, std::uint64_t desired,
                                              std::memory_order on_success, std::memory_order on_failure,
                                              bool& success) {
    const bool seq_cst = on_success == std::memory_order_seq_cst || on_failure == std::memory_order_seq_cst;
    enter({Kind::update, seq_cst, atomic});
    auto& writes = writes_[atomic];
    success = writes.back().value == expected;
    if (direct()) {
        const std::uint64_t value = writes.back().value;
        if (success) writes.back().value = desired;
        return value;
    }
    // Success must read the newest write, but a failure is only a load: any readable write that differs will do.
    const auto newest = static_cast<unsigned>(writes.size() - 1);
    readable_.assign(1, newest);
    for (unsigned index = newest; index-- > lowest_readable(atomic, on_failure);) {
        if (writes[index].value != expected) readable_.push_back(index);
    }
    const auto count = static_cast<unsigned>(readable_.size());
    const unsigned index = readable_[settle(count, count)];
    const std::uint64_t value = writes[index].value;
    success = success && index == newest;
    observe(atomic, index, success ? on_success : on_failure);
    if (success) {
        const View sequence = writes[index].released;
        append(atomic, desired, on_success, &sequence);
    }
    leave();
    note(success ? "compare_exchange" : "failed compare_exchange", atomic, success ? on_success : on_failure,
         success ? desired : value);
    return value;
}

inline void Engine::fence(Thread& thread) noexcept {
    thread.current.join(thread.pending);
    join(thread.current.newest, seq_cst_newest_);
    join(seq_cst_newest_, thread.current.newest);
    thread.released = thread.current;
}

inline void Engine::full_fence() {
    enter({Kind::fence, true, 0});
    if (direct()) return;
    fence(self());
    leave();
    note_line("full fence");
}

// Interrupting the others orders each of them against the caller, both ways: what the caller did before comes before
// what another thread does after its interrupt, and what that thread did before its interrupt comes before what the
// caller does after. It is not relied on to order them among themselves, because they are not all interrupted at one
// instant.
inline void Engine::heavy_fence() {
    enter({Kind::heavy_fence, true, 0});
    if (direct()) return;
    fence(self());
    const Stamps<atomics_max> known = seq_cst_newest_;
    const View caller = self().current;
    for (unsigned thread = 0; thread < thread_count_; ++thread) {
        if (thread != running_) fence_remotely(thread, known);
    }
    for (unsigned thread = 0; thread < thread_count_; ++thread) {
        if (thread == running_) continue;
        self().current.join(threads_[thread].released);
        threads_[thread].current.join(caller);
    }
    fence(self());
    leave();
    note_line("heavy fence");
}

inline void Engine::fence_remotely(unsigned thread, const Stamps<atomics_max>& known) noexcept {
    Thread& other = threads_[thread];
    other.current.join(other.pending);
    join(other.current.newest, known);
    join(seq_cst_newest_, other.current.newest);
    other.released = other.current;
    // The interrupt may come before the plain accesses since the last operation, so it does not release those.
    --other.released.clock[thread];
}

inline Accesses Engine::add_plain() {
    Accesses accesses;
    accesses.name = plain_count_++;
    if (!direct()) {
        accesses.writer = running_;
        accesses.written = self().current.clock[running_];
    }
    return accesses;
}

inline void Engine::on_read(Accesses& accesses) {
    if (direct()) return;
    note("read", accesses);
    const auto& clock = self().current.clock;
    if (accesses.written > clock[accesses.writer]) fail_race(accesses, "read", "write", accesses.writer);
    accesses.read[running_] = clock[running_];
}

inline void Engine::on_write(Accesses& accesses) {
    if (direct()) return;
    note("write", accesses);
    const auto& clock = self().current.clock;
    if (accesses.written > clock[accesses.writer]) fail_race(accesses, "write", "write", accesses.writer);
    for (unsigned thread = 0; thread < thread_count_; ++thread) {
        if (accesses.read[thread] > clock[thread]) fail_race(accesses, "write", "read", thread);
    }
    accesses.writer = running_;
    accesses.written = clock[running_];
}

inline void Engine::fail_race(const Accesses& accesses, const char* access, const char* earlier, unsigned by) {
    fail("data race on plain #" + std::to_string(accesses.name) + ": " + access + " by thread " +
         std::to_string(running_) + " is not ordered after " + earlier + " by thread " + std::to_string(by));
}

inline unsigned Engine::choose(unsigned count) {
    if (count == 0) throw std::invalid_argument("nothing to choose from");
    return draining_ ? 0 : settle(count, count);
}

inline void Engine::check(bool held, const char* message) {
    if (held) return;
    fail(message);
    throw Stop{};
}

inline void Engine::assume(bool held) {
    if (held) return;
    if (!direct()) {
        self().progress = Progress::blocked;
        fibers_[running_]->suspend();
    }
    draining_ = true;
    throw Stop{};
}

inline void Engine::note(const char* what, unsigned atomic, std::memory_order order, std::uint64_t value) {
    if (script_ == nullptr) return;
    note_line(std::string(what) + " of atomic #" + std::to_string(atomic) + ", " + name_of(order) + ", value " +
              std::to_string(value));
}

inline void Engine::note(const char* what, const Accesses& accesses) {
    if (script_ != nullptr) note_line(std::string(what) + " of plain #" + std::to_string(accesses.name));
}

inline void Engine::note_line(const std::string& what) {
    if (script_ != nullptr) log_.push_back("thread " + std::to_string(running_) + ": " + what);
}

template <class T>
std::uint64_t to_bits(const T& value) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
T from_bits(std::uint64_t bits) noexcept {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

}   // namespace internal

/// std::atomic as the model sees it. May be created and used only inside explore() and replay().
template <class T>
class Atomic final {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

public:
    Atomic() : Atomic(T{}) {}
    explicit Atomic(T value) : index_(internal::engine().add_atomic(internal::to_bits(value))) {}
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    T load(std::memory_order order = std::memory_order_seq_cst) const {
        return internal::from_bits<T>(internal::engine().load(index_, order));
    }
    void store(T value, std::memory_order order = std::memory_order_seq_cst) {
        internal::engine().store(index_, internal::to_bits(value), order);
    }
    T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
        return update(order, [value](T) { return value; });
    }
    T fetch_add(T amount, std::memory_order order = std::memory_order_seq_cst) {
        return update(order, [amount](T value) { return static_cast<T>(value + amount); });
    }
    T fetch_sub(T amount, std::memory_order order = std::memory_order_seq_cst) {
        return update(order, [amount](T value) { return static_cast<T>(value - amount); });
    }
    T fetch_or(T bits, std::memory_order order = std::memory_order_seq_cst) {
        return update(order, [bits](T value) { return static_cast<T>(value | bits); });
    }
    T fetch_and(T bits, std::memory_order order = std::memory_order_seq_cst) {
        return update(order, [bits](T value) { return static_cast<T>(value & bits); });
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order order = std::memory_order_seq_cst) {
        return compare_exchange_strong(expected, desired, order, internal::load_part(order));
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order on_success, std::memory_order on_failure) {
        bool success = false;
        const std::uint64_t value = internal::engine().compare_exchange(
            index_, internal::to_bits(expected), internal::to_bits(desired), on_success, on_failure, success);
        if (!success) expected = internal::from_bits<T>(value);
        return success;
    }

private:
    template <class Change>
    T update(std::memory_order order, Change change) {
        return internal::from_bits<T>(internal::engine().update(index_, order, [&](std::uint64_t bits) {
            return internal::to_bits(change(internal::from_bits<T>(bits)));
        }));
    }

    unsigned index_;
};

/// Ordinary data, whose every access must be ordered by happens-before with those it conflicts with.
template <class T>
class Plain final {
public:
    Plain() : Plain(T{}) {}
    Plain(T value) : value_(std::move(value)), accesses_(internal::engine().add_plain()) {}
    Plain(const Plain&) = delete;
    Plain& operator=(const Plain&) = delete;

    T get() const {
        internal::engine().on_read(accesses_);
        return value_;
    }
    void set(T value) {
        internal::engine().on_write(accesses_);
        value_ = std::move(value);
    }

private:
    T value_;
    mutable internal::Accesses accesses_;
};

/// The memory policy to instantiate code under test with.
struct Memory {
    template <class T>
    using Atomic = model::Atomic<T>;
    template <class T>
    using Plain = model::Plain<T>;

    static void full_fence() noexcept { internal::engine().full_fence(); }
    /// Only stops the compiler, which the model has none of. So a missing one goes unnoticed.
    static void light_fence() noexcept {}
    /// Acts on every thread where it stands, as membarrier(2) does.
    static void heavy_fence() noexcept { internal::engine().heavy_fence(); }
};

inline Outcome explore(const std::function<Scenario()>& make, Limits limits) {
    return internal::Engine(make, limits).explore();
}

inline Outcome replay(const std::function<Scenario()>& make, const std::vector<unsigned>& choices, Limits limits) {
    limits.context_switches_max = unlimited;   // the choices already keep to it
    return internal::Engine(make, limits).replay(choices);
}

inline unsigned choose(unsigned count) { return internal::engine().choose(count); }
inline bool choose() { return choose(2) != 0; }
inline void check(bool held, const char* message) { internal::engine().check(held, message); }
inline void assume(bool held) { internal::engine().assume(held); }

}   // namespace kumi::model
