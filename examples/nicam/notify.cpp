// NICAM's primitives, 3: remote data transfer that tells of its arrival.      kumi run -n 4 ./nicam_notify
#include "row.hpp"

/// A flag at the destination is set after the data has arrived there.
void nicam_bcopy_notify(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(1));
    const auto flags = kumi::must(job.memory().segment<kumi::Flag>(1));
    const kumi::Node next = (job.node() + 1) % job.nodes(), before = (job.node() + job.nodes() - 1) % job.nodes();
    kumi::must(job.memory().write(data.at(next), static_cast<int>(job.node()), kumi::Notice::set(flags.at(next))));
    kumi::must(job.memory().wait(flags[0]));
    row(job, "nicam_bcopy_notify", data[0] == static_cast<int>(before));
}

/// Arrivals are counted; the counter's flag is set when as many have come as were expected.
void nicam_bcopy_countup(kumi::Job& job) {
    const auto data = kumi::must(job.memory().segment<int>(job.nodes()));
    const auto counters = kumi::must(job.memory().segment<kumi::Counter>(1));
    job.memory().expect(counters[0], job.nodes()); // nicam_set_counter; before the data or after it
    for (kumi::Node to = 0; to < job.nodes(); ++to)
        kumi::must(job.memory().write(data.at(to, job.node()), 1, kumi::Notice::count(counters.at(to))));
    kumi::must(job.memory().wait(counters[0].flag));
    kumi::Node sum = 0;
    for (const int one : data.local()) sum += static_cast<kumi::Node>(one);
    row(job, "nicam_bcopy_countup", sum == job.nodes());
    row(job, "nicam_set_counter", counters[0].missing == 0);
}

int main() {
    auto job = kumi::must(kumi::Job::join());
    nicam_bcopy_notify(job), nicam_bcopy_countup(job);
}
