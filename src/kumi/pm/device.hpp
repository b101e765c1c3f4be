#pragma once

// How a channel comes to be: a device opens this node's end and meets the other ends.

#include "kumi/base/bytes.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/keys.hpp"
#include "kumi/base/result.hpp"
#include "kumi/pm/channel.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace kumi::pm {

/// Where the ends of a channel that is being opened meet. Every call is collective: all nodes of the channel make
/// the same calls in the same order. Each has a deadline, and its error names who did not come.
class Meeting {
public:
    /// Every node gives some bytes; every node gets all of them, by node number.
    virtual Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) = 0;

    /// Node 0 gives a descriptor, the others nothing; every other node gets a duplicate of it. Nodes of one host only.
    virtual Result<base::Descriptor> share(base::Descriptor mine) = 0;

protected:
    ~Meeting() = default;
};

/// What a device needs to know to open this node's end of a channel. Numbers are the channel's own: on a channel
/// that joins the nodes of one host they are slots.
struct Opening {
    Node self = 0;
    Node nodes = 1;
    unsigned cores_on_host = 1; // that this node shares with the others of its host
    Meeting& meeting;
    base::JobKeys keys{}; // the job's, the same on every node
    std::string_view network{}; // its name, where the job has several; the same on every node
    Waker* waker = nullptr; // set on all nodes, or on none: the channel is slept on jointly with others
    bool has_alternatives = false; // to its ways: see Ways
    bool is_serialized = false; // calls never overlap, though they may come from several threads
};

/// The code that drives one kind of network.
class Device {
public:
    virtual ~Device() = default;

    virtual std::string_view name() const noexcept = 0;

    /// Opens this node's end and meets the others. Blocks, to the meeting's deadline.
    virtual Result<std::unique_ptr<Channel>> open(const Opening& opening) = 0;
};

} // namespace kumi::pm
