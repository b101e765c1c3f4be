#pragma once

#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/device/composite/channel.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kumi::device::composite {

/// Makes the composites of all nodes in one process: for threads as nodes, or to be shared out by fork().
class Assembly {
public:
    using Ends = std::vector<std::unique_ptr<pm::Channel>>;

    explicit Assembly(Node nodes) : nodes_(nodes) {}

    /// Adds a channel between `members`, as the best: channels that were added before are used when it fails. `open`
    /// gets a waker for each member, for devices that want one, and answers all ends.
    Result<void> add(const std::vector<Node>& members,
                     base::FunctionRef<Result<Ends>(std::span<pm::Waker* const>)> open, const std::string& name = {});
    /// Messages from `from` to `to` that no channel carries go through `via`. At most once for two nodes, after all
    /// channels were added.
    void add_relay(Node from, Node via, Node to);

    /// All composites, by node. Every two nodes must have a channel by now.
    Result<Ends> finish(const StripeOptions& stripes = {});

private:
    using Ways = std::vector<ChosenWay>;

    Result<void> open_sleep_sets();
    void complete_paths();
    std::vector<std::vector<Node>> served() const;

    Node nodes_;
    std::vector<std::unique_ptr<SleepSet>> sleeps_;     // by node
    std::vector<std::vector<Part>> parts_;              // by node
    std::vector<std::vector<Ways>> ways_to_;            // by node and destination
    std::uint32_t count_ = 0;                           // of channels
};

} // namespace kumi::device::composite
