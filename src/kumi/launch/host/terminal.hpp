#pragma once

// The nodes' connection to the user's terminal.

#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

#include <optional>
#include <string>
#include <sys/ioctl.h>

namespace kumi::launch::host {

/// Both ends of what a node writes to.
struct OutputPath {
    base::Descriptor ours;
    base::Descriptor nodes;
};

/// The size of the user's terminal, if standard output is one.
std::optional<winsize> own_terminal() noexcept;

/// A pipe; or a pseudo-terminal, where the user looks at one, so that programs go on writing line by line.
Result<OutputPath> make_output_path(const std::optional<winsize>& terminal);

/// Brings what the user types to node 0. A terminal must be read by us: node 0 is not in its foreground group.
class TypedInput {
public:
    /// What node 0 gets as standard input: ours itself when that is no terminal.
    Result<base::Descriptor> open();

    bool is_terminal() const noexcept { return static_cast<bool>(to_node_); }
    /// What was typed can be read, or the node may take more. False when there is nothing more to bring.
    bool pump();
    /// Is there something read that the node has not taken?
    bool blocked() const noexcept { return !held_.empty(); }
    int to_node() const noexcept { return to_node_.get(); }
    void close() noexcept { to_node_.reset(); }

private:
    base::Descriptor to_node_;
    std::string held_;
};

} // namespace kumi::launch::host
