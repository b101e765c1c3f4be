#include "engine/node.hpp"

#include "contestant/measure.hpp"
#include "contestant/work.hpp"
#include "engine/compute.hpp"

#include "kumi/kumi.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace kumi::bench {

using namespace std::chrono_literals;

int answer_node(const std::string& place) {
    constexpr int questions = 500;
    std::uint64_t answered = 0;
    std::atomic<bool> is_over = false;
    Handlers handlers;
    const auto answer = handlers.add("bench.answer", [&](Call&, std::uint64_t number) { answered = number; });
    const auto ask =
        handlers.add("bench.ask", [answer](Call& call, std::uint64_t number) { call.reply(answer, number); });
    const auto end = handlers.add("bench.end", [&](Call&) { is_over = true; });
    Job job = must(Job::join(std::move(handlers)));
    must(job.barrier());
    if (job.node() == 1) {
        while (!is_over) compute(1000); // without calls of Kumi
    } else {
        std::this_thread::sleep_for(20ms); // by then the other node computes
        std::vector<double> microseconds;
        for (std::uint64_t number = 1; number <= questions; ++number) {
            const auto start = MeasuringClock::now();
            must(job.send(1, ask, number));
            job.wait_until([&] { return answered == number; });
            microseconds.push_back(Seconds(MeasuringClock::now() - start).count() * 1e6);
            std::this_thread::sleep_for(500us); // so that the other node does not expect a request
        }
        report(("engine.answer." + place).c_str(), median_of(std::move(microseconds)));
        must(job.send(1, end));
    }
    must(job.barrier());
    return 0;
}

int idle_node(const std::string& place) {
    Job job = must(Job::join());
    must(job.barrier());
    std::this_thread::sleep_for(200ms); // until the traffic of the barrier is over
    constexpr auto how_long = 2s;
    const double before = cpu_seconds();
    std::this_thread::sleep_for(how_long);
    const double used = cpu_seconds() - before;
    const std::string row = place == "shmem" ? "engine.idle" : "engine.idle." + place;
    if (job.node() == 0) report(row.c_str(), 100 * used / Seconds(how_long).count());
    must(job.barrier());
    return 0;
}

} // namespace kumi::bench
