// NICAM's primitives, 4: broadcast.      kumi run -n 4 ./nicam_broadcast
#include "row.hpp"

/// The same data to the same place on all nodes, each of which is told.
void nicam_bcast(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(1));
    const auto flags = kumi::must(job.memory().segment<kumi::Flag>(1));
    const int value = 42;
    if (job.node() == 0) kumi::must(job.memory().broadcast(data.at(0), {&value, 1}, kumi::Notice::set(flags.at(0))));
    kumi::must(job.memory().wait(flags[0]));
    row(job, "nicam_bcast", data[0] == 42);
}

/// Odd nodes want none of it.
void nicam_bcast_discard(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(1));
    const bool discards = job.node() % 2 == 1;
    const int value = 42;
    job.memory().discard_broadcasts(discards);
    kumi::must(job.barrier()); // all have said whether they want it
    if (job.node() == 0) kumi::must(job.memory().broadcast(data.at(0), {&value, 1}));
    kumi::must(job.sync());
    kumi::must(job.barrier());
    row(job, "nicam_bcast_discard", data[0] == (discards ? 0 : 42));
    job.memory().discard_broadcasts(false);
}

int main() {
    auto job = kumi::must(kumi::Job::join());
    nicam_bcast(job), nicam_bcast_discard(job);
}
