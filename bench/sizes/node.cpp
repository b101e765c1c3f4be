#include "sizes/sizes.hpp"

#include "contestant/partner.hpp"
#include "contestant/work.hpp"

#include "kumi/kumi.hpp"

namespace kumi::bench {

int sizes_node(std::span<const std::string> words) {
    if (words.size() != 2) return fail(error("kumi-bench node: what and where are wanted"));
    auto job = PmJob::join();
    if (!job) return fail(job.error());
    Partner partner(job->channel());
    measure_sizes(
        words[0], words[1], job->channel().traits().message_bytes_max, partner.is_first(),
        [&](std::size_t bytes, int count) { return pingpong_seconds(partner, bytes, count); },
        [&](std::size_t bytes, int count) { return stream_seconds(partner, bytes, count); });
    partner.barrier();
    return 0;
}

} // namespace kumi::bench
