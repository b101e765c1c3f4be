#pragma once

// Bare sockets between the two sides of a network.

#include "udp/network.hpp"

#include "kumi/base/bytes.hpp"

#include <array>
#include <string>

namespace kumi::bench {

/// Two sockets, connected to each other: end 0 on side 0, end 1 on side 1.
using SocketPair = std::array<base::Descriptor, 2>;

struct TcpOptions {
    bool nodelay = true;
    std::string congestion = {}; // empty: the system's own choice
};

Result<SocketPair> tcp_pair(const Network& network, const TcpOptions& options);
Result<SocketPair> udp_pair(const Network& network);

/// Whether a wait spins or sleeps.
enum class Waiting { spinning, blocking };

/// Sends all bytes. False: the other end is gone.
bool send_all(int socket, Bytes bytes);
/// Receives at least `bytes_min` bytes of a stream, or one datagram. Returns the number of bytes; 0: the other end is
/// gone.
std::size_t receive(int socket, MutableBytes into, std::size_t bytes_min, Waiting waiting);

} // namespace kumi::bench
