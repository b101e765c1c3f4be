#include "kumi/group/multicast/cost_probe.hpp"

#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <array>

namespace kumi::group {

Set find_typical(const engine::Dispatcher& dispatcher, const Topology& topology) {
    const std::vector<Node>& firsts = dispatcher.agreed().firsts;
    const Node self = dispatcher.node();
    Set here, typical;
    std::size_t most = 0; // domains that they have in common with this node
    for (Node node = 0; node < dispatcher.nodes(); ++node) {
        if (node == self) continue;
        std::size_t common = 0;
        while (common < topology.levels() && topology.domain(common, node) == topology.domain(common, self)) ++common;
        // Without hosts to go by, the smallest domains are those.
        const bool is_here = firsts.empty()
                                 ? topology.levels() > 0 && common == topology.levels()
                                 : firsts[node] == firsts[self] || dispatcher.agreed().share_host(node, self);
        if (is_here) {
            here.add(node);
            continue;
        }
        if (common > most) typical = {};
        most = std::max(most, common);
        if (common == most) typical.add(node);
    }
    return typical.empty() ? here : typical;
}

CostProbe::CostProbe(engine::Dispatcher& dispatcher, const engine::Port& port, const Topology& topology,
                     SendQueue& queue, const std::optional<Costs>& given, const Costs& usual)
    : dispatcher_(dispatcher), port_(port), queue_(queue), costs_(given.value_or(usual)) {
    if (given) return;
    probing_.emplace();
    typical_ = find_typical(dispatcher, topology);
}

void CostProbe::probe(const engine::Turn&, const std::vector<Child>& children) {
    static constexpr std::array<std::byte, Probing::bytes_max> nothing{};
    constexpr std::uint64_t trains_max = 64; // measuring ends also if there is never room for a train
    if (train_left_ && !dispatcher_.is_lost(probed_)) return;
    if (train_ == trains_max) return probing_.reset();
    const auto child = std::ranges::find_if(
        children, [&](const Child& one) { return typical_.contains(one.to) && !dispatcher_.is_lost(one.to); });
    if (child == children.end()) return;
    const Probing::Train train = *probing_->next();
    probed_ = child->to;
    ++train_;
    train_left_ = now();
    for (std::uint32_t i = 1; i <= train.messages; ++i) {
        auto message = message_of(Probe{Kind::probe, i == train.messages, train_});
        // no room: next time
        if (!port_.try_send(probed_, only_kind, message, Bytes(nothing).first(train.bytes))) return train_left_.reset();
    }
}

bool CostProbe::on_probe(const engine::Turn& turn, Node source, Bytes bytes) {
    Probe head;
    if (!read_value(bytes, head)) return false;
    if (head.is_last == 0) return true;
    head.kind = Kind::probed;
    queue_.send(turn, source, message_of(head));
    return true;
}

bool CostProbe::on_probed(const engine::Turn&, Node source, Bytes bytes) {
    Probe head;
    if (!read_value(bytes, head)) return false;
    if (!probing_ || !train_left_ || head.train != train_ || source != probed_) return true; // given up
    probing_->on_back(now() - *train_left_);
    train_left_.reset();
    if (probing_->next()) return true;
    costs_ = probing_->costs(costs_);
    probing_.reset();
    return true;
}

} // namespace kumi::group
