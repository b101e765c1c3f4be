#include "kumi/launch/host/processes/limits.hpp"

#include <cstdio>
#include <functional>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

/// In a process of its own, whose limits may change.
void in_a_child(const std::function<void()>& check) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        check();
        std::fflush(nullptr);
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

std::string refusal_of(const Result<void>& checked) { return checked ? "" : checked.error().text(); }

rlim_t files_allowed() {
    rlimit files{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    return files.rlim_cur;
}

TEST(Limits, a_job_gets_the_open_files_that_it_needs_up_to_the_hard_limit) {
    in_a_child([] {
        const rlimit few{40, 92}; // 10 nodes and what is needed besides
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
        EXPECT_EQ(refusal_of(check_limits(1)), "");
        EXPECT_EQ(files_allowed(), 40u) << "it was enough";
        EXPECT_EQ(refusal_of(check_limits(10)), "");
        EXPECT_EQ(files_allowed(), 92u);
        EXPECT_EQ(refusal_of(check_limits(11)),
                  "-n 11: watching so many nodes needs 98 open files, and the limit is 92 (ulimit -Hn)");
    });
}

TEST(Limits, so_does_one_on_several_hosts) {
    in_a_child([] {
        const rlimit few{32, 53}; // 3 hosts and what is needed besides
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
        EXPECT_EQ(refusal_of(check_host_limits(3)), "");
        EXPECT_EQ(files_allowed(), 53u);
        EXPECT_EQ(refusal_of(check_host_limits(4)),
                  "a job on 4 hosts needs 60 open files, and the limit is 53 (ulimit -Hn)");
    });
}

TEST(Limits, more_nodes_than_a_user_may_have_processes_are_refused) {
    in_a_child([] {
        const rlimit few{20, 20};
        ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &few), 0);
        EXPECT_EQ(refusal_of(check_limits(19)), "");
        EXPECT_EQ(refusal_of(check_limits(20)),
                  "-n 20: this machine allows at most 20 processes (kernel.pid_max, ulimit -u)");
    });
}

} // namespace
} // namespace kumi::launch::host
