#pragma once

#include "kumi/base/assert.hpp"
#include "kumi/device/composite/part.hpp"
#include "kumi/pm/channel.hpp"

#include <optional>
#include <vector>

namespace kumi::device::composite {

/// The memory of the nodes of this host, by the composite's numbers. For other nodes direct() answers null, and reach()
/// does nothing.
class HostMemory final : public pm::RemoteMemory {
public:
    /// The part's channel has remote memory. `nodes` is the composite's.
    HostMemory(const Part& part, Node nodes) : memory_(*part.channel->remote_memory()), numbers_(nodes) {
        for (std::size_t i = 0; i < part.members.size(); ++i) numbers_[part.members[i]] = static_cast<Node>(i);
    }

    std::size_t window_bytes() const noexcept override { return memory_.window_bytes(); }
    Result<MutableBytes> expose(std::uint64_t offset, std::size_t bytes) override {
        return memory_.expose(offset, bytes);
    }
    void conceal(std::uint64_t offset, std::size_t bytes) noexcept override { memory_.conceal(offset, bytes); }
    Result<void> reach(Node node) override {
        KUMI_ASSERT(node < numbers_.size());
        return numbers_[node] ? memory_.reach(*numbers_[node]) : Result<void>{};
    }
    std::byte* direct(Node node, std::uint64_t offset) noexcept override {
        KUMI_ASSERT(node < numbers_.size());
        return numbers_[node] ? memory_.direct(*numbers_[node], offset) : nullptr;
    }

private:
    pm::RemoteMemory& memory_;
    std::vector<std::optional<Node>> numbers_; // there, by node
};

} // namespace kumi::device::composite
