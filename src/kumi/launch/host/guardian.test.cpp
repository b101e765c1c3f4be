#include "kumi/launch/host/guardian.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

/// A process that sleeps in a group of its own until it is killed.
class Sleeper {
public:
    Sleeper() : pid_(::fork()) {
        if (pid_ == 0) {
            ::setpgid(0, 0);
            while (true) ::pause();
        }
        ::setpgid(pid_, pid_);
    }
    ~Sleeper() {
        if (has_ended_) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }
    bool has_ended() { return has_ended_ = has_ended_ || ::waitpid(pid_, nullptr, WNOHANG) == pid_; }

private:
    pid_t pid_;
    bool has_ended_ = false;
};

/// A process has a guardian, does `what` and ends as if it had been killed. Returns when the guardian is gone, too.
void with_guardian(const std::function<void(Guardian&)>& what) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0); // which both hold
    const pid_t starter = ::fork();
    ASSERT_GE(starter, 0);
    if (starter == 0) {
        auto guardian = Guardian::start();
        if (!guardian) ::_exit(1);
        what(*guardian);
        ::_exit(0);
    }
    ::close(ends[1]);
    int status = -1;
    ASSERT_EQ(::waitpid(starter, &status, 0), starter);
    EXPECT_EQ(status, 0);
    char nothing = 0;
    EXPECT_EQ(::read(ends[0], &nothing, 1), 0);
    ::close(ends[0]);
}

TEST(Guardian, groups_that_it_guards_are_killed_when_their_starter_is) {
    Sleeper one, other;
    with_guardian([&](Guardian& guardian) {
        guardian.guard(one.pid());
        guardian.guard(other.pid());
    });
    for (int i = 0; i < 2000 && !(one.has_ended() && other.has_ended()); ++i) ::usleep(1000);
    EXPECT_TRUE(one.has_ended());
    EXPECT_TRUE(other.has_ended());
}

TEST(Guardian, a_group_that_it_forgot_is_left_alone_for_its_number_may_be_somebody_elses) {
    Sleeper gone, guarded;
    with_guardian([&](Guardian& guardian) {
        guardian.guard(gone.pid());
        guardian.guard(guarded.pid());
        guardian.forget(gone.pid());
    });
    for (int i = 0; i < 2000 && !guarded.has_ended(); ++i) ::usleep(1000);
    EXPECT_TRUE(guarded.has_ended());
    EXPECT_FALSE(gone.has_ended());
}

TEST(Guardian, one_that_is_dismissed_kills_nobody) {
    Sleeper sleeper;
    with_guardian([&](Guardian& guardian) {
        guardian.guard(sleeper.pid());
        const Guardian dismissed = std::move(guardian);
    });
    EXPECT_FALSE(sleeper.has_ended());
}

} // namespace
} // namespace kumi::launch::host
