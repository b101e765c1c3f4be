#pragma once

// How processes of one host without a common parent pass descriptors to each other. Each has a listening Unix socket
// with a random name in the abstract namespace, so nothing is left in any file system. A process that knows the name
// connects and sends a greeting. The kernel accepts the connection, not the process: it succeeds while the other
// process is busy, and waits there. Processes of other users are refused, on both sides.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace kumi::boot {

using ListenerName = std::array<std::byte, 16>;

struct Listener {
    base::Descriptor socket;
    ListenerName name{};
};

/// Opens a listening socket with a random name that cannot be guessed.
Result<Listener> open_listener();

/// Connects to a listening socket of this host and sends `greeting`. Does not block.
Result<base::Descriptor> connect_to(const ListenerName& name, Bytes greeting);

struct Connection {
    base::Descriptor socket;
    std::vector<std::byte> greeting;
};

/// The next waiting connection, if there is one, with its greeting. That of another user's process has no greeting.
/// Does not block.
std::optional<Connection> next_connection(const Listener& listener);

/// Send and receive a descriptor. `whom` and `who` name the other side in errors: "node 3 on vm".
Result<void> send_descriptor(int socket, int descriptor, const std::string& whom);
Result<base::Descriptor> receive_descriptor(int socket, Instant deadline, const std::string& who);

} // namespace kumi::boot
