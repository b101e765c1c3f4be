// What messages take, measured with the first multicasts that go whole: a train goes to a member right before the
// multicast does. So whoever is sent one is there until it has come: it owes an answer.

#include "kumi/group/multicast/multicasts.hpp"

#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <array>

namespace kumi::group {

/// With whom it is measured. Where there are several hosts they are on another one, and where there are clusters in
/// this one: most messages go so, of those that take long.
Set Multicasts::find_typical() const {
    const std::vector<Node>& firsts = core_.firsts();
    const Node self = core_.node();
    Set here, typical;
    std::size_t most = 0; // domains that they have in common with this node
    for (Node node = 0; node < core_.nodes(); ++node) {
        if (node == self) continue;
        std::size_t common = 0;
        while (common < topology_.levels() && topology_.domain(common, node) == topology_.domain(common, self))
            ++common;
        // Without hosts to go by, the smallest domains are those.
        const bool is_here = firsts.empty() ? topology_.levels() > 0 && common == topology_.levels()
                                            : firsts[node] == firsts[self] || core_.share_host(node, self);
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

/// Goes on with measuring, before one of these gets a multicast.
void Multicasts::probe(const std::vector<Child>& children) {
    static constexpr std::array<std::byte, Probing::bytes_max> nothing{};
    constexpr std::uint64_t trains_max = 64; // where there is never room for one, it ends all the same
    if (train_left_ && !core_.is_lost(probed_)) return;
    if (train_ == trains_max) return probing_.reset();
    const auto child = std::ranges::find_if(
        children, [&](const Child& one) { return typical_.contains(one.to) && !core_.is_lost(one.to); });
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

bool Multicasts::on_probe(Node source, Bytes bytes) {
    Probe head;
    if (!read_value(bytes, head)) return false;
    if (head.is_last == 0) return true;
    head.kind = Kind::probed;
    send(source, message_of(head));
    return true;
}

bool Multicasts::on_probed(Node source, Bytes bytes) {
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
