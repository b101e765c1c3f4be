#pragma once

// What unit tests of the reliable protocol need: a network that remembers, and packets of somebody who lies.

#include "kumi/base/data/checksum.hpp"
#include "simulation/reliable_network.hpp"

#include <string>
#include <string_view>

namespace kumi::simulation {

/// A network that remembers what arrived: sizes, and texts of short messages.
class Wire : public ReliableNetwork {
public:
    explicit Wire(const NetworkOptions& options = {}) : ReliableNetwork(options) {
        on_message = [this](Node at, const Arrival& arrival) {
            sizes.push_back(arrival.bytes.size());
            texts.emplace_back(arrival.bytes.size() < 64 ? text_of(arrival.bytes) : std::string_view{});
            if (arrival.block != nullptr && keeps) kept.push_back(arrival.block);
            else if (arrival.block != nullptr) (*this)[at].release(arrival.block);
        };
    }
    bool send_bytes(Node from, Node to, std::size_t bytes) {
        return send(from, to, std::vector<std::byte>(bytes, std::byte{7}));
    }
    bool say(Node from, Node to, std::string_view text) { return send(from, to, bytes_of(text)); }
    /// Its turn comes now.
    void wake(Node node) { wake_at(node, time()); }
    bool arrives(std::size_t count, Duration within) {
        return run_until([&] { return sizes.size() >= count; }, within);
    }

    std::vector<std::size_t> sizes;
    std::vector<std::string> texts;
    bool keeps = false;
    std::vector<Block*> kept;
};

/// A packet as a peer might send it that does not keep to the rules.
inline std::vector<std::byte> forged(PacketHeader header, std::vector<std::uint64_t> rest) {
    header.token = 0x1234'5678'9ABC'DEF0u;
    header.source_incarnation = header.destination_incarnation = 1;
    header.bytes = static_cast<std::uint16_t>(sizeof header + rest.size() * 8);
    header.checksum = 0;
    if ((header.flags & reliable::flag::data) == 0) header.ack_words = static_cast<std::uint8_t>(rest.size());
    std::vector<std::byte> packet(header.bytes);
    std::memcpy(packet.data(), &header, sizeof header);
    if (!rest.empty()) std::memcpy(packet.data() + sizeof header, rest.data(), rest.size() * 8);
    header.checksum = base::checksum(packet);
    std::memcpy(packet.data(), &header, sizeof header);
    return packet;
}

} // namespace kumi::simulation
