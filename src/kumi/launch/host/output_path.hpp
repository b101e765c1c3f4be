#pragma once

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <optional>
#include <sys/ioctl.h>

namespace kumi::launch::host {

/// Both ends of the pipe or pseudo-terminal that a node writes to.
struct OutputPath {
    base::Descriptor ours;
    base::Descriptor nodes;
};

/// Makes a pipe. Where the user looks at a terminal, which has the size `terminal`, it makes a pseudo-terminal instead:
/// then programs go on writing line by line.
Result<OutputPath> make_output_path(const std::optional<winsize>& terminal);

} // namespace kumi::launch::host
