#pragma once

namespace kumi::tools {

/// What each node of `kumi map --groups` runs: node 0 prints what messages take and how multicasts go. Answers an exit
/// code.
int map_groups_node();

} // namespace kumi::tools
