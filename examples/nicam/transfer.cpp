// NICAM's primitives, 2: remote data transfer.      kumi run -n 4 ./nicam_transfer
#include "row.hpp"

/// Source and destination may be any two nodes.
void nicam_bcopy(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(2));
    const kumi::Node last = job.nodes() - 1;
    data[0] = static_cast<int>(job.node()) + 100;
    kumi::must(job.barrier());
    if (job.node() == last / 2) kumi::must(job.memory().copy(data.at(0, 0), data.at(last, 1), 1));
    kumi::must(job.sync());
    kumi::must(job.barrier());
    row(job, "nicam_bcopy", job.node() == last ? data[1] == 100 : data[1] == 0);
}

/// A flag is set when all that this node has begun is done.
void nicam_sync(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(1));
    const int value = 5;
    kumi::Flag done = 0;
    kumi::must(job.memory().start_put(data.at(job.node()), {&value, 1}));
    kumi::must(job.start_sync(done));
    kumi::must(job.memory().wait(done)); // or sync(), which does both
    row(job, "nicam_sync", data[0] == 5);
}

void nicam_write1(kumi::Job& job) {
    const auto flags = kumi::must(job.memory().segment<kumi::Flag>(1));
    kumi::must(job.memory().set_flag(flags.at((job.node() + 1) % job.nodes()), 7));
    kumi::must(job.memory().wait(flags[0], 7));
    row(job, "nicam_write1", flags[0] == 7);
}

int main() {
    auto job = kumi::must(kumi::Job::join());
    nicam_bcopy(job), nicam_sync(job), nicam_write1(job);
}
