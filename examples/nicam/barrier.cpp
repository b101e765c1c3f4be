// NICAM's primitives, 5: barriers.      kumi run -n 4 ./nicam_barrier
#include "row.hpp"

/// Several may be under way, and each node computes while it waits for the others.
void nicam_barrier(kumi::Job& job) {
    const auto arrivals = kumi::must(job.memory().segment<int>(2));
    bool is_right = true;
    kumi::must(job.memory().fetch_add(arrivals.at(0, 0), 1));
    const kumi::BarrierToken first = job.arrive();
    kumi::must(job.memory().fetch_add(arrivals.at(0, 1), 1));
    const kumi::BarrierToken second = job.arrive();
    while (!job.test(second)) job.poll(); // here a program computes
    kumi::must(job.wait(first));
    for (const int index : {0, 1})
        is_right &= kumi::must(job.memory().read(arrivals.at(0, static_cast<std::size_t>(index)))) ==
                    static_cast<int>(job.nodes());
    row(job, "nicam_barrier", is_right);
}

int main() {
    auto job = kumi::must(kumi::Job::join());
    nicam_barrier(job);
}
