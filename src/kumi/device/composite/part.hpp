#pragma once

#include "kumi/device/composite/sleep/wake_socket.hpp"
#include "kumi/pm/channel.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kumi::device::composite {

using pm::Node;

/// One of the channels that a composite is made of, open, and the nodes that it joins.
struct Part {
    std::unique_ptr<SocketWaker> waker; // that the channel was opened with
    std::unique_ptr<pm::Channel> channel;
    std::vector<Node> members; // by the channel's numbers: the composite's numbers of these nodes
    std::string name = {};     // of the network, for people; empty: the device's name is shown
    std::uint32_t network = 0; // the network's number, the same on all nodes
};

} // namespace kumi::device::composite
