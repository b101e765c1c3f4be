#pragma once

// Links that fail as a test wants them to, with a clock of their own: what a composite is made of, in simulation.

#include "kumi/base/assert.hpp"
#include "kumi/pm/channel.hpp"

#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace kumi::simulation {

using pm::Node;

class FailingLink;

/// One network: who hears whom on it, and what is under way.
class FailingNetwork {
public:
    FailingNetwork(Node nodes, const Instant& clock);

    FailingLink& operator[](Node node) { return *links_[node]; }
    /// Messages move on: each link's next ones arrive, and what has arrived is acknowledged.
    void move_on();

    void set_muted(Node from, Node to, bool muted) { muted_[from * nodes_ + to] = muted; }
    bool is_muted(Node from, Node to) const { return muted_[from * nodes_ + to] || !up_[from] || !up_[to]; }
    void set_up(Node node, bool up) { up_[node] = up; }
    bool is_up(Node node) const { return up_[node]; }
    /// What each pair of nodes may send in a step; without it, as many messages as arrivals_max.
    void set_rate(std::size_t bytes_per_step) { rate_ = bytes_per_step; }

    const Instant& clock;

private:
    std::size_t arrivals(FailingLink& from, Node to);

    Node nodes_;
    std::size_t rate_ = 0;
    std::vector<bool> muted_;
    std::vector<bool> up_;
    std::vector<std::unique_ptr<FailingLink>> links_;
};

/// One node's end of it.
class FailingLink final : public pm::Channel, public pm::Ways, private pm::BufferOwner {
public:
    static constexpr std::size_t queue_max = 16;     // messages under way to one node
    static constexpr std::size_t arrivals_max = 4;   // of them at a time
    static constexpr std::size_t kept_max = 4;       // when so many are kept it brings no more

    FailingLink(FailingNetwork& network, Node self, Node nodes) : network_(network), self_(self), peers_(nodes) {
        traits_ = {.device = "failing",
                   .message_bytes_max = std::size_t{1} << 20,
                   .bytes_per_peer_max = 0,
                   .latency_class_ns = 0,
                   .bandwidth_class_mb = 0};
    }

    Node self() const noexcept override { return self_; }
    Node nodes() const noexcept override { return static_cast<Node>(peers_.size()); }
    const pm::Traits& traits() const noexcept override { return traits_; }
    pm::Ways* ways() noexcept override { return this; }

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override {
        Peer& peer = peers_[to];
        if (peer.lost || peer.queue.size() >= queue_max) return {};
        KUMI_ASSERT(!peer.is_reserved);
        peer.is_reserved = true;
        peer.reserved.resize(bytes);
        return {to, peer.reserved};
    }
    void commit(const pm::SendSlot& slot) noexcept override {
        Peer& peer = peers_[slot.to()];
        KUMI_ASSERT(peer.is_reserved);
        peer.is_reserved = false;
        if (!peer.lost) push(peer, std::move(peer.reserved));
    }
    using pm::Channel::try_send;
    bool try_send(Node to, Bytes bytes) noexcept override { return try_send(to, {}, bytes); }
    bool try_send(Node to, Bytes head, Bytes body) noexcept override {
        if (peers_[to].lost || peers_[to].queue.size() >= queue_max) return false;
        std::vector<std::byte> message(head.size() + body.size());
        Pieces(head, body).copy_to(message.data());
        push(peers_[to], std::move(message));
        return true;
    }
    void cancel(const pm::SendSlot& slot) noexcept override { peers_[slot.to()].is_reserved = false; }
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        std::size_t handled = 0;
        for (; handled < messages_max && !inbox_.empty() && lent_.size() < kept_max; ++handled) {
            auto [from, bytes] = std::move(inbox_.front());
            inbox_.pop_front();
            const std::uint64_t token = ++lent_count_;
            pm::Message message(from, lent_[token] = std::move(bytes), this, token);
            handler(message);
            if (!message.was_kept()) lent_.erase(token);
        }
        return handled;
    }
    bool arm() noexcept override { return true; }
    void sleep(Instant) noexcept override {}
    void wake() noexcept override {}
    bool lost(Node node) const noexcept override { return peers_[node].lost; }
    void give_up(Node node) noexcept override {
        peers_[node].lost = true;
        peers_[node].queue.clear();
        peers_[node].arrived = 0;
    }
    pm::Traffic sent(Node to) const noexcept override { return {.bytes = peers_[to].given}; }

    bool are_up() noexcept override { return network_.is_up(self_); }
    Duration unanswered(Node to, Instant now) const noexcept override {
        return peers_[to].queue.empty() ? Duration{0} : now - peers_[to].asked_at;
    }
    bool is_silent(Node to) const noexcept override {
        return unanswered(to, network_.clock) > std::chrono::seconds(60);
    }
    bool has_left(Node) const noexcept override { return false; }
    std::uint64_t losses() const noexcept override { return losses_; }
    bool all_arrived(Node to) const noexcept override { return peers_[to].queue.empty(); }
    std::uint64_t waiting_bytes(Node to) const noexcept override {
        std::uint64_t bytes = 0;
        for (const auto& message : peers_[to].queue) bytes += message.size();
        return bytes;
    }
    void each_unarrived(Node to, base::FunctionRef<void(Bytes)> what) const override {
        for (const auto& message : peers_[to].queue) what(message);
    }

    std::uint64_t bytes_arrived(Node to) const { return peers_[to].bytes; }
    /// Nobody listens there any more, says its host.
    void refuse(Node to) {
        peers_[to].lost = true;
        ++losses_;
    }

