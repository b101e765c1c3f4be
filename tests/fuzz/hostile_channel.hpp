#pragma once

#include "kumi/base/assert.hpp"
#include "kumi/pm/channel.hpp"

#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

namespace kumi::fuzz {

/// Much of the input makes no sense, and to say so each time would take longer than the rest.
inline const bool is_quiet = ::setenv("KUMI_LOG", "off", 1) == 0;

/// Node 0's end of a channel whose other ends are whoever holds it. Takes what it is given to send, unless told
/// otherwise.
class HostileChannel : public pm::Channel {
public:
    HostileChannel(pm::Node nodes, std::size_t message_bytes_max)
        : refuses(nodes), is_lost(nodes), traits_{.device = "hostile",
                                                  .message_bytes_max = message_bytes_max,
                                                  .bytes_per_peer_max = 1,
                                                  .latency_class_ns = 1,
                                                  .bandwidth_class_mb = 1,
                                                  .polls_memory = true},
          sending_(nodes) {}

    pm::Node self() const noexcept override { return 0; }
    pm::Node nodes() const noexcept override { return static_cast<pm::Node>(sending_.size()); }
    const pm::Traits& traits() const noexcept override { return traits_; }
    pm::SendSlot try_reserve(pm::Node to, std::size_t bytes) noexcept override {
        KUMI_ASSERT(to < nodes() && bytes <= traits_.message_bytes_max);
        if (refuses[to] || is_lost[to]) return {};
        sending_[to].resize(bytes + 1);
        return {to, MutableBytes(sending_[to].data(), bytes)};
    }
    void commit(const pm::SendSlot& slot) noexcept override {
        if (slot.to() == 0) arrivals.push_back({0, {slot.bytes().begin(), slot.bytes().end()}});
        else on_sent(slot.to(), slot.bytes());
    }
    void cancel(const pm::SendSlot&) noexcept override {}
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        std::size_t handled = 0;
        for (; handled < messages_max && !arrivals.empty(); ++handled) {
            const Arrival arrival = std::move(arrivals.front());
            arrivals.pop_front();
            if (is_lost[arrival.source]) continue;
            pm::Message message(arrival.source, arrival.bytes);
            handler(message);
        }
        return handled;
    }
    bool arm() noexcept override { return false; }
    void sleep(Instant) noexcept override {}
    void wake() noexcept override {}
    bool lost(pm::Node node) const noexcept override { return is_lost[node]; }
    pm::Traffic sent(pm::Node) const noexcept override { return {}; }

    struct Arrival {
        pm::Node source;
        std::vector<std::byte> bytes;
    };
    std::deque<Arrival> arrivals;
    std::vector<char> refuses; // by node: whether messages to it find no room
    std::vector<char> is_lost;

private:
    /// Node 0 has sent this to another.
    virtual void on_sent(pm::Node to, Bytes bytes) noexcept = 0;

    pm::Traits traits_;
    std::vector<std::vector<std::byte>> sending_;
};

} // namespace kumi::fuzz
