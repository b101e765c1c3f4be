#include "kumi/device/simulated/network.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>

namespace kumi::device::simulated {

/// One node's channel on the network.
class SimulatedChannel final : public pm::Channel {
public:
    SimulatedChannel(Network& network, Node self)
        : network_(network), self_(self), filling_(network.options_.nodes), sent_(network.options_.nodes),
          traits_{.device = "simulated",
                  .message_bytes_max = network.options_.message_bytes_max,
                  .bytes_per_peer_max = 2 * network.options_.in_flight_max * network.options_.message_bytes_max,
                  .latency_class_ns = 10'000,
                  .bandwidth_class_mb = 1'000,
                  .polls_memory = true} {}
    ~SimulatedChannel() override {
        const std::lock_guard lock(network_.mutex_);
        --network_.channels_;
        network_.close(self_);
    }

    Node self() const noexcept override { return self_; }
    Node nodes() const noexcept override { return network_.options_.nodes; }
    const pm::Traits& traits() const noexcept override { return traits_; }

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override {
        KUMI_ASSERT(to < nodes() && bytes <= traits_.message_bytes_max);
        const std::lock_guard lock(network_.mutex_);
        if (network_.ends_[self_].lost || network_.is_lost(self_, to)) return {};
        Network::Direction& direction = network_.direction(self_, to);
        const bool unlucky = std::bernoulli_distribution(network_.options_.refusal_chance)(network_.random_);
        direction.refused = unlucky || direction.packets.size() >= network_.options_.in_flight_max;
        if (direction.refused) return {};
        filling_[to].resize(std::max<std::size_t>(bytes, 1));
        return {to, MutableBytes(filling_[to].data(), bytes)};
    }

    void commit(const pm::SendSlot& slot) noexcept override {
        std::vector<std::byte> bytes = std::move(filling_[slot.to()]);
        bytes.resize(slot.bytes().size());
        const std::lock_guard lock(network_.mutex_);
        ++sent_[slot.to()].messages;
        sent_[slot.to()].bytes += bytes.size();
        network_.deliver_later(self_, slot.to(), std::move(bytes));
    }

    void cancel(const pm::SendSlot&) noexcept override {}

    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        std::unique_lock lock(network_.mutex_);
        KUMI_ASSERT(!polling_); // a handler must not poll
        polling_ = true;
        network_.time_ += network_.options_.tick;
        std::size_t handled = 0;
        for (; handled < messages_max; ++handled) {
            const Node from = network_.first_source(self_);
            if (from == nodes()) break;
            Network::Direction& direction = network_.direction(from, self_);
            if (direction.packets.front().due > network_.time_) break;
            const std::vector<std::byte> bytes = std::move(direction.packets.front().bytes);
            direction.packets.pop_front();
            if (direction.refused) network_.ends_[from].changed.notify_all();
            lock.unlock(); // the handler may send
            pm::Message message(from, bytes);
            handler(message);
            lock.lock();
        }
        polling_ = false;
        return handled;
    }

    bool arm() noexcept override {
        const std::lock_guard lock(network_.mutex_);
        return network_.next_event(self_) == never;
    }

    void sleep(Instant deadline) noexcept override {
        std::unique_lock lock(network_.mutex_);
        Network::End& end = network_.ends_[self_];
        const auto something = [&] { return network_.next_event(self_) != never; };
        if (deadline == never) {
            end.changed.wait(lock, something);
        } else if (!end.changed.wait_until(lock, deadline, something)) {
            return;
        }
        // All nodes may be asleep, so the clock jumps to the next event.
        network_.time_ = std::max(network_.time_, network_.next_event(self_));
        end.woken = false;
        end.losses_told = network_.losses_known(self_);
    }

    void wake() noexcept override {
        const std::lock_guard lock(network_.mutex_);
        network_.ends_[self_].woken = true;
        network_.ends_[self_].changed.notify_all();
    }

    bool lost(Node node) const noexcept override {
        const std::lock_guard lock(network_.mutex_);
        return network_.is_lost(self_, node);
    }

    pm::Traffic sent(Node to) const noexcept override { return sent_[to]; }

private:
    Network& network_;
    Node self_;
    bool polling_ = false;
    std::vector<std::vector<std::byte>> filling_; // by destination: the open reservation
    std::vector<pm::Traffic> sent_;               // by destination
    pm::Traits traits_;
};

