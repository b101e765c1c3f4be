#pragma once

#include "kumi/kumi.hpp"

#include <vector>

namespace kumi::bench {

inline Set set_of(const std::vector<int>& members) {
    Set set;
    for (const int node : members) set.add(static_cast<Node>(node));
    return set;
}

/// Waits until all members have a multicast.
inline void finish(Future<Set>& multicast) {
    const Set missing = must(multicast.get());
    if (!missing.empty()) must(Result<void>(error("nodes {} did not get a multicast", missing.text())));
}

} // namespace kumi::bench
