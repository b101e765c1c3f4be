// NICAM's primitives, 4: broadcast.      kumi run -n 4 ./nicam_broadcast
#include "row.hpp"

/// The same data to the same place on all nodes, each of which is told.
void nicam_bcast(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(1));
    const auto flags = kumi::must(job.memory().segment<kumi::Flag>(1));
    const int value = 42;
    const auto all = kumi::Set::range(0, job.nodes()); // or any set of nodes
    if (job.node() == 0) kumi::must(job.multicast(all, data.at(0), {&value, 1}, kumi::Notice::set(flags.at(0))).get());
    kumi::must(job.memory().wait(flags[0]));
    row(job, "nicam_bcast", data[0] == 42);
}

/// Odd nodes want none of it.
void nicam_bcast_discard(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(1));
    const bool discards = job.node() % 2 == 1;
    const int value = 42;
    job.groups().discard_stores(discards);
    kumi::must(job.barrier()); // all have said whether they want it
    const auto all = kumi::Set::range(0, job.nodes());
    if (job.node() == 0) kumi::must(job.multicast(all, data.at(0), {&value, 1}).get());
    kumi::must(job.barrier());
    row(job, "nicam_bcast_discard", data[0] == (discards ? 0 : 42));
    job.groups().discard_stores(false);
}

int main() {
    auto job = kumi::must(kumi::Job::join());
    nicam_bcast(job), nicam_bcast_discard(job);
}
