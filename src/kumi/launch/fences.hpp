#pragma once

#include "kumi/launch/host/job_map.hpp"
#include "kumi/launch/host/pmi/pmi_frames.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kumi::launch {

/// Brings together what the hosts of a job give to fences of MPI processes (see host::Fence). Pure.
class Fences {
public:
    explicit Fences(std::vector<host::Part> parts) : parts_(std::move(parts)) {}

    struct Completed {
        std::vector<std::uint32_t> nodes; // a node of each host that takes part
        host::Fence fence;                // with the contents of all
    };
    /// Takes what the host of `node` gives. Answers a fence to which all its hosts have come. Ignores one whose key
    /// makes no sense.
    std::optional<Completed> on_fence(std::uint32_t node, host::Fence fence);

private:
    std::optional<std::vector<std::size_t>> hosts_of(std::string_view key) const;

    std::vector<host::Part> parts_;
    /// By key and host, what has come and was not met by all others yet.
    std::map<std::string, std::map<std::size_t, std::deque<std::vector<std::byte>>>> given_;
};

} // namespace kumi::launch
