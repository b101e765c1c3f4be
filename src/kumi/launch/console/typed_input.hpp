#pragma once

// The user's terminal: its size, and what is typed there.

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <optional>
#include <string>
#include <sys/ioctl.h>

namespace kumi::launch {

/// The size of the user's terminal, if standard output is one.
std::optional<winsize> own_terminal() noexcept;

/// Brings what the user types to node 0 on this host. This process must read the terminal itself, because node 0 is not
/// in the terminal's foreground group.
class TypedInput {
public:
    /// Answers the standard input of node 0: that of this process, unless that is a terminal.
    Result<base::Descriptor> open();

    bool is_terminal() const noexcept { return static_cast<bool>(to_node_); }
    /// Reads what was typed and gives it to the node, as far as the node takes it. False at the end of the input.
    bool pump();
    /// True while the node has not taken all that was read.
    bool blocked() const noexcept { return !held_.empty(); }
    int to_node() const noexcept { return to_node_.get(); }
    void close() noexcept { to_node_.reset(); }

private:
    base::Descriptor to_node_;
    std::string held_;
};

} // namespace kumi::launch
