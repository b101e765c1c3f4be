#pragma once

// This process as a member of a job: which node it is, the keys of the job, and a channel to all other nodes. Job and
// PmJob are made of one. What has an engine of its own, or none, can use it by itself.

#include "kumi/base/result.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/wait.hpp"

#include <memory>

namespace kumi::pm {
class CensusChannel;
} // namespace kumi::pm

namespace kumi::job {

class Membership final {
public:
    /// Joins the job that this process was started for, and opens the channel; started by hand, it is a job of one
    /// node. Once per process.
    static Result<Membership> join();
    /// For a session and a channel that were opened elsewhere.
    Membership(std::unique_ptr<boot::Session> session, std::unique_ptr<pm::Channel> channel);
    Membership(Membership&&) noexcept = default;
    Membership& operator=(Membership&&) = delete;
    /// Leaves the job. What was sent before still arrives.
    ~Membership();

    /// Node, host, keys.
    const boot::Standing& standing() const noexcept { return session_->standing(); }
    boot::Session& session() noexcept { return *session_; }
    pm::Channel& channel() noexcept { return *channel_; }
    const pm::Channel& channel() const noexcept { return *channel_; }
    /// How long a wait on this host should spin before it sleeps.
    pm::Patience patience() const noexcept { return patience_; }
    /// From now on this process says what it waits for when the launcher, or a user, asks by SIGQUIT, and where it is
    /// when it crashes. Call it after the last exchange of the session.
    void explain_signals();
    /// This node gives up for this reason. Returns the reason, marked as told if the launcher tells the user.
    Error give_up(const Error& why);

private:
    std::unique_ptr<boot::Session> session_;
    std::unique_ptr<pm::Channel> channel_;
    const pm::CensusChannel* census_ = nullptr; // the channel, if what it sends is counted by size
    pm::Patience patience_;
};

} // namespace kumi::job