private:
    friend FailingNetwork;
    struct Peer {
        std::deque<std::vector<std::byte>> queue; // not acknowledged
        std::size_t arrived = 0;                  // of these
        std::size_t budget = 0;                   // bytes that may arrive, where there is a rate
        std::uint64_t bytes = 0;                  // that have arrived
        std::uint64_t given = 0;                  // the bytes of all messages
        Instant asked_at{};
        bool lost = false;
        bool is_reserved = false;
        std::vector<std::byte> reserved;
    };

    void release(std::uint64_t token) noexcept override { lent_.erase(token); }
    void push(Peer& peer, std::vector<std::byte> message) {
        if (peer.queue.empty()) peer.asked_at = network_.clock;
        peer.given += message.size();
        peer.queue.push_back(std::move(message));
    }

    FailingNetwork& network_;
    Node self_;
    pm::Traits traits_;
    std::vector<Peer> peers_;
    std::deque<std::pair<Node, std::vector<std::byte>>> inbox_;
    std::map<std::uint64_t, std::vector<std::byte>> lent_; // being read, or kept
    std::uint64_t lent_count_ = 0;
    std::uint64_t losses_ = 0;
};

inline FailingNetwork::FailingNetwork(Node nodes, const Instant& clock_of_all)
    : clock(clock_of_all), nodes_(nodes), muted_(nodes * nodes), up_(nodes, true) {
    for (Node node = 0; node < nodes; ++node) links_.push_back(std::make_unique<FailingLink>(*this, node, nodes));
}

inline void FailingNetwork::move_on() {
    for (Node from = 0; from < nodes_; ++from)
        for (Node to = 0; to < nodes_; ++to) {
            FailingLink::Peer& peer = links_[from]->peers_[to];
            if (peer.lost || is_muted(from, to)) continue;
            for (std::size_t i = arrivals(*links_[from], to); i > 0 && peer.arrived < peer.queue.size(); --i)
                if (!links_[to]->peers_[from].lost) {
                    peer.bytes += peer.queue[peer.arrived].size();
                    links_[to]->inbox_.emplace_back(from, peer.queue[peer.arrived++]);
                }
            if (is_muted(to, from)) continue;
            if (peer.arrived != 0 || rate_ != 0) peer.asked_at = clock; // with a rate, for packets of the next message
            for (; peer.arrived != 0; --peer.arrived) peer.queue.pop_front();
        }
}

/// How many messages arrive in this step.
inline std::size_t FailingNetwork::arrivals(FailingLink& from, Node to) {
    if (rate_ == 0) return FailingLink::arrivals_max;
    FailingLink::Peer& peer = from.peers_[to];
    if (peer.arrived == peer.queue.size()) return peer.budget = 0; // an idle wire saves nothing
    peer.budget += rate_;
    std::size_t count = 0;
    for (std::size_t i = peer.arrived; i < peer.queue.size() && peer.queue[i].size() <= peer.budget; ++i, ++count)
        peer.budget -= peer.queue[i].size();
    return count;
}

} // namespace kumi::simulation
