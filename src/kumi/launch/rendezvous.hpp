#pragma once

// The launcher's side of joining, for nodes of Kumi and MPI processes: a pure state machine that takes frames and
// answers frames. It also knows which nodes are missing.

#include "kumi/base/data/bitmap.hpp"
#include "kumi/base/system/keys.hpp"
#include "kumi/boot/wire.hpp"
#include "kumi/launch/fences.hpp"
#include "kumi/launch/host/host.hpp"
#include "kumi/launch/plan.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kumi::launch {

/// What each node sent to the others, by node; empty for a node that did not report.
using TrafficReports = std::vector<std::vector<boot::TrafficEntry>>;
/// What each node counted, by node; nothing for a node that did not report.
using StatsReports = std::vector<std::optional<std::vector<boot::StatsEntry>>>;

struct RendezvousOptions {
    std::vector<Part> parts; // of the job, by host
    bool traffic_wanted = false;
    bool stats_wanted = false;
    std::uint32_t answer_seconds_max = 0;
    base::JobKeys keys{}; // every node gets them
};

/// A frame for one node, or for host::every_node.
struct Reply {
    std::uint32_t node;
    host::SharedFrame frame;
};

class Rendezvous {
public:
    explicit Rendezvous(RendezvousOptions options);

    /// How many cores the nodes of a host may use together. Call it before the first of them joins.
    void set_cores(std::size_t part, std::uint32_t cores) { cores_[part] = cores; }

    /// Takes a frame of `node`; answers the frames that are to be sent, each with its receiver.
    std::vector<Reply> on_frame(std::uint32_t node, boot::Frame frame);

    /// As a node of Kumi, by MPI_Init, or both.
    bool has_joined(std::uint32_t node) const { return joined_.test(node) || mpi_joined_.test(node); }
    /// Both ways, if it has joined both ways.
    bool has_left(std::uint32_t node) const {
        return left_.test(node) ? !is_in_mpi(node) : mpi_left_.test(node) && !joined_.test(node);
    }
    /// Can say what it waits for.
    bool is_of_kumi(std::uint32_t node) const { return joined_.test(node); }
    bool is_in_mpi(std::uint32_t node) const { return mpi_joined_.test(node) && !mpi_left_.test(node); }
    std::size_t joined_count() const { return arrived_.count(); }
    /// The nodes that have not joined, as "2 on a", "1, 3 on a, 4 on b" or "1, 3 on a and 5 more".
    std::string missing() const;

    /// Why `node` gave up, or why it was refused.
    const std::optional<std::string>& failure(std::uint32_t node) const { return failures_[node]; }

    /// What each node reported on leaving.
    const TrafficReports& traffic() const { return traffic_; }
    const StatsReports& stats() const { return stats_; }

private:
    std::vector<Reply> on_join(std::uint32_t node, const boot::Frame& frame);
    std::vector<Reply> on_fence(std::uint32_t node, const boot::Frame& frame);
    std::vector<Reply> on_fetch(const boot::Frame& frame) const;
    std::vector<Reply> on_exchange(std::uint32_t node, boot::Frame frame);
    void on_traffic(std::uint32_t node, const boot::Frame& frame);
    void on_stats(std::uint32_t node, const boot::Frame& frame);

    RendezvousOptions options_;
    std::uint32_t nodes_;
    std::vector<std::uint32_t> cores_; // by part
    base::Bitmap joined_;
    base::Bitmap left_;
    base::Bitmap mpi_joined_;
    base::Bitmap mpi_left_;
    base::Bitmap arrived_; // joined either way
    base::Bitmap exchanging_; // one round at a time: a node asks again only after its answer
    std::vector<std::vector<std::byte>> exchanged_;
    TrafficReports traffic_;
    StatsReports stats_;
    std::vector<std::optional<std::string>> failures_;
    Fences fences_; // of MPI processes
};

} // namespace kumi::launch
