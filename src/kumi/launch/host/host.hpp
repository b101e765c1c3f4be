#pragma once

// One host's part of a job, as whoever watches the job sees it, wherever the host is.

#include "kumi/boot/wire.hpp"
#include "kumi/launch/host/poller.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

enum class Stream : std::uint32_t { out, err };

/// Stands for all nodes of a host, or of the job.
inline constexpr std::uint32_t every_node = 0xffffffff;

/// A frame of boot/wire.hpp, as it goes over a node's socket; one for all who get it.
using SharedFrame = std::shared_ptr<const std::vector<std::byte>>;

/// Hears what the nodes of a host do. They are named by their numbers in the job.
class Listener {
public:
    virtual void on_started(std::uint32_t node, pid_t pid) = 0;
    /// Anything but Kind::share, which stays on the host.
    virtual void on_frame(std::uint32_t node, boot::Frame frame) = 0;
    /// Without text: the stream has ended.
    virtual void on_output(std::uint32_t node, Stream stream, std::string_view text) = 0;
    virtual void on_end(std::uint32_t node, int status) = 0; // as waitpid(2) has it; after its last frame

protected:
    ~Listener() = default;
};

class Host {
public:
    virtual ~Host() = default;

    /// A frame for one node, or for every_node.
    virtual void send(std::uint32_t node, const SharedFrame& frame) = 0;
    /// To all its nodes that have not ended, and their process groups.
    virtual void signal(int number) = 0;
    /// The user cannot take more of what they print: their pipes shall hold them back until then.
    virtual void hold_output(bool hold) = 0;

    virtual void on_event(Source source, std::uint32_t index) = 0;
    /// One of this process's children, perhaps one of the host's.
    virtual void on_child_end(pid_t pid, int status) = 0;

    /// Nothing more will come from it, but perhaps output that is in a pipe still.
    virtual bool is_over() const = 0;
};

} // namespace kumi::launch::host
