#pragma once

// Which node of a job runs on which host, by the options of the command line.

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

/// The index of the part that `node` belongs to. Requires that `parts` has all nodes of a job, the lowest first.
std::size_t part_of(const std::vector<Part>& parts, std::uint32_t node) noexcept;

struct Plan {
    /// True when all nodes run on this host.
    bool is_here() const;

    std::vector<Part> parts;                 // only hosts that have nodes, the lowest first
    std::optional<std::string> cluster_text; // of the cluster file
};

/// Places the nodes on the hosts that the options name; on this host, if they name none.
Result<Plan> plan_job(const JobOptions& options);

/// Whether `name` stands for the host that calls itself `own`. `name` may lack the domain that `own` has; the other way
/// round it may name a host elsewhere.
bool names_this_host(std::string_view name, std::string_view own) noexcept;

} // namespace kumi::launch
