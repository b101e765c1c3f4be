// A simulation that is steered while it runs: every 20 ms the master picks the workers near the heat and tells only
// these, which compute and answer in time or not.  kumi run -n 6 ./08_steering [STEPS]; type where the heat is to go
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <kumi/functions.hpp>
#include <poll.h>

int main(int argc, char** argv) {
    const long steps = argc > 1 ? std::atol(argv[1]) : 100;
    kumi::Node self = 0;
    double heat = 0; // of this worker's part of the field
    kumi::Handlers handlers;
    const auto warm = handlers.add("warm", [&](kumi::Call&, double at) { heat += std::exp(-std::abs(at - self)); });
    const auto advance = handlers.function("advance", [&](double seconds) { return heat *= 1 - seconds; });
    const auto add = handlers.function("add", [](double a, double b) { return a + b; });
    auto job = kumi::must(kumi::Job::join(std::move(handlers)));
    self = job.node(), kumi::must(job.barrier());
    long in_time = 0;
    for (double step = 0, centre = 1; self == 0 && step < double(steps); ++step) {
        const auto deadline = kumi::now() + std::chrono::milliseconds(20);
        pollfd input{0, POLLIN, 0};
        if (double wish; std::cin && ::poll(&input, 1, 0) > 0 && std::cin >> wish) centre = wish; // somebody intervenes
        kumi::Set workers;
        for (kumi::Node node = 0; node < job.nodes(); ++node)
            if (std::abs(node - centre) < 1.5) workers.add(node);
        if (workers.empty()) workers.add(0);        // all is cold
        (void)job.multicast(workers, warm, centre); // one message leaves, and it goes on
        const auto total = job.reduce(workers, add, advance, 0.02).get(deadline);
        in_time += total ? 1 : 0;
        fmt::print("step {}: {} compute, heat {}\n", step, workers.text(),
                   total ? fmt::format("{:.3f}", total->value) : "late");
        centre += 0.05;
        job.wait_until([] { return false; }, deadline);
    }
    if (self == 0) fmt::print("{} steps in time, {} late\n", in_time, steps - in_time);
    kumi::must(job.barrier());
}
