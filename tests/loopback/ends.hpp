#pragma once

// All ends of a UDP channel in one thread of a test, and a bare socket for whoever does not belong to the job.

#include "kumi/base/system/descriptor.hpp"
#include "kumi/device/udp/channel.hpp"
#include "loopback/sanitized.hpp"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace kumi::loopback {

using namespace std::chrono_literals;
using device::udp::Address;
using device::udp::Hello;
using device::udp::Options;
using device::udp::UdpChannel;
using pm::Node;
using Packet = std::vector<std::byte>;

/// What only a hang exceeds, also under a sanitizer on a busy machine.
inline constexpr Duration patience = std::chrono::seconds(sanitized ? 90 : 30);

inline std::uint64_t value_of(const std::vector<pm::Counter>& counters, std::string_view name) {
    for (const pm::Counter& counter : counters)
        if (counter.name == name) return counter.value;
    ADD_FAILURE() << "there is no counter " << name;
    return 0;
}

/// Of packets that were dropped, for whatever reason.
inline std::uint64_t dropped(const pm::Channel& channel) {
    std::uint64_t sum = 0;
    for (const pm::Counter& counter : channel.counters())
        if (counter.name.starts_with("dropped_")) sum += counter.value;
    return sum;
}

/// What `body` writes to standard error.
template <class Body>
std::string said_by(Body&& body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
}

/// Bytes that tell who sent them and which they are.
inline std::vector<std::byte> message_of(Node source, std::uint64_t number, std::size_t bytes) {
    std::vector<std::byte> message(std::max<std::size_t>(bytes, 8));
    for (std::size_t i = 0; i < message.size(); ++i)
        message[i] = static_cast<std::byte>(i * 7 + (i >> 8) + number * 13 + source);
    std::memcpy(message.data(), &number, sizeof number);
    return message;
}

/// A UDP socket at 127.0.0.1 that speaks nobody's protocol.
class BareSocket {
public:
    BareSocket() : descriptor_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        const Address any_port = *Address::parse("127.0.0.1", 0);
        EXPECT_EQ(::bind(descriptor_.get(), any_port.data(), any_port.bytes()), 0);
        sockaddr_storage bound{};
        socklen_t bytes = sizeof bound;
        EXPECT_EQ(::getsockname(descriptor_.get(), reinterpret_cast<sockaddr*>(&bound), &bytes), 0);
        address_ = Address(reinterpret_cast<const sockaddr*>(&bound), bytes);
    }

    const Address& address() const { return address_; }
    void send(const Address& to, Bytes packet) const {
        const ssize_t sent = ::sendto(descriptor_.get(), packet.data(), packet.size(), 0, to.data(), to.bytes());
        EXPECT_EQ(sent, static_cast<ssize_t>(packet.size()));
    }
    /// False: nothing is there.
    bool receive(Packet& packet) const {
        packet.resize(65'536);
        const ssize_t got = ::recv(descriptor_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
        packet.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return got >= 0;
    }

private:
    base::Descriptor descriptor_;
    Address address_;
};

class Ends {
public:
    /// May change what `node` is told about the others.
    using Change = std::function<void(Node node, std::vector<Hello>& hellos)>;

    explicit Ends(Node count, const Options& options = {}, const base::JobKeys* known_keys = nullptr,
                  const Change& change = {}) {
        const auto keys = base::make_job_keys();
        EXPECT_TRUE(keys);
        keys_ = known_keys != nullptr ? *known_keys : *keys;
        std::vector<Hello> hellos;
        for (Node node = 0; node < count; ++node) {
            auto bound = UdpChannel::bind(options, node, count, keys_);
            if (!bound) throw std::runtime_error(bound.error().text());
            hellos.push_back((*bound)->hello());
            nodes_.push_back(*std::move(bound));
        }
        for (Node node = 0; node < count; ++node) {
            std::vector<Hello> told = hellos;
            if (change) change(node, told);
            const auto met = nodes_[node]->meet(told);
            if (!met) throw std::runtime_error(met.error().text());
        }
    }
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;
    ~Ends() {
        // One thread closes them one by one: whoever waits for an answer then would wait for a long time.
        run_until([&] {
            for (const auto& node : nodes_)
                if (node && !node->endpoint().all_arrived()) return false;
            return true;
        });
    }

    UdpChannel& operator[](Node node) { return *nodes_[node]; }
    const base::JobKeys& keys() const { return keys_; }
    void close(Node node) { nodes_[node].reset(); }
    /// What the world does in each round of run_until().
    std::function<void()> meanwhile = [] {};

    /// Polls all ends in turn; false when it was not done in time. Each message must be the next one that was sent.
    bool run_until(const std::function<bool()>& done, Duration limit = patience) {
        for (const Instant deadline = now() + limit; !done();) {
            if (now() > deadline) return false;
            meanwhile();
            for (Node node = 0; node < nodes_.size(); ++node)
                if (nodes_[node])
                    nodes_[node]->poll([&](pm::Message& message) { check(node, message); }, pm::all_messages);
        }
        return true;
    }

    /// Nodes 0 and 1 send each other that many messages; all arrive, and nothing else does.
    void talk(std::uint64_t count, std::size_t bytes = 64) {
        for (std::uint64_t& number : expected_) number = 0;
        bytes_ = bytes;
        std::uint64_t sent[2] = {};
        const bool arrived = run_until([&] {
            for (const Node node : {0u, 1u})
                for (int i = 0; i < 8 && sent[node] < count; ++i, ++sent[node])
                    if (!nodes_[node]->try_send(1 - node, Bytes(message_of(node, sent[node], bytes)))) break;
            return expected_[0] >= count && expected_[1] >= count;
        });
        EXPECT_TRUE(arrived) << expected_[0] << " and " << expected_[1] << " of " << count << " arrived";
    }

private:
    void check(Node at, pm::Message& message) {
        const auto sent = message_of(message.source(), expected_[at], bytes_);
        const bool same = message.source() == 1 - at && std::ranges::equal(message.bytes(), sent);
        EXPECT_TRUE(same) << "a message that was not sent, " << message.bytes().size() << " bytes at node " << at;
        ++expected_[at];
    }

    base::JobKeys keys_;
    std::vector<std::unique_ptr<UdpChannel>> nodes_;
    std::uint64_t expected_[2] = {};
    std::size_t bytes_ = 0;
};

/// Two ends; a bare socket passes on what node 0 sends to node 1, and keeps it.
class TappedEnds {
public:
    explicit TappedEnds(const Options& options = {}, const base::JobKeys* keys = nullptr)
        : ends(2, options, keys, [this](Node node, std::vector<Hello>& hellos) {
              if (node != 0) return;
              Address::from_wire(hellos[1].address, target_);
              hellos[1].address = tap_.address().wire();
          }) {
        ends.meanwhile = [this] {
            for (Packet packet; tap_.receive(packet);) {
                tap_.send(target_, packet);
                packets.push_back(std::move(packet));
            }
        };
    }

private:
    BareSocket tap_;
    Address target_;

public:
    std::vector<Packet> packets; // from node 0 to node 1, as they went by
    Ends ends;
};

/// Real packets with messages in them, of another job or of another life of this one.
inline std::vector<Packet> packets_of_another_pair(const Options& options = {}, const base::JobKeys* keys = nullptr) {
    TappedEnds others(options, keys);
    others.ends.talk(50, 100);
    return others.packets;
}

} // namespace kumi::loopback
