#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/device/composite/letters/envelope.hpp"
#include "kumi/pm/device.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kumi::device::composite {

struct Part;
struct Probed;

/// One of the channels that a composite is to be made of; an open one is a Part.
struct Plan {
    std::string name;                   // of the network, for people
    std::unique_ptr<pm::Device> device; // null where this node is not on the network
    std::vector<pm::Node> members;      // by the channel's numbers: the composite's numbers of these nodes
    // The order of the plans that are measured is found by measuring, the same for all nodes.
    bool is_measured = false;
};

/// Two members of a plan of which one does not hear the other.
struct Silent {
    std::size_t plan;
    pm::Node one;
    pm::Node other;
};

/// Joins nodes by several devices. Before anything else is sent each channel between two nodes is tried; of those that
/// work they use the best, and the next when that fails.
class CompositeDevice final : public pm::Device {
public:
    /// All nodes have as many plans, the best first unless they are measured, and open them together. A device that is
    /// part of a composite makes one exchange() when it opens. `joins(plan, to)` says whether this node may use a plan
    /// for its messages to `to`; both nodes must be members. Channels on which a node does not answer within `patience`
    /// are used to that node when it does.
    CompositeDevice(std::vector<Plan> plans, std::function<bool(std::size_t, pm::Node)> joins,
                    Duration patience = std::chrono::seconds(2))
        : plans_(std::move(plans)), joins_(std::move(joins)), patience_(patience) {}

    /// The nodes that pass on messages to nodes that no plan joins with this one.
    struct Relays {
        std::vector<Path> paths;      // by destination; empty for nodes that a plan joins with this one
        std::vector<pm::Node> served; // nodes that send through this node
    };
    /// Plans the relays. Called with all pairs of nodes of which one does not hear the other.
    using FindRelays = std::function<Relays(const std::vector<Silent>&)>;
    void set_relays(FindRelays find) { find_relays_ = std::move(find); }

    /// Unless `wanted`, large messages are never sent over several networks at once, also where that is faster.
    void set_stripes(bool wanted) { has_stripes_ = wanted; }

    /// The names of nodes in messages for the user, by node.
    void set_names(std::vector<std::string> names) { names_ = std::move(names); }

    /// A node that answers by no network for so long is lost; 0: never.
    void set_silence(Duration limit) { silence_max_ = limit; }

    std::string_view name() const noexcept override { return "composite"; }
    /// Once.
    Result<std::unique_ptr<pm::Channel>> open(const pm::Opening& opening) override;

private:
    struct Chosen {
        std::uint32_t plan;
        bool works; // it has answered
    };
    Result<std::vector<std::vector<Chosen>>> choose(std::vector<Part>& parts, std::vector<Probed>& probed,
                                                    const std::vector<Path>& paths, const pm::Opening& opening);
    Result<void> arrange(std::vector<Part>& parts, std::vector<Probed>& probed, const pm::Opening& opening);

    std::vector<Plan> plans_;
    std::function<bool(std::size_t, pm::Node)> joins_;
    Duration patience_;
    FindRelays find_relays_;
    std::vector<std::string> names_;
    Duration silence_max_ = std::chrono::seconds(60);
    bool has_stripes_ = true;
};

} // namespace kumi::device::composite
