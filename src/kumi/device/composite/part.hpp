#pragma once

#include "kumi/device/composite/sleep/wake_socket.hpp"
#include "kumi/pm/channel.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kumi::device::composite {

using pm::Node;

/// One of the channels, and who its nodes are.
struct Part {
    std::unique_ptr<SocketWaker> waker; // that the channel was opened with
    std::unique_ptr<pm::Channel> channel;
    std::vector<Node> members; // the composite's number for each of the channel's
    std::string name = {};     // of the network, for people; the device's if empty
    std::uint32_t network = 0; // its number, the same on all nodes
};

} // namespace kumi::device::composite
