#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// Runs a node of a job in a lab. The node exchanges messages with all others ("alltoall.BYTES") or with the nodes
/// before and after it ("neighbours.BYTES"). Node 0 reports the milliseconds of one exchange.
/// If the second word is "limit", the process joins no job: it reports how long the cable takes for such an exchange.
int exchange_node(std::span<const std::string> words);

/// Runs a node of a job of two. Node 0 sends long messages as fast as it can; node 1 counts them and reports MB/s.
/// `words` names the row.
int bulk_node(std::span<const std::string> words);

/// The same with messages of 256 KiB, and after so long that the channel has found out by which networks they go.
int stripes_node(std::span<const std::string> words);

} // namespace kumi::bench
