#pragma once

// Which node of a job runs on which host, by the options of the command line.

#include "kumi/base/result.hpp"
#include "kumi/launch/host/job_map.hpp"
#include "kumi/launch/job_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch {

using host::Part;
using host::part_of;

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
