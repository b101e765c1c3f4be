// Nodes that wait, each first word in another call: node 0 waits, and node 1 does not come. Then node 0 goes on, unless
// that takes longer than the test has patience.

#include "kumi/functions.hpp"
#include "kumi/kumi.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace {

using namespace std::chrono_literals;

/// Not inlined: a backtrace has it by its name.
[[gnu::noinline]] void step_that_crashes(int* nowhere) {
    *nowhere = 5;
    asm volatile("" ::: "memory");
}
[[gnu::noinline]] int step_without_end(int depth) {
    volatile char room[4096];
    room[0] = static_cast<char>(depth);
    return depth < 0 ? 0 : step_without_end(depth + 1) + room[0];
}

} // namespace

int main(int count, char** words) {
    const std::string_view what = count > 1 ? words[1] : "";
    const auto seconds = count > 2 ? std::chrono::seconds(std::atoi(words[2])) : 40s;
    kumi::Handlers handlers;
    const auto slow = handlers.function("slow", [&](int number) {
        std::this_thread::sleep_for(seconds);
        return number;
    });
    auto job = kumi::must(kumi::Job::join(std::move(handlers)));
    auto world = job.world();
    kumi::must(job.barrier());
    std::printf("node %u is ready\n", job.node());
    std::fflush(stdout);
    const kumi::Instant deadline = kumi::now() + seconds;
    kumi::Result<void> ended;
    if (what == "segv") step_that_crashes(nullptr);
    if (what == "abort") std::abort();
    if (what == "overflow") std::printf("%d\n", step_without_end(0));
    if (what == "flag of nobody") { // a barrier that nobody else comes to
        static kumi::Flag flag;     // it outlives the job
        if (job.node() == 0) job.memory().notify(job.arrive(), flag);
        std::this_thread::sleep_for(seconds);
    } else if (what == "barrier and allreduce") {
        if (job.node() == 0) (void)world.allreduce(1, kumi::group::sum, deadline);
        else ended = job.barrier(deadline);
    } else if (job.node() == 1) {
        std::this_thread::sleep_for(seconds + 1s); // it is there when others are late
    } else if (what == "barrier") {
        ended = job.barrier(deadline);
    } else if (what == "allreduce") {
        const auto sum = world.allreduce(1, kumi::group::sum, deadline);
        if (!sum) ended = sum.error();
    } else if (what == "flag") {
        kumi::Flag flag = 3;
        ended = job.memory().wait(flag, 5, deadline);
    } else if (what == "future") {
        auto answer = job.invoke(1, slow, 5).get(deadline);
        if (!answer) ended = answer.error();
    }
    if (!ended) std::printf("node %u: %s\n", job.node(), ended.error().text().c_str());
    std::fflush(stdout);
    return 0;
}
