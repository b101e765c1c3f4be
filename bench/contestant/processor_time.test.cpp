#include "contestant/processor_time.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace kumi::bench {
namespace {

double own_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

TEST(ProcessorTime, counts_the_processes_that_joined_and_no_others) {
    ProcessorTime both;
    EXPECT_EQ(both.seconds(), 0);
    int work_done[2], end[2];
    ASSERT_EQ(::pipe(work_done), 0);
    ASSERT_EQ(::pipe(end), 0);
    constexpr double work_seconds = 0.1;
    char byte = 0;
    const pid_t other = ::fork();
    if (other == 0) {
        both.join();
        for (const double start = own_seconds(); own_seconds() < start + work_seconds;) {
        }
        if (::write(work_done[1], &byte, 1) == 1 && ::read(end[0], &byte, 1) == 1) ::_exit(0);
        ::_exit(1);
    }
    ASSERT_EQ(::read(work_done[0], &byte, 1), 1);
    const double of_other = both.seconds();
    EXPECT_GE(of_other, 0.9 * work_seconds);
    EXPECT_LT(of_other, 5 * work_seconds); // what it also did
    both.join();
    EXPECT_NEAR(both.seconds(), of_other + own_seconds(), 0.05);
    ASSERT_EQ(::write(end[1], &byte, 1), 1);
    int status = -1;
    ::waitpid(other, &status, 0);
    EXPECT_EQ(status, 0);
}

} // namespace
} // namespace kumi::bench
