// NICAM's primitives, 1: set-up.      kumi run -n 4 ./nicam_init
#include "row.hpp"

/// This process is a node of its job until what this returns is destroyed.
kumi::Job nicam_init() {
    auto job = kumi::must(kumi::Job::join());
    row(job, "nicam_init", job.node() < job.nodes());
    return job;
}

/// Memory that others reach is asked for, not locked.
void nicam_lock_memory(kumi::Job& job) {
    const auto everywhere = kumi::must(job.memory().segment<double>(1000)); // all nodes have it
    const auto mine = kumi::must(job.memory().allocate<double>(1000));      // only this one has it, and others reach it
    const bool is_zeroed = everywhere[0] == 0 && everywhere[999] == 0;
    kumi::must(job.memory().release(mine));
    kumi::must(job.memory().free(everywhere));
    row(job, "nicam_lock_memory", is_zeroed && mine.node() == job.node());
}

int main() {
    auto job = nicam_init();
    nicam_lock_memory(job);
}
