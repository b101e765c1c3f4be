#include "sizes/sizes.hpp"

#include "contestant/partner.hpp"
#include "contestant/work.hpp"

#include "kumi/kumi.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kumi::bench {

int sizes_node(std::span<const std::string> words) {
    if (words.size() != 2) return fail(error("kumi-bench node: what and where are wanted"));
    const bool is_latency = words[0] == "latency";
    auto job = PmJob::join();
    if (!job) return fail(job.error());
    Partner partner(job->channel());
    for (const std::size_t bytes : all_sizes) {
        if (bytes > job->channel().traits().message_bytes_max) break;
        double value = 0;
        for (const int part : {10, 1})
            value = is_latency ? pingpong_seconds(partner, bytes, std::max(1, pingpongs_of_size(bytes) / part)) * 1e6
                               : static_cast<double>(bytes) * 1e-6 /
                                     stream_seconds(partner, bytes, std::max(1, stream_of_size(bytes) / part));
        if (partner.is_first()) report(fmt::format("sizes.{}.{}.{}", words[0], words[1], bytes).c_str(), value);
    }
    partner.barrier();
    return 0;
}

} // namespace kumi::bench
