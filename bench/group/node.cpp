#include "group/node.hpp"

#include "group/work.hpp"

#include "kumi/base/result.hpp"

namespace kumi::bench {

int group_node(std::span<const std::string> words) {
    if (words.size() != 2) return fail(error("kumi-bench node: what and where are wanted"));
    const std::string& what = words[0];
    const std::string& place = words[1];
    if (what == "multicast") return multicast_node(what, multicast_bytes, place);
    if (what == "create") return multicast_node(what, create_bytes, place);
    if (what == "master") return master_node(place);
    if (what == "allreduce") return allreduce_node(place);
    if (what == "alltoallv") return alltoallv_node(place);
    return fail(error("kumi-bench node: the groups' benchmark has no {}", what));
}

} // namespace kumi::bench
