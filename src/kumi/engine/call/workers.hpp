#pragma once

// The threads that run functions of the program. At most `at_once` of them run at one time. A function that waits in a
// call of the engine does not count while it waits, and another thread takes its place. So functions may wait for each
// other in any order and nesting, until threads_max have begun; further functions are refused then, because nothing
// else would tell the program of the deadlock. Threads are made when there is something to run.

#include "kumi/engine/progress/wait_observer.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kumi::engine {

class Workers final : private WaitObserver {
public:
    /// Must not throw. False: too many functions wait; the task is to refuse what it was for, at once.
    using Task = std::function<void(bool may_run)>;
    static constexpr std::size_t usual_threads_max = 512;

    explicit Workers(unsigned at_once, std::size_t threads_max = usual_threads_max) noexcept
        : at_once_(at_once), threads_max_(threads_max) {}
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers() { stop(); }

    /// Runs `task` soon, in the order of these calls. False: the system has no thread for it, and the task was not
    /// taken.
    bool add(Task& task);
    /// Waits for the tasks that run, and drops those that have not begun. For one thread.
    void stop() noexcept;

private:
    void begin_wait() noexcept override;
    void end_wait() noexcept override;
    /// Wakes or makes a thread for the first task in line, if it may run. False: there cannot be one.
    bool call_thread();
    void run() noexcept;

    const unsigned at_once_;
    const std::size_t threads_max_; // that run or wait; there is one more, which refuses
    std::mutex mutex_; // of all below
    std::condition_variable changed_;
    std::deque<Task> tasks_;
    std::vector<std::thread> threads_;
    std::size_t running_ = 0;  // threads that run a task and do not wait
    std::size_t waiting_ = 0;  // threads whose task waits
    std::size_t starting_ = 0; // threads that were made and have not looked for a task yet
    std::size_t idle_ = 0;     // threads that wait for a task
    bool is_stopping_ = false;
};

} // namespace kumi::engine
