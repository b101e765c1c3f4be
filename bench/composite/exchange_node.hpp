#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// A node of a job in the lab that exchanges messages with all others ("alltoall.BYTES") or with the nodes before and
/// behind it ("neighbours.BYTES"); node 0 reports the milliseconds that one exchange takes.
int exchange_node(std::span<const std::string> words);

/// A node of a job of two: node 0 sends long messages as fast as they go, node 1 counts them and reports MB/s as
/// `words` names the row.
int bulk_node(std::span<const std::string> words);

} // namespace kumi::bench
