#pragma once

// The secrets that the nodes of one job share.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kumi::base {

/// Distinguish the packets of a job from those of other jobs and of strangers. No command line, environment variable or
/// log ever contains them. `kumi run` makes them and sends them to its nodes over the boot socket only. Under another
/// launcher node 0 makes them, and they travel as that launcher's own data does; boot/foreign.hpp says what this means.
struct JobKeys {
    std::uint64_t token = 0; // names the job; no job has 0
    std::array<std::byte, 32> secret{};

    friend bool operator==(const JobKeys&, const JobKeys&) = default;
};
static_assert(sizeof(JobKeys) == 40);

/// Fills `bytes` with random bytes from the kernel. The text of an error begins with `purpose`.
Result<void> fill_with_random(MutableBytes bytes, std::string_view purpose);

/// Makes new keys from random bytes of the kernel.
Result<JobKeys> make_job_keys();

} // namespace kumi::base
