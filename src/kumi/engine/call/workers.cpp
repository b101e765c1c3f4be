#include "kumi/engine/call/workers.hpp"

#include <pthread.h>
#include <system_error>
#include <utility>

namespace kumi::engine {

bool Workers::add(Task& task) {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return true; // nobody waits for it any more
    tasks_.push_back(std::move(task));
    if (call_thread()) return true;
    task = std::move(tasks_.back());
    tasks_.pop_back();
    return false;
}

bool Workers::call_thread() {
    if (running_ + starting_ >= at_once_) return true; // one of those takes it next
    if (idle_ != 0) return changed_.notify_one(), true;
    const bool is_one_awake = running_ + starting_ != 0;
    if (threads_.size() > threads_max_) return is_one_awake; // the last one refuses, and does not wait
    try {
        threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) { // the system has no thread for it
        return is_one_awake;
    }
    ++starting_;
    return true;
}

void Workers::run() noexcept {
    ::pthread_setname_np(::pthread_self(), "kumi-worker");
    WaitObserver::of_this_thread() = this;
    std::unique_lock lock(mutex_);
    --starting_;
    while (!is_stopping_) {
        if (tasks_.empty() || running_ >= at_once_) {
            ++idle_;
            changed_.wait(lock);
            --idle_;
            continue;
        }
        Task task = std::move(tasks_.front());
        tasks_.pop_front();
        const bool may_run = running_ + waiting_ < threads_max_;
        ++running_;
        lock.unlock();
        task(may_run);
        task = nullptr; // what it holds goes without the lock
        lock.lock();
        --running_;
    }
}

void Workers::begin_wait() noexcept {
    const std::lock_guard lock(mutex_);
    --running_;
    ++waiting_;
    // If the system has no other thread, the tasks in line wait until one of the threads that wait goes on.
    if (!tasks_.empty() && !is_stopping_) (void)call_thread();
}

void Workers::end_wait() noexcept {
    const std::lock_guard lock(mutex_);
    --waiting_;
    ++running_;
}

void Workers::stop() noexcept {
    std::vector<std::thread> threads;
    std::deque<Task> dropped;
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        threads.swap(threads_);
        dropped.swap(tasks_);
        changed_.notify_all();
    }
    for (std::thread& thread : threads) thread.join();
}

} // namespace kumi::engine
