// NICAM's primitives, 1: set-up.      kumi run -n 4 ./nicam_init
#include "row.hpp"

#include <vector>

/// This process is a node of its job until what this returns is destroyed.
kumi::Job nicam_init() {
    auto job = kumi::must(kumi::Job::join());
    row(job, "nicam_init", job.node() < job.nodes());
    return job;
}

/// Other nodes reach an array of this program.
void nicam_lock_memory(kumi::Job& job) {
    std::vector<int> values{0, 1, 2};
    const auto mine = kumi::must(job.memory().expose(values));
    const auto all = kumi::must(job.memory().segment<kumi::global_ptr<int>>(job.nodes())); // where each node has it
    for (kumi::Node to = 0; to < job.nodes(); ++to) kumi::must(job.memory().write(all.at(to, job.node()), mine));
    kumi::must(job.sync());
    kumi::must(job.barrier());
    kumi::must(job.memory().write(all[(job.node() + 1) % job.nodes()] + 2, 42));
    kumi::must(job.sync());
    kumi::must(job.barrier());
    kumi::must(job.memory().conceal(mine)); // from now on no other node reaches it
    row(job, "nicam_lock_memory", values[1] == 1 && values[2] == 42);
}

int main() {
    auto job = nicam_init();
    nicam_lock_memory(job);
}
