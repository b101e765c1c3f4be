#pragma once

// Steps of collectives in which each member has any number of bytes. `mine` and `parts` must stay until the steps have
// ended.

#include "kumi/group/collective/collectives.hpp"
#include "kumi/group/started/steps.hpp"

#include <vector>

namespace kumi::group {

/// The root gets the parts of all members.
Steps gather_parts(CollectiveCall& call, Node root, Bytes mine, Parts& parts);
/// The inverse. `parts` is used at the root only.
Steps scatter_parts(CollectiveCall& call, Node root, const std::vector<Bytes>& parts, std::vector<std::byte>& mine);
/// All members get the parts of all.
Steps allgather_parts(CollectiveCall& call, Bytes mine, Parts& parts);
/// Part r goes to rank r.
Steps exchange_parts(CollectiveCall& call, const std::vector<Bytes>& parts, Parts& received);
/// The same into memory that is there.
Steps exchange_parts(CollectiveCall& call, const std::vector<Bytes>& parts, const std::vector<MutableBytes>& rooms);

} // namespace kumi::group
