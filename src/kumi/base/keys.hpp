#pragma once

// What the nodes of one job know and nobody else does.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kumi::base {

/// Tell a job's packets from those of other jobs and of strangers. No command line, environment or log ever holds them.
/// `kumi run` makes them, and they reach its nodes over the boot socket only. Under another launcher node 0 makes them,
/// and they travel as that launcher's own data does: boot/foreign.hpp says what this means.
struct JobKeys {
    std::uint64_t token = 0; // names the job; 0 is no job's
    std::array<std::byte, 32> secret{};

    friend bool operator==(const JobKeys&, const JobKeys&) = default;
};
static_assert(sizeof(JobKeys) == 40);

/// Fills `bytes` with random ones of the kernel's. An error begins with `purpose`.
Result<void> fill_with_random(MutableBytes bytes, std::string_view purpose);

/// Keys that no other job has: the kernel's random bytes.
Result<JobKeys> make_job_keys();

} // namespace kumi::base
