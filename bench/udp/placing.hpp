#pragma once

// What it costs a receiver to put the pieces of a long message in their places, by bare sockets.

#include "udp/sockets.hpp"
#include "udp/task.hpp"

namespace kumi::bench {

/// Measures one way: "limit" leaves the pieces where recv(2) put them; "kumi" copies them out of there into the
/// message, as Kumi does; "scattered" lets the system put each in its place, by an iovec for each header and each
/// piece, and takes for granted that the expected pieces come. Returns an exit code.
int measure_placing(const Task& task, const SocketPair& sockets);

} // namespace kumi::bench
