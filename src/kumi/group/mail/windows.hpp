#pragma once

// The windows of eager messages: how much each two nodes have under way that the receiver's calls have not received.
//
// A message costs its bytes and message_cost. The sender counts what it has sent to each node; the receiver counts what
// its calls have received from each node, and every message back carries that count. The counts wrap. What is sent and
// not received costs window_bytes at most, so a receiver keeps no more than that for each other node.

#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kumi::group {

using pm::Node;

class Windows {
public:
    static constexpr std::uint32_t window_bytes = 256 << 10;
    static constexpr std::uint32_t message_cost = 64; // beside its bytes

    explicit Windows(std::size_t nodes) : peers_(nodes) {}

    // ---- as the sender

    /// Whether a message of so many bytes may go to that node at once.
    bool has_room(Node to, std::uint64_t bytes) const noexcept {
        return peers_[to].sent - peers_[to].taken + cost_of(bytes) <= window_bytes;
    }
    void on_sent(Node to, std::uint64_t bytes) noexcept { peers_[to].sent += cost_of(bytes); }
    /// That node has received `taken` of this node's in all. False: more than was sent, which counts as nothing.
    bool on_taken(Node by, std::uint32_t taken) noexcept {
        Peer& peer = peers_[by];
        if (taken - peer.taken > peer.sent - peer.taken) return false;
        peer.taken = taken;
        return true;
    }

    // ---- as the receiver

    /// A message of that node is received. True: the node is to be told now, because half of its window is free again
    /// and it does not know.
    bool on_received(Node from, std::uint64_t bytes) noexcept {
        Peer& peer = peers_[from];
        peer.received += cost_of(bytes);
        return peer.received - peer.told >= window_bytes / 2;
    }
    /// The count that a message to that node carries.
    std::uint32_t received(Node from) const noexcept { return peers_[from].received; }
    /// A message with that count has gone.
    void on_told(Node from, std::uint32_t received) noexcept { peers_[from].told = received; }

private:
    struct Peer {
        std::uint32_t sent = 0;     // cost of what was sent to it at once
        std::uint32_t taken = 0;    // of that, what it has received
        std::uint32_t received = 0; // cost of what this node has received from it
        std::uint32_t told = 0;     // of that, what it was told
    };

    static std::uint32_t cost_of(std::uint64_t bytes) noexcept {
        return message_cost + static_cast<std::uint32_t>(bytes);
    }

    std::vector<Peer> peers_; // by node
};

} // namespace kumi::group
