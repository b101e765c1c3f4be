#pragma once

// The way from futures to the engine of their job. A future may outlive its job, so it holds a link and not the engine:
// the link says whether the engine is still there, and keeps it there for the moment of a call.
//
// The engine ends in two steps, which never wait for the program: the link refuses new uses and wakes those that wait,
// and the engine is destroyed when the last use is over.

#include "kumi/engine/future/unasked_errors.hpp"

#include <atomic>
#include <memory>

namespace kumi::engine {

class Progress;

class ProgressLink {
public:
    explicit ProgressLink(Progress& progress) noexcept : progress_(progress) {}
    ProgressLink(const ProgressLink&) = delete;
    ProgressLink& operator=(const ProgressLink&) = delete;

    /// The engine, which does not end while this lives. False: the engine has ended.
    class Use {
    public:
        explicit Use(ProgressLink& link) noexcept : link_(link) {
            // Sequentially consistent, and before the load: partner of the store and the load in end(). Either end()
            // sees this use and waits for it, or this use sees that the engine has ended.
            link_.uses_.fetch_add(1);
            is_there_ = !link_.has_ended_.load();
        }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
        // Release: partner of the load in end(): the engine is destroyed after all that this use has done.
        ~Use() { link_.uses_.fetch_sub(1, std::memory_order_release); }

        explicit operator bool() const noexcept { return is_there_; }
        Progress* operator->() const noexcept { return &link_.progress_; }

    private:
        ProgressLink& link_;
        bool is_there_ = false;
    };

    /// True: the job has ended, or is about to; nothing is to be waited for any more.
    bool has_ended() const noexcept { return has_ended_.load(); }
    /// The engine ends. Ends the waits of other threads and returns when no thread uses the engine any more.
    void end() noexcept;

    /// Here, because futures may be dropped after the engine has ended.
    UnaskedErrors& unasked() noexcept { return unasked_; }

    /// The link of the job that a thread means which names none: the newest that the calling thread has joined, or else
    /// the newest of this process. Null: there is no job.
    static std::shared_ptr<ProgressLink> current();
    /// From now on current() knows `link`, as joined by the calling thread, until forget().
    static void remember(const std::shared_ptr<ProgressLink>& link);
    static void forget(const ProgressLink& link) noexcept;

private:
    Progress& progress_;
    std::atomic<unsigned> uses_{0};
    std::atomic<bool> has_ended_{false};
    UnaskedErrors unasked_;
};

} // namespace kumi::engine
