#pragma once

// How a node learns its number, and exchanges data with the other nodes, however the program was started.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/base/system/keys.hpp"
#include "kumi/boot/wire.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::boot {

/// This node's position in its job.
struct Standing {
    std::uint32_t node = 0;
    std::uint32_t nodes = 1;
    std::uint32_t slot = 0; // number of the node on its host
    std::uint32_t nodes_on_host = 1;
    std::uint32_t cores_on_host = 1; // of all nodes of the host together
    std::string host;
    std::vector<std::string> hosts; // all hosts of the job, in the order of their lowest nodes
    bool traffic_wanted = false; // call report_traffic() before leave()
    bool stats_wanted = false;   // call report_stats() before leave()
    base::JobKeys keys{};
};

/// This node's connection to its launcher, from joining to leaving. Calls block until a deadline.
class Session {
public:
    virtual ~Session() = default;

    virtual const Standing& standing() const noexcept = 0;

    /// Collective over all nodes of the job: gives some bytes, and returns those of all nodes, by node number.
    virtual Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) = 0;

    /// Collective over the nodes of a host: slot 0 gives a descriptor; the other nodes give none and get a duplicate.
    virtual Result<base::Descriptor> share_on_host(base::Descriptor mine) = 0;

    virtual void report_traffic(std::span<const TrafficEntry> entries) = 0;
    virtual void report_stats(std::span<const StatsEntry> entries) = 0;

    /// Reports why this node gives up. True if the launcher will tell the user.
    virtual bool report_failure(const Error& reason) = 0;

    /// A deadline has passed in a call that waited for long. The launcher may ask all nodes what they wait for.
    virtual void report_late(std::string_view) {}
    /// The launcher may ask what this node waits for.
    virtual bool has_questions() const noexcept { return false; }
    /// From now on this process gets `signal` when the launcher asks. Call it after the last exchange().
    virtual void signal_questions(int) {}

    /// Leaves: from now on this node may exit without an error.
    virtual void leave() = 0;
};

/// Joins the job by the launcher that started this process: `kumi run`, or another one. A program started by hand is a
/// job of one node.
Result<std::unique_ptr<Session>> open_session();

} // namespace kumi::boot
