#pragma once

#include "kumi/launch/host/host.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace kumi::launch {

/// Is told what happens to a job. Called from within start(), turn(), on_child_end(), end() and fail() of its JobRun.
class JobListener {
public:
    virtual void on_node_started(std::uint32_t node, pid_t pid) = 0;
    /// `status` is as waitpid(2) has it. Output of the node may still come.
    virtual void on_node_ended(std::uint32_t node, int status) = 0;
    /// Text that a node printed, as it was read: not in whole lines. Empty text is the end of the stream, which comes
    /// once for each stream of each node that was started.
    virtual void on_output(std::uint32_t node, host::Stream stream, std::string_view text) = 0;
    /// Node 0 has taken so many bytes of what send_input() was given.
    virtual void on_input_taken(std::uint32_t bytes) = 0;
    /// A line about something odd; the job goes on.
    virtual void on_warning(const std::string& what) = 0;
    /// The job has failed, because of `what`, and its `running` nodes are being ended. Only the first failure is told:
    /// those that follow are its consequence. `what` is empty where fail() was given no reason.
    virtual void on_failure(const std::string& what, std::size_t running) = 0;

protected:
    ~JobListener() = default;
};

} // namespace kumi::launch
