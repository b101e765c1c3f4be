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

/// One of the channels that a composite is made of.
struct Plan {
    std::string name;                   // of the network, for people
    std::unique_ptr<pm::Device> device; // null where this node is not on it
    std::vector<pm::Node> members;      // their numbers in the composite, in the order of their numbers on the channel
    // its place among the plans of this kind is found by measuring, the same for all nodes
    bool is_measured = false;
};

/// Two nodes that a plan has as members, and one of them does not hear the other there.
struct Silent {
    std::size_t plan;
    pm::Node one;
    pm::Node other;
};

/// Joins nodes by several devices. Before anything else is sent each way is tried; of those that two nodes have and
/// that work, they use the best, and the others when it fails.
class CompositeDevice final : public pm::Device {
public:
    /// All nodes have as many plans, the best first unless they are measured, and open them together. A device that is
    /// part of a composite makes one exchange() when it opens. `joins(plan, to)` says whether this node may use a plan
    /// for what it has for `to`; both must be members. Ways that do not answer within `patience` are used when they do.
    CompositeDevice(std::vector<Plan> plans, std::function<bool(std::size_t, pm::Node)> joins,
                    Duration patience = std::chrono::seconds(2))
        : plans_(std::move(plans)), joins_(std::move(joins)), patience_(patience) {}

    /// Who passes on messages to nodes that no plan joins with this one, knowing who does not hear whom.
    struct Relays {
        std::vector<Path> paths;      // by destination; empty for those that a plan joins
        std::vector<pm::Node> served; // who sends through this node
    };
    using FindRelays = std::function<Relays(const std::vector<Silent>&)>;
    void set_relays(FindRelays find) { find_relays_ = std::move(find); }

    /// Tries whether large messages are faster over several networks at once. While it is tried they may be much
    /// slower.
    void set_stripes(bool wanted) { has_stripes_ = wanted; }

    /// What nodes are called when the user is told of them, by node.
    void set_names(std::vector<std::string> names) { names_ = std::move(names); }

    /// A node that answers by no way for so long is lost; 0: never.
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
    bool has_stripes_ = false;
};

} // namespace kumi::device::composite