Network::Network(const NetworkOptions& options)
    : options_(options), random_(options.seed), directions_(std::size_t{options.nodes} * options.nodes),
      ends_(options.nodes) {}

Network::~Network() { KUMI_ASSERT(channels_ == 0); }

std::unique_ptr<pm::Channel> Network::open(Node node) {
    KUMI_ASSERT(node < options_.nodes);
    const std::lock_guard lock(mutex_);
    ++channels_;
    return std::make_unique<SimulatedChannel>(*this, node);
}

void Network::deliver_later(Node from, Node to, std::vector<std::byte> bytes) {
    if (ends_[from].lost || ends_[to].lost) return;
    Direction& out = direction(from, to);
    if (direction(to, from).lost_known != never) { // the receiver considers the sender lost, and will tell it
        out.lost_known = std::min(out.lost_known, time_ + options_.loss_detection);
        return ends_[from].changed.notify_all();
    }
    std::uniform_int_distribution<Duration::rep> delay(options_.delay_min.count(), options_.delay_max.count());
    Instant due = time_ + Duration(delay(random_));
    if (!out.packets.empty()) due = std::max(due, out.packets.back().due);
    out.packets.push_back({std::move(bytes), due});
    ends_[to].changed.notify_all();
}

Node Network::first_source(Node to) {
    Node first = options_.nodes;
    if (ends_[to].lost) return first;
    for (Node from = 0; from < options_.nodes; ++from) {
        const Direction& out = direction(from, to);
        if (out.packets.empty() || cut(from, to)) continue;
        if (first == options_.nodes || out.packets.front().due < direction(first, to).packets.front().due) first = from;
    }
    return first;
}

Instant Network::next_event(Node node) {
    if (ends_[node].woken) return time_;
    Instant next = never;
    if (const Node from = first_source(node); from != options_.nodes) next = direction(from, node).packets.front().due;
    for (Node other = 0; other < options_.nodes; ++other) {
        const Direction& out = direction(node, other);
        if (out.refused && out.packets.size() < options_.in_flight_max) return time_;
        if (const Instant known = lost_known(node, other); known > time_) next = std::min(next, known);
    }
    return losses_known(node) > ends_[node].losses_told ? time_ : next;
}

std::size_t Network::losses_known(Node self) const {
    std::size_t count = 0;
    for (Node other = 0; other < options_.nodes; ++other) count += is_lost(self, other) ? 1 : 0;
    return count;
}

void Network::wake_all() {
    for (End& end : ends_) end.changed.notify_all();
}

/// The others know of it when all has arrived that the node sent.
void Network::close(Node node) {
    Instant known = time_ + options_.loss_detection;
    for (Node other = 0; other < options_.nodes; ++other)
        if (const auto& packets = direction(node, other).packets; !packets.empty())
            known = std::max(known, packets.back().due);
    ends_[node].lost_known = std::min(ends_[node].lost_known, known);
    wake_all();
}

void Network::lose(Node node) {
    const std::lock_guard lock(mutex_);
    if (ends_[node].lost) return;
    ends_[node].lost = true;
    ends_[node].lost_known = time_ + options_.loss_detection;
    for (Node other = 0; other < options_.nodes; ++other) {
        direction(node, other).packets.clear();
        direction(other, node).packets.clear();
        direction(other, node).refused = false;
    }
    wake_all();
}

void Network::lose_link(Node self, Node other) {
    const std::lock_guard lock(mutex_);
    Direction& out = direction(self, other);
    out.lost_known = std::min(out.lost_known, time_);
    Direction& back = direction(other, self);
    // `other` waits for an answer
    if (!back.packets.empty() || back.refused)
        back.lost_known = std::min(back.lost_known, time_ + options_.loss_detection);
    for (Direction* const each : {&out, &back}) {
        each->packets.clear();
        each->refused = false;
    }
    wake_all();
}

void Network::part(const std::vector<Node>& some) {
    const std::lock_guard lock(mutex_);
    for (End& end : ends_) end.other_side = false;
    for (const Node node : some) ends_[node].other_side = true;
}

void Network::heal() {
    part({});
    const std::lock_guard lock(mutex_);
    wake_all();
}

Instant Network::time() const {
    const std::lock_guard lock(mutex_);
    return time_;
}

void Network::advance(Duration duration) {
    const std::lock_guard lock(mutex_);
    time_ += duration;
    wake_all();
}

std::size_t Network::in_flight() const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const Direction& out : directions_) total += out.packets.size();
    return total;
}

} // namespace kumi::device::simulated
