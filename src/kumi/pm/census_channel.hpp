#pragma once

// How many messages of which size a node sends by what, and what sending one takes: for `kumi run --stats`. A channel
// around another one counts, so that jobs of which nobody wants to know that do not pay for it.

#include "kumi/base/clock.hpp"
#include "kumi/pm/channel.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kumi::pm {

class CensusChannel final : public Channel {
public:
    explicit CensusChannel(std::unique_ptr<Channel> inner) : inner_(std::move(inner)) {}

    /// The largest message of each class of sizes; the last class has all that are larger.
    static constexpr std::array<std::size_t, 10> class_bytes{16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 0};
    struct Class {
        std::uint64_t messages = 0;
        Duration taken{}; // by calls that sent them; the time to fill a reserved message is not in it
    };
    struct Carrier {
        std::string name; // of what carried the messages, as Channel::carrier() has it
        std::array<Class, class_bytes.size()> classes{};
    };
    const std::vector<Carrier>& census() const noexcept { return carriers_; }

    Node self() const noexcept override { return inner_->self(); }
    Node nodes() const noexcept override { return inner_->nodes(); }
    const Traits& traits() const noexcept override { return inner_->traits(); }
    SendSlot try_reserve(Node to, std::size_t bytes) noexcept override { return inner_->try_reserve(to, bytes); }
    void commit(const SendSlot& slot) noexcept override {
        const Node to = slot.to();
        const std::size_t bytes = slot.bytes().size();
        count(to, bytes, [&] { return inner_->commit(slot), true; });
    }
    void cancel(const SendSlot& slot) noexcept override { inner_->cancel(slot); }
    std::size_t poll(Handler handler, std::size_t messages_max) noexcept override {
        return inner_->poll(handler, messages_max);
    }
    bool arm() noexcept override { return inner_->arm(); }
    void sleep(Instant deadline) noexcept override { inner_->sleep(deadline); }
    void wake() noexcept override { inner_->wake(); }
    bool lost(Node node) const noexcept override { return inner_->lost(node); }
    void give_up(Node node) noexcept override { inner_->give_up(node); }
    Traffic sent(Node to) const noexcept override { return inner_->sent(to); }
    std::string_view carrier(Node to) const noexcept override { return inner_->carrier(to); }
    std::vector<Counter> counters() const override { return inner_->counters(); }
    std::vector<Counter> counters(Node peer) const override { return inner_->counters(peer); }
    JointSleep* joint_sleep() noexcept override { return inner_->joint_sleep(); }
    Ways* ways() noexcept override { return inner_->ways(); }
    RemoteMemory* remote_memory() noexcept override { return inner_->remote_memory(); }
    bool try_send(Node to, Bytes bytes) noexcept override {
        return count(to, bytes.size(), [&] { return inner_->try_send(to, bytes); });
    }
    bool try_send(Node to, Bytes head, Bytes body) noexcept override {
        return count(to, head.size() + body.size(), [&] { return inner_->try_send(to, head, body); });
    }
    void flush() noexcept override { inner_->flush(); }

private:
    template <class Send>
    bool count(Node to, std::size_t bytes, Send&& send) noexcept {
        const Instant begin = now();
        if (!send()) return false;
        Class& mine = carrier_of(to).classes[class_of(bytes)];
        ++mine.messages;
        mine.taken += now() - begin;
        return true;
    }
    static std::size_t class_of(std::size_t bytes) noexcept {
        std::size_t index = 0;
        while (index + 1 < class_bytes.size() && bytes > class_bytes[index]) ++index;
        return index;
    }
    /// Few: a node has as many as it has networks.
    Carrier& carrier_of(Node to) {
        const std::string_view name = inner_->carrier(to);
        for (Carrier& carrier : carriers_)
            if (carrier.name == name) return carrier;
        return carriers_.emplace_back(Carrier{std::string(name)});
    }

    std::unique_ptr<Channel> inner_;
    std::vector<Carrier> carriers_;
};

} // namespace kumi::pm
