#pragma once

// Windows of bytes: a node sends so many bytes of a flow to another, and one message more, until the receiver tells
// that its program has taken earlier ones. The windows of all nodes together are bounded, so what a node keeps is, too.
// Pure: outbox.hpp sends what is told.

#include "kumi/engine/wire.hpp"
#include "kumi/pm/node.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace kumi::engine {

using pm::Node;

/// Messages that share a window: their places in Taken.
enum class Flow : std::uint8_t {
    plain,     // plain messages of threads of the program
    forwarded, // plain messages of handlers
};

class ByteWindows {
public:
    explicit ByteWindows(Node nodes)
        : peers_(nodes), bytes_(std::clamp(bytes_of_all / nodes, bytes_min, bytes_max)) {}

    /// Of each flow from one node to another.
    std::size_t bytes() const noexcept { return bytes_; }

    // ---- what this node sends

    /// `to` takes another message, of any size.
    bool has_room(Node to, Flow flow) const noexcept {
        const Sent& sent = of(to, flow).sent;
        return sent.bytes - sent.taken <= bytes_;
    }
    void on_sent(Node to, Flow flow, std::size_t bytes) noexcept { of(to, flow).sent.bytes += bytes + overhead; }
    /// `from` tells what it has taken in all. False: that makes no sense, and nothing of it counts.
    bool on_told(Node from, const Taken& taken) noexcept {
        Peer& peer = peers_[from];
        for (unsigned flow = 0; flow < flows; ++flow)
            if (taken.bytes[flow] < peer[flow].sent.taken || taken.bytes[flow] > peer[flow].sent.bytes) return false;
        for (unsigned flow = 0; flow < flows; ++flow) peer[flow].sent.taken = taken.bytes[flow];
        return true;
    }

    // ---- what other nodes send

    /// The program has taken a message of `from`. True: `from` is to be told.
    bool on_taken(Node from, Flow flow, std::size_t bytes) noexcept {
        Got& got = of(from, flow).got;
        got.taken += bytes + overhead;
        return got.taken - got.told > bytes_ / 4;
    }
    /// What `to` is told now.
    Taken tell(Node to) noexcept {
        Taken taken{};
        for (unsigned flow = 0; flow < flows; ++flow)
            taken.bytes[flow] = peers_[to][flow].got.told = peers_[to][flow].got.taken;
        return taken;
    }

    static constexpr std::size_t overhead = 64; // what a message takes beside its bytes, about

private:
    static constexpr std::size_t bytes_of_all = 64 << 20, bytes_min = 1 << 20, bytes_max = 8 << 20;
    static constexpr unsigned flows = std::extent_v<decltype(Taken::bytes)>;

    struct Sent {
        std::uint64_t bytes = 0, taken = 0; // of these, as the receiver has told
    };
    struct Got {
        std::uint64_t taken = 0, told = 0;
    };
    struct Stream {
        Sent sent;
        Got got;
    };
    using Peer = std::array<Stream, flows>;

    Stream& of(Node node, Flow flow) noexcept { return peers_[node][static_cast<unsigned>(flow)]; }
    const Stream& of(Node node, Flow flow) const noexcept { return peers_[node][static_cast<unsigned>(flow)]; }

    std::vector<Peer> peers_;
    std::size_t bytes_;
};

} // namespace kumi::engine
