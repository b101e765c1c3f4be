#include "kumi/launch/host/processes/guardian.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

const std::string mark = "KUMI_TEST_GUARDED=" + std::to_string(::getpid());

/// A process that sleeps in a group of its own until it is killed.
class Sleeper {
public:
    Sleeper() : Sleeper("") {}
    /// One whose environment is just this variable.
    explicit Sleeper(const std::string& variable) : pid_(::fork()) {
        if (pid_ == 0) {
            ::setpgid(0, 0);
            const char* const words[] = {"sleep", "100", nullptr};
            const char* const environment[] = {variable.c_str(), nullptr};
            ::execve("/bin/sleep", const_cast<char**>(words), const_cast<char**>(environment));
            ::_exit(127);
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
void with_guardian(const std::function<void(Guardian&)>& what, const std::string& folder = {}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); // the guardian becomes our child when its starter has ended
    const pid_t starter = ::fork();
    ASSERT_GE(starter, 0);
    if (starter == 0) {
        auto guardian = Guardian::start(mark, folder);
        if (!guardian) ::_exit(1);
        what(*guardian);
        const pid_t pid = guardian->pid();
        ::_exit(::write(ends[1], &pid, sizeof pid) == sizeof pid ? 0 : 3);
    }
    ::close(ends[1]);
    int status = -1;
    ASSERT_EQ(::waitpid(starter, &status, 0), starter);
    EXPECT_EQ(status, 0);
    pid_t guardian = -1;
    EXPECT_EQ(::read(ends[0], &guardian, sizeof guardian), static_cast<ssize_t>(sizeof guardian));
    ::close(ends[0]);
    if (guardian > 0) ::waitpid(guardian, nullptr, 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
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

TEST(Guardian, what_has_the_mark_is_killed_wherever_it_is_and_nothing_else) {
    Sleeper marked(mark), other_mark(mark + "1"), longer_name("X" + mark), shorter(mark.substr(0, mark.size() - 1));
    ::usleep(20000); // they have their environment after exec
    with_guardian([&](Guardian&) {});
    for (int i = 0; i < 2000 && !marked.has_ended(); ++i) ::usleep(1000);
    EXPECT_TRUE(marked.has_ended());
    EXPECT_FALSE(other_mark.has_ended());
    EXPECT_FALSE(longer_name.has_ended());
    EXPECT_FALSE(shorter.has_ended());
}

TEST(Guardian, one_that_is_dismissed_kills_nobody) {
    Sleeper sleeper, marked(mark);
    with_guardian([&](Guardian& guardian) {
        guardian.guard(sleeper.pid());
        const Guardian dismissed = std::move(guardian);
    });
    EXPECT_FALSE(sleeper.has_ended());
    EXPECT_FALSE(marked.has_ended());
}

TEST(Guardian, the_folder_is_removed_unless_it_is_dismissed) {
    const std::string folder = std::filesystem::temp_directory_path() / ("kumi-guarded-" + std::to_string(::getpid()));
    const auto make = [&] { return std::filesystem::create_directories(folder + "/in/it"); };
    ASSERT_TRUE(make());
    with_guardian([](Guardian& guardian) { const Guardian dismissed = std::move(guardian); }, folder);
    EXPECT_TRUE(std::filesystem::exists(folder + "/in/it"));
    with_guardian([](Guardian&) {}, folder);
    EXPECT_FALSE(std::filesystem::exists(folder));
    with_guardian([](Guardian&) {}, folder); // that is not there
    ASSERT_TRUE(make());
    with_guardian(
        [](Guardian& guardian) {
            const pid_t first = guardian.pid();
            ::kill(first, SIGKILL);
            ::waitpid(first, nullptr, 0);
            guardian.replace({});
        },
        folder);
    EXPECT_FALSE(std::filesystem::exists(folder)) << "by the one that took its place";
}

TEST(Guardian, another_one_takes_the_place_of_one_that_was_killed) {
    Sleeper guarded;
    with_guardian([&](Guardian& guardian) {
        const pid_t first = guardian.pid();
        ::kill(first, SIGKILL);
        ::waitpid(first, nullptr, 0);
        guardian.guard(guarded.pid()); // goes nowhere, and does not end this process
        guardian.replace({guarded.pid()});
        if (guardian.pid() == first) ::_exit(2);
    });
    for (int i = 0; i < 2000 && !guarded.has_ended(); ++i) ::usleep(1000);
    EXPECT_TRUE(guarded.has_ended());
}

} // namespace
} // namespace kumi::launch::host
