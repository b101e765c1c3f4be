#include "kumi/launch/fences.hpp"

#include <algorithm>

namespace kumi::launch {

std::optional<std::vector<std::size_t>> Fences::hosts_of(std::string_view key) const {
    const auto nodes = host::nodes_of_fence(key, parts_.back().first + parts_.back().count);
    if (!nodes) return std::nullopt;
    std::vector<std::size_t> hosts;
    if (nodes->empty())
        for (std::size_t host = 0; host < parts_.size(); ++host) hosts.push_back(host);
    for (const std::uint32_t node : *nodes)
        if (const std::size_t host = host::part_of(parts_, node); hosts.empty() || hosts.back() != host)
            hosts.push_back(host);
    return hosts;
}

std::optional<Fences::Completed> Fences::on_fence(std::uint32_t node, host::Fence fence) {
    const auto hosts = hosts_of(fence.key);
    const std::size_t from = host::part_of(parts_, node);
    if (!hosts || !std::ranges::binary_search(*hosts, from)) return std::nullopt;
    auto& given = given_[fence.key];
    given[from].push_back(std::move(fence.content));
    if (given.size() < hosts->size()) return std::nullopt;

    Completed all{{}, {fence.key, {}}};
    for (const std::size_t host : *hosts) {
        auto& waiting = given[host];
        all.nodes.push_back(parts_[host].first);
        all.fence.content.insert(all.fence.content.end(), waiting.front().begin(), waiting.front().end());
        waiting.pop_front();
        if (waiting.empty()) given.erase(host);
    }
    if (given.empty()) given_.erase(fence.key);
    return all;
}

} // namespace kumi::launch
