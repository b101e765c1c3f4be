#pragma once

// Who am I, who are the others: the same program finds out by itself, whoever started it.

#include "kumi/base/bytes.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/keys.hpp"
#include "kumi/base/result.hpp"
#include "kumi/boot/wire.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kumi::boot {

/// Where this node stands in its job.
struct Standing {
    std::uint32_t node = 0;
    std::uint32_t nodes = 1;
    std::uint32_t slot = 0; // its number on its host
    std::uint32_t nodes_on_host = 1;
    std::uint32_t cores_on_host = 1; // for these nodes together
    std::string host;
    std::vector<std::string> hosts; // the job's, by their lowest nodes
    bool traffic_wanted = false; // report_traffic() before leaving
    bool stats_wanted = false;   // report_stats() before leaving
    base::JobKeys keys{};
};

/// This node's line to whoever started it, from joining to leaving. Calls block, to a deadline.
class Session {
public:
    virtual ~Session() = default;

    virtual const Standing& standing() const noexcept = 0;

    /// Every node of the job gives some bytes and gets all, by node number.
    virtual Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) = 0;

    /// Slot 0 of each host gives a descriptor; the other nodes of the host give none and get a duplicate.
    virtual Result<base::Descriptor> share_on_host(base::Descriptor mine) = 0;

    virtual void report_traffic(std::span<const TrafficEntry> entries) = 0;
    virtual void report_stats(std::span<const StatsEntry> entries) = 0;

    /// Says why this node gives up. True when whoever started it tells the user.
    virtual bool report_failure(const Error& reason) = 0;

    /// From now on this node may exit without being missed.
    virtual void leave() = 0;
};

/// Finds out how this process was started: by `kumi run`, by another launcher, or by hand, which makes a job of one
/// node.
Result<std::unique_ptr<Session>> open_session();

} // namespace kumi::boot
