#pragma once

// What all rows of docs/nicam.md have in common.

#include <cstdlib>
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <string_view>

/// Ends the job if this node found something wrong; node 0 prints a line when nobody did.
inline void row(kumi::Job& job, std::string_view primitive, bool is_right) {
    if (!is_right) std::exit(kumi::fail(kumi::error("{} went wrong on node {}", primitive, job.node())));
    kumi::must(job.barrier());
    if (job.node() == 0) fmt::print("{} works\n", primitive);
}
