#pragma once

#include "kumi/engine/wire.hpp"
#include "kumi/pm/channel.hpp"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace kumi::bench {

/// One end of a job of any number of nodes that do not exist. Each of them handles every request at once and says so;
/// sleeps end at once. So what an engine on this channel takes for a call is its own time, and no network's.
class HollowChannel final : public pm::Channel {
public:
    explicit HollowChannel(pm::Node nodes) : handled_(nodes) {}

    pm::Node self() const noexcept override { return 0; }
    pm::Node nodes() const noexcept override { return static_cast<pm::Node>(handled_.size()); }
    const pm::Traits& traits() const noexcept override { return traits_; }

    pm::SendSlot try_reserve(pm::Node to, std::size_t bytes) noexcept override {
        message_.resize(bytes);
        return {to, message_};
    }
    void commit(const pm::SendSlot& slot) noexcept override {
        const engine::Header header = engine::header_in(slot.bytes());
        if (header.is_request == 0 && header.kind != static_cast<std::uint16_t>(engine::Kind::please)) return;
        if (header.is_request != 0) ++handled_[slot.to()];
        answers_.push_back(slot.to());
    }
    void cancel(const pm::SendSlot&) noexcept override {}

    std::size_t poll(pm::Handler handler, std::size_t) noexcept override {
        const std::vector<pm::Node> answers = std::exchange(answers_, {});
        for (const pm::Node node : answers) {
            engine::Header credit{static_cast<std::uint16_t>(engine::Kind::credit), handled_[node], 0};
            pm::Message message(node, MutableBytes(reinterpret_cast<std::byte*>(&credit), sizeof credit));
            handler(message);
        }
        return answers.size();
    }
    bool arm() noexcept override { return answers_.empty(); }
    void sleep(Instant) noexcept override { ++sleeps_; }
    void wake() noexcept override {}
    bool lost(pm::Node) const noexcept override { return false; }
    pm::Traffic sent(pm::Node) const noexcept override { return {}; }

    std::uint64_t sleeps() const noexcept { return sleeps_; }

private:
    pm::Traits traits_{.device = "hollow",
                       .message_bytes_max = 1 << 20,
                       .bytes_per_peer_max = 1,
                       .latency_class_ns = 1,
                       .bandwidth_class_mb = 1,
                       .polls_memory = true};
    std::vector<std::uint16_t> handled_; // requests, by node; wraps
    std::vector<pm::Node> answers_;      // to come, by the nodes that send them
    std::vector<std::byte> message_;
    std::uint64_t sleeps_ = 0;
};

} // namespace kumi::bench
