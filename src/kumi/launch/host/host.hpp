#pragma once

// One host's part of a job, as a JobRun sees it: the same for this host and for others.

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

/// A frame of boot/wire.hpp, as it goes over a node's socket; all receivers share it.
using SharedFrame = std::shared_ptr<const std::vector<std::byte>>;

/// Is told what the nodes of a host do. Nodes have their numbers in the job.
class Listener {
public:
    virtual void on_started(std::uint32_t node, pid_t pid) = 0;
    /// A node has sent a frame. Never Kind::share: the host itself answers that.
    virtual void on_frame(std::uint32_t node, boot::Frame frame) = 0;
    /// A node has printed text. Empty: the stream has ended.
    virtual void on_output(std::uint32_t node, Stream stream, std::string_view text) = 0;
    /// A node has ended, with a status as waitpid(2) has it. Comes after its last frame.
    virtual void on_end(std::uint32_t node, int status) = 0;

protected:
    ~Listener() = default;
};

class Host {
public:
    virtual ~Host() = default;

    /// Sends a frame to one node, or to every_node.
    virtual void send(std::uint32_t node, const SharedFrame& frame) = 0;
    /// Sends a signal to all its nodes that have not ended, and to their process groups.
    virtual void signal(int number) = 0;
    /// While held, output stays in the nodes' pipes, which hold the nodes back: its reader cannot take more.
    virtual void hold_output(bool hold) = 0;

    virtual void on_event(Source source, std::uint32_t index) = 0;
    /// A child of this process has ended, perhaps one of this host's.
    virtual void on_child_end(pid_t pid, int status) = 0;

    /// All its nodes have ended. Some of their output may still be in a pipe.
    virtual bool is_over() const = 0;
};

} // namespace kumi::launch::host
