#pragma once

// Another thread of a test, which does one thing after the other, each when it is told to.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace kumi::loopback {

class OtherThread {
public:
    OtherThread() : thread_([this] { serve(); }) {}
    OtherThread(const OtherThread&) = delete;
    ~OtherThread() {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

    /// Runs `what` in that thread, and returns when it has returned. Throws what it has thrown.
    void run(const std::function<void()>& what) {
        std::unique_lock lock(mutex_);
        task_ = &what;
        changed_.notify_all();
        changed_.wait(lock, [this] { return task_ == nullptr; });
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    }

private:
    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return task_ != nullptr || is_over_; });
            if (task_ == nullptr) return;
            try {
                (*task_)();
            } catch (...) {
                thrown_ = std::current_exception();
            }
            task_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* task_ = nullptr;
    std::exception_ptr thrown_;
    bool is_over_ = false;
    std::thread thread_; // last: it uses the others
};

} // namespace kumi::loopback
