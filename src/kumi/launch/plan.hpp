#pragma once

// Who runs what: a job's nodes on its hosts, as the command line has it.

#include "kumi/base/result.hpp"
#include "kumi/launch/job_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch {

/// One host's part of a job: nodes whose numbers are in a row.
struct Part {
    std::string host;
    std::uint32_t first = 0;
    std::uint32_t count = 1;
};

/// Which of `parts`, of which none is missing and the lowest comes first, `node` belongs to.
std::size_t part_of(const std::vector<Part>& parts, std::uint32_t node) noexcept;

struct Plan {
    /// All of it on this host.
    bool is_here() const;

    std::vector<Part> parts;                 // only hosts that have nodes, the lowest first
    std::optional<std::string> cluster_text; // of the cluster file
};

/// All on this host, unless the options name others.
Result<Plan> plan_job(const JobOptions& options);

/// Whether `name` stands for the host that calls itself `own`, whose domain may be missing on either side.
bool names_this_host(std::string_view name, std::string_view own) noexcept;

} // namespace kumi::launch
