#pragma once

// Devices, which open channels: a device opens this node's end and exchanges addresses with the other ends.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/base/system/keys.hpp"
#include "kumi/pm/channel.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace kumi::pm {

/// Lets the ends of a channel exchange data while the channel is opened. Every call is collective: all nodes of the
/// channel make the same calls in the same order. Each call has a deadline; its error names the nodes that did not
/// call.
class Meeting {
public:
    /// Gives this node's bytes to all nodes. Answers the bytes of all nodes, by node number.
    virtual Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) = 0;

    /// Gives the descriptor of node 0 to the other nodes, each of which gets a duplicate. They pass none. Only for
    /// nodes of one host.
    virtual Result<base::Descriptor> share(base::Descriptor mine) = 0;

protected:
    ~Meeting() = default;
};

/// What a device needs to open this node's end of a channel. Node numbers are those of the channel: on a channel that
/// connects the nodes of one host they are slots.
struct Opening {
    Node self = 0;
    Node nodes = 1;
    unsigned cores_on_host = 1; // that this node shares with the others of its host
    Meeting& meeting;
    base::JobKeys keys{}; // the job's, the same on every node
    std::string_view network{}; // its name, where the job has several; the same on every node
    Waker* waker = nullptr; // set on all nodes, or on none: the channel is slept on jointly with others
    bool has_alternatives = false; // to its ways: see Ways
};

/// The code that drives one kind of network.
class Device {
public:
    virtual ~Device() = default;

    virtual std::string_view name() const noexcept = 0;

    /// Opens this node's end and meets the other ends. Blocks until the deadline of the meeting at most.
    virtual Result<std::unique_ptr<Channel>> open(const Opening& opening) = 0;
};

} // namespace kumi::pm
