#pragma once

#include "provider/messages/messages.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/job/membership.hpp"

#include <cstdint>
#include <memory>

namespace kumi::provider {

/// This process as a member of its job, with an engine and its messages. All domains of the process share it.
class Process {
public:
    /// The one of this process: joins the job when it is asked for the first time. All processes of the job must join,
    /// or this fails after a minute. One that has failed, or was left, stays so.
    static Result<Process*> join();
    /// Leaves the job, when nobody uses the Process any more. For the end of the program.
    static void leave() noexcept;

    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process();

    /// Names the job for addresses. Tells nothing of its keys.
    std::uint64_t job() const noexcept { return job_; }
    const boot::Standing& standing() const noexcept { return membership_.standing(); }
    Messages& messages() noexcept { return *messages_; }
    engine::Turn take_turn() noexcept { return dispatcher_->take_turn(); }
    /// Handles what has come.
    void make_progress(const Turn& turn) noexcept { dispatcher_->progress().look(turn); }
    /// The same until `done(turn)`, or the deadline; sleeps meanwhile.
    template <class Done>
    bool wait(Done&& done, Instant deadline) {
        return dispatcher_->loop().serve_until(done, deadline);
    }

private:
    Process(job::Membership membership, std::unique_ptr<engine::Dispatcher> dispatcher);
    static Result<std::unique_ptr<Process>> open();

    job::Membership membership_;
    std::uint64_t job_;
    std::unique_ptr<Messages> messages_; // lives until the engine has ended
    std::unique_ptr<engine::Dispatcher> dispatcher_;
};

} // namespace kumi::provider
