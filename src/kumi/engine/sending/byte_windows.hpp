#pragma once

// Windows of bytes: a node sends so many bytes of a flow to another, and one message more, until the receiver tells
// that it has handled earlier ones. So there is a bound for what all other nodes together can make a node keep: the
// windows are shares of bytes_of_all, which shrink with the number of nodes.
//
// Requests are large if requests_max of them would not fit into a window. Only large ones are counted in bytes; the
// number of requests under way bounds the others. With few nodes nearly all requests are small, and pay nothing.
//
// So a node keeps, from each other node, at most a window of small requests and their heads, and of each flow a window
// and one message. Requests that waited in a full outbox (backlog.hpp) have wider windows, by a step for each pressure.
// Pure: outbox.hpp sends what is told, and proves that nodes do not block each other.

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
    large,     // large requests
};

class ByteWindows {
public:
    static constexpr std::size_t bytes_of_all = 64 << 20;

    /// `bytes_max` is for each flow of all nodes together, as long as a window is not smaller than the smallest.
    explicit ByteWindows(Node nodes, std::size_t bytes_max = bytes_of_all)
        : peers_(nodes), bytes_(std::clamp(bytes_max / nodes, window_min, window_max)),
          large_bytes_(bytes_ / requests_max + head_bytes_max) {}

    /// Of each flow from one node to another.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Requests of that size, with all heads, are counted here.
    bool is_large(std::size_t bytes) const noexcept { return bytes > large_bytes_; }
    /// By so many bytes a window is wider for each step of pressure: the largest request, and what the receiver need
    /// not have told.
    std::size_t pressure_step() const noexcept { return request_bytes_max + head_bytes_max + overhead + bytes_ / 4; }

    // ---- what this node sends

    /// `to` takes another message, of any size, if it has that pressure.
    bool has_room(Node to, Flow flow, std::uint32_t pressure = 0) const noexcept {
        const Sent& sent = of(to, flow).sent;
        return sent.bytes - sent.taken <= bytes_ + pressure * pressure_step();
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

    /// A message of `from` has been handled. True: `from` is to be told.
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
    static constexpr std::size_t window_min = 64 << 10, window_max = 8 << 20;
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
    std::size_t large_bytes_;
};

} // namespace kumi::engine
