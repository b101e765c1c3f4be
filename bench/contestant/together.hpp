#pragma once

#include "contestant/measure.hpp"
#include "contestant/work.hpp"

#include "kumi/kumi.hpp"

#include <cstdint>

namespace kumi::bench {

/// Numbers that the nodes of a job agree on. Collective: all nodes make the same calls in the same order.
class Together {
public:
    explicit Together(Job& job) : job_(job), words_(must(job.memory().segment<std::int64_t>(2))) {}

    /// Returns the number of node 0 at all nodes.
    std::int64_t as_first_says(std::int64_t mine) {
        if (job_.node() == 0)
            for (Node node = 0; node < job_.nodes(); ++node) must(job_.memory().write(words_.at(node, said), mine));
        must(job_.sync());
        must(job_.barrier());
        const std::int64_t first_says = words_[said];
        must(job_.barrier()); // before node 0 writes its next number
        return first_says;
    }

    /// The mean over all nodes. Only the result at node 0 counts.
    double mean(double mine) {
        constexpr double parts = 1e6;
        must(job_.memory().fetch_add(words_.at(0, sum), static_cast<std::int64_t>(mine * parts)));
        must(job_.barrier());
        const double mean = static_cast<double>(words_[sum]) / parts / job_.nodes();
        must(job_.barrier());
        if (job_.node() == 0) words_[sum] = 0;
        must(job_.barrier());
        return mean;
    }

private:
    static constexpr std::size_t said = 0, sum = 1; // indices in the segment

    Job& job_;
    Segment<std::int64_t> words_;
};

/// Seconds of one barrier of all nodes. Collective.
inline double barrier_seconds(Job& job, Together& together) {
    const auto barriers = [&](std::int64_t count) { return seconds_each(count, [&] { must(job.barrier()); }); };
    return settled_seconds(barriers_first, barriers, [&](std::int64_t count) { return together.as_first_says(count); });
}

} // namespace kumi::bench
