#pragma once

#include "kumi/pm/device.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kumi::device::composite {

/// One of the channels that a composite is made of.
struct Plan {
    std::unique_ptr<pm::Device> device;  // null where this node is not on it
    std::vector<pm::Node> members; // their numbers in the composite, in the order of their numbers on the channel
};

/// Joins nodes by several devices: each pair by the one that is planned for it.
class CompositeDevice final : public pm::Device {
public:
    /// All nodes have as many plans, in the same order: they open them together. `plan_of` says for each destination,
    /// this node included, which of them carries messages to it. A device that is part of a composite makes one
    /// exchange() when it opens.
    CompositeDevice(std::vector<Plan> plans, std::vector<std::uint32_t> plan_of) : plans_(std::move(plans)), plan_of_(std::move(plan_of)) {}

    std::string_view name() const noexcept override { return "composite"; }
    /// Once.
    Result<std::unique_ptr<pm::Channel>> open(const pm::Opening& opening) override;

private:
    std::vector<Plan> plans_;
    std::vector<std::uint32_t> plan_of_;
};

} // namespace kumi::device::composite
