// NICAM's primitives, 4: broadcast.      kumi run -n 4 ./nicam_broadcast
#include "row.hpp"

/// Data of any node to the same place on all nodes, each of which is told.
void nicam_bcast(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(2));
    const auto flags = kumi::must(job.memory().segment<kumi::Flag>(1));
    const auto source = data.at(job.nodes() - 1, 1); // or an array that its node has exposed
    if (source.node() == job.node()) data[1] = 42;
    kumi::must(job.barrier());
    const auto all = kumi::Set::range(0, job.nodes()); // or any set of nodes
    const auto notice = kumi::Notice::set(flags.at(0));
    if (job.node() == 0) kumi::must(job.multicast(all, data.at(0), source, 1, notice).get());
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
