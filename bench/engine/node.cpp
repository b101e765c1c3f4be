#include "engine/node.hpp"

#include "kumi/base/result.hpp"

namespace kumi::bench {

int engine_node(std::span<const std::string> words) {
    if (words.size() != 2) return fail(error("kumi-bench node: what and where are wanted"));
    const std::string& what = words[0];
    const std::string& place = words[1];
    if (what == "pair") return pair_node(place);
    if (what == "limit") return limit_node(place);
    if (what == "barrier" || what == "barrier_hidden") return barrier_node(place, what == "barrier_hidden");
    if (what == "answer") return answer_node(place);
    if (what == "idle") return idle_node(place);
    if (what == "jacobi") return jacobi_node();
    return fail(error("kumi-bench node: the engine's benchmark has no {}", what));
}

} // namespace kumi::bench
