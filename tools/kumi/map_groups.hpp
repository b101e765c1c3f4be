#pragma once

namespace kumi::tools {

/// Runs one node of `kumi map --groups`. Node 0 prints how long messages take and which way multicasts go. Answers an
/// exit code.
int map_groups_node();

} // namespace kumi::tools
