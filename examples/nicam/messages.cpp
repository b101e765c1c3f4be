// NICAM's primitives, 6: support for message passing.      kumi run -n 4 ./nicam_messages
#include "row.hpp"

#include <array>

/// The sender does not know where the receiver wants the data, and the receiver not where it comes from: they meet by a
/// key.
void nicam_bcopy_src_and_dst(kumi::Job& job) {
    const kumi::Node next = (job.node() + 1) % job.nodes(), before = (job.node() + job.nodes() - 1) % job.nodes();
    const std::array<kumi::Node, 2> mine{job.node(), 1000};
    std::array<kumi::Node, 2> theirs{};
    kumi::Flag taken = 0, arrived = 0;
    constexpr std::uint64_t key = 17;
    kumi::must(job.memory().offer(key, next, std::as_bytes(std::span(mine)), &taken));
    kumi::must(job.memory().accept(key, before, std::as_writable_bytes(std::span(theirs)), &arrived));
    kumi::must(job.memory().wait(arrived));
    row(job, "nicam_bcopy_dst", theirs[0] == before && theirs[1] == 1000);
    kumi::must(job.memory().wait(taken)); // now `mine` may change
    row(job, "nicam_bcopy_src", taken == 1);
}

int main() {
    auto job = kumi::must(kumi::Job::join());
    nicam_bcopy_src_and_dst(job);
}
