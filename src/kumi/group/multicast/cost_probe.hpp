#pragma once

// What messages take on this job's network. Unless the costs are given, this node measures them with the first
// multicasts that go whole: a train of messages (plan/probing.hpp) goes to a member right before the multicast does.
// The member owes an answer to that multicast, so it is there until the train has come.

#include "kumi/base/clock.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/multicast/send_queue.hpp"
#include "kumi/group/plan/choice.hpp"
#include "kumi/group/plan/probing.hpp"
#include "kumi/group/topology.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::group {

/// The nodes that costs are measured with. Where there are several hosts they are on another host, and where there are
/// clusters in this one: of the messages that take long, most go so.
Set find_typical(const engine::Dispatcher& dispatcher, const Topology& topology);

class CostProbe {
public:
    /// Measures, unless costs are given. Until all is measured the usual costs count. The queue must outlive this.
    CostProbe(engine::Dispatcher& dispatcher, const engine::Port& port, const Topology& topology, SendQueue& queue,
              const std::optional<Costs>& given, const Costs& usual);
    CostProbe(const CostProbe&) = delete;
    CostProbe& operator=(const CostProbe&) = delete;

    const Costs& costs(const engine::Turn&) const noexcept { return costs_; }
    bool is_measuring() const noexcept { return probing_.has_value(); }
    /// Goes on with measuring, right before these children are sent a multicast. Only while it is measuring.
    void probe(const engine::Turn& turn, const std::vector<Child>& children);

    // What comes; false: it makes no sense.

    /// A message of another node's train; the last one is sent back.
    bool on_probe(const engine::Turn& turn, Node source, Bytes bytes);
    /// The last message of a train is back.
    bool on_probed(const engine::Turn& turn, Node source, Bytes bytes);

private:
    engine::Dispatcher& dispatcher_;
    engine::Port port_;
    SendQueue& queue_;
    Costs costs_;
    std::optional<Probing> probing_; // until the costs are known
    Set typical_;
    Node probed_ = 0; // the node that the last train went to
    std::uint64_t train_ = 0;
    std::optional<Instant> train_left_; // while a train is under way
};

} // namespace kumi::group
