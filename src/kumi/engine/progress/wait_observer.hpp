#pragma once

namespace kumi::engine {

/// Learns from the progress loop when a thread begins and ends to wait.
class WaitObserver {
public:
    virtual void begin_wait() noexcept = 0;
    virtual void end_wait() noexcept = 0;
    /// The observer of the calling thread; null: none.
    static WaitObserver*& of_this_thread() noexcept {
        static thread_local WaitObserver* observer = nullptr;
        return observer;
    }

protected:
    ~WaitObserver() = default;
};

} // namespace kumi::engine
