// The heat in a plate with a hot upper rim: Laplace's equation by Jacobi's method, on many nodes with many threads.
// Nodes have strips of rows. A row at a cut is put to the neighbour, who needs it for its next step; with overlap such
// rows are computed first and travel while the others are computed.
//
//     kumi run -n 4 ./06_jacobi [SIZE] [STEPS] [THREADS] [overlap|plain]
//
// A fast neighbour does no harm: it puts its row for the next step to the plate that is not read in this one, and for
// the step after that it needs ours, which we put when we have read its last.
#include "jacobi.hpp"

#include <barrier>
#include <cstdlib>
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <string>
#include <thread>
#include <vector>

/// Where this node's strip meets another's.
struct Cut {
    kumi::Node neighbour;
    std::size_t row, row_there;                        // the row that it needs, and where it has that
    kumi::Segment<kumi::Flag> arrived, arrived_there;  // by plate: the time of the row that has come
};

int main(int argc, char** argv) {
    const std::size_t size = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1024;
    const std::size_t steps = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 500;
    const std::size_t threads = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
    const std::string mode = argc > 4 ? argv[4] : "overlap";
    auto job = kumi::must(kumi::Job::join());
    const kumi::Node self = job.node(), nodes = job.nodes();
    if (threads == 0 || size / nodes < threads)
        return kumi::fail(
            kumi::error("{} rows are not one for each of {} threads on each of {} nodes", size, threads, nodes));

    const auto rows_of = [&](kumi::Node node) { return size * (node + 1) / nodes - size * node / nodes; };
    Strip strip{.width = size + 2, .rows = rows_of(self), .rows_max = size / nodes + 1};
    const auto plates = kumi::must(job.memory().segment<double>(strip.size()));
    const auto from_above = kumi::must(job.memory().segment<kumi::Flag>(2));
    const auto from_below = kumi::must(job.memory().segment<kumi::Flag>(2));
    strip.cells = plates.local().data();
    if (self == 0) strip.heat(0);

    std::vector<Cut> cuts;
    if (self > 0) cuts.push_back({self - 1, 1, rows_of(self - 1) + 1, from_above, from_below});
    if (self + 1 < nodes) cuts.push_back({self + 1, strip.rows, 0, from_below, from_above});

    std::barrier all_threads(static_cast<std::ptrdiff_t>(threads));
    const auto compute = [&](std::size_t thread) {
        const std::size_t first = 1 + strip.rows * thread / threads, last = strip.rows * (thread + 1) / threads;
        std::vector<Cut> mine;
        for (const Cut& cut : cuts)
            if (first <= cut.row && cut.row <= last) mine.push_back(cut);

        for (std::size_t time = 0; time < steps; ++time) {
            const auto step_at_cuts = [&] {
                for (const Cut& cut : mine) strip.step(time, cut.row);
                for (const Cut& cut : mine) // not before: with the first of them its neighbour may go on
                    kumi::must(job.memory().put(
                        plates.at(cut.neighbour, strip.index(time + 1, cut.row_there)), strip.row(time + 1, cut.row),
                        kumi::Notice::set(cut.arrived_there.at(cut.neighbour, (time + 1) % 2), time + 1)));
            };
            for (const Cut& cut : mine) kumi::must(job.memory().wait(cut.arrived[time % 2], time));
            if (mode == "overlap") step_at_cuts();
            for (std::size_t row = first; row <= last; ++row)
                if (std::ranges::find(mine, row, &Cut::row) == mine.end()) strip.step(time, row);
            if (mode != "overlap") step_at_cuts();
            all_threads.arrive_and_wait();
        }
    };

    kumi::must(job.barrier());
    const auto start = kumi::now();
    std::vector<std::jthread> others;
    for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(compute, thread);
    compute(0);
    others.clear(); // all have ended
    kumi::must(job.barrier());
    const double seconds = std::chrono::duration<double>(kumi::now() - start).count();

    const auto outcomes = kumi::must(job.memory().segment<Outcome>(nodes));
    const auto arrived = kumi::must(job.memory().segment<kumi::Counter>(1));
    kumi::must(job.memory().write(outcomes.at(0, self), strip.outcome(steps), kumi::Notice::count(arrived.at(0))));
    if (self == 0) {
        job.memory().expect(arrived[0], nodes);
        kumi::must(job.memory().wait(arrived[0].flag));
        Outcome all;
        for (const Outcome& outcome : outcomes.local()) all.add(outcome);
        fmt::print("nodes {}, threads {}, {}: {:.3f} s\n", nodes, threads, mode, seconds);
        fmt::print("{0} x {0} cells, {1} steps: last change {2:.3g}, checksum {3:016x}\n", size, steps, all.change,
                   all.checksum);
    }
    kumi::must(job.barrier());
}
