#pragma once

// `kumi run`'s side of the joining: a pure state machine. Frames in, frames out; who is missing is there to be asked.

#include "kumi/base/bitmap.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/keys.hpp"
#include "kumi/boot/wire.hpp"
#include "kumi/launch/stats_table.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kumi::launch {

struct RendezvousOptions {
    std::uint32_t nodes = 1;
    std::string host;
    std::uint32_t cores = 1;
    bool traffic_wanted = false;
    bool stats_wanted = false;
    std::uint32_t answer_seconds_max = 0;
    base::JobKeys keys{}; // every node gets them
};

/// A frame for one node. The descriptor is shared by all frames that carry it.
struct Reply {
    std::uint32_t node;
    std::vector<std::byte> frame;
    std::shared_ptr<base::Descriptor> descriptor;
};

class Rendezvous {
public:
    explicit Rendezvous(RendezvousOptions options);

    /// Takes a frame of `node`; answers what is to be sent, to whom.
    std::vector<Reply> on_frame(std::uint32_t node, boot::Frame frame);

    bool has_joined(std::uint32_t node) const { return joined_.test(node); }
    bool has_left(std::uint32_t node) const { return left_.test(node); }
    std::size_t joined_count() const { return joined_.count(); }
    /// The nodes that have not joined, as "2", "1, 3" or "1, 3 and 5 more".
    std::string missing() const;

    /// Why `node` gave up, or why it was refused.
    const std::optional<std::string>& failure(std::uint32_t node) const { return failures_[node]; }

    /// What each node reported on leaving; empty when it did not.
    const std::vector<std::vector<boot::TrafficEntry>>& traffic() const { return traffic_; }
    const StatsReports& stats() const { return stats_; }

private:
    std::vector<Reply> on_join(std::uint32_t node, const boot::Frame& frame);
    std::vector<Reply> on_share(std::uint32_t node, boot::Frame frame);
    std::vector<Reply> on_exchange(std::uint32_t node, boot::Frame frame);
    void on_traffic(std::uint32_t node, const boot::Frame& frame);
    void on_stats(std::uint32_t node, const boot::Frame& frame);

    RendezvousOptions options_;
    base::Bitmap joined_;
    base::Bitmap left_;
    // One sharing and one exchange are under way at a time: a node asks again only after its answer.
    base::Bitmap waiting_for_share_;
    std::shared_ptr<base::Descriptor> shared_;
    base::Bitmap exchanging_;
    std::vector<std::vector<std::byte>> exchanged_;
    std::vector<std::vector<boot::TrafficEntry>> traffic_;
    StatsReports stats_;
    std::vector<std::optional<std::string>> failures_;
};

} // namespace kumi::launch
