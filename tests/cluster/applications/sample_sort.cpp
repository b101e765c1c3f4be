// Sorts keys that are spread over all nodes: afterwards each node has the keys between two splitters.
//
//     kumi run -n 3 ./sample_sort
//
// Each node sorts its keys and gives some of them as samples. The samples of all nodes, sorted, give one splitter
// between each two nodes. Then all nodes exchange their keys at once: node r gets those from splitter r - 1 to before
// splitter r.
#include "applications.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <utility>
#include <vector>

namespace {

using Key = std::uint64_t;
using Keys = std::vector<Key>;

/// Every so many keys one, `count` at most.
Keys samples_of(const Keys& sorted, std::size_t count) {
    Keys samples;
    for (std::size_t i = 0; i < std::min(count, sorted.size()); ++i)
        samples.push_back(sorted[part_of(sorted.size(), i, std::min(count, sorted.size())).first]);
    return samples;
}

/// The keys of all members, sorted: lower ranks have lower keys.
Keys sample_sort(kumi::group::Group& group, Keys keys) {
    const kumi::Node size = group.size();
    std::ranges::sort(keys);
    Keys samples = joined(kumi::must(group.allgatherv(samples_of(keys, 8 * size))));
    std::ranges::sort(samples);

    // One part of the keys for each member.
    std::vector<std::span<const Key>> parts;
    std::vector<std::size_t> sizes, sizes_there(size);
    for (auto [rank, from] = std::pair{kumi::Node{1}, keys.begin()}; rank <= size; ++rank) {
        const auto splits = rank < size && !samples.empty();
        const auto to =
            splits ? std::ranges::lower_bound(keys, samples[part_of(samples.size(), rank, size).first]) : keys.end();
        parts.emplace_back(from, to);
        sizes.push_back(parts.back().size());
        from = to;
    }

    // Room for what comes from each member, one behind the other in one array.
    kumi::must(group.alltoall(sizes, sizes_there));
    Keys received;
    std::size_t total = 0;
    for (const std::size_t there : sizes_there) total += there;
    received.resize(total);
    std::vector<std::span<Key>> rooms;
    for (std::size_t at = 0; const std::size_t there : sizes_there)
        rooms.push_back(std::span(received).subspan(at, there)), at += there;
    kumi::must(group.alltoallv(parts, rooms));
    std::ranges::sort(received);
    return received;
}

/// Inputs that sorting programs get wrong.
struct Input {
    const char* name;
    std::size_t count;    // of all keys
    Key kinds;            // different keys at most
    std::size_t has_keys; // only nodes whose number is a multiple of this
};
constexpr Input inputs[] = {{"random keys", 20'011, ~Key{0}, 1},
                            {"seven kinds", 10'007, 7, 1},
                            {"one kind", 5'003, 1, 1},
                            {"every other node empty", 9'001, 1000, 2},
                            {"keys on node 0 only", 9'001, ~Key{0}, 1'000},
                            {"two keys", 2, 9, 1},
                            {"no keys", 0, 9, 1}};

/// The keys of one node: those of the parts of the input that this node has.
Keys keys_of(const Input& input, std::size_t node, std::size_t nodes) {
    if (node % input.has_keys != 0) return {};
    const std::size_t holders = (nodes + input.has_keys - 1) / input.has_keys;
    Keys keys;
    const Part part = part_of(input.count, node / input.has_keys, holders);
    for (std::size_t i = part.first; i < part.end; ++i) keys.push_back(random_at(i) % input.kinds);
    return keys;
}

} // namespace

int main() {
    auto job = kumi::must(kumi::Job::join());
    auto world = job.world();
    std::size_t count = 0;
    kumi::Result<void> outcome; // of all inputs: the other nodes go on after one that is wrong
    for (const Input& input : inputs) {
        const Keys mine = sample_sort(world, keys_of(input, job.node(), job.nodes()));
        const Keys sorted = joined(kumi::must(world.gatherv(0, mine)));
        if (job.node() != 0) continue;

        Keys serial = keys_of(input, 0, 1);
        std::ranges::sort(serial);
        if (auto equal = check_equal(sorted, serial); !equal)
            outcome = kumi::error("{}: {}", input.name, equal.error().text());
        count += sorted.size();
    }
    if (!outcome) return kumi::fail(outcome.error());
    if (job.node() == 0)
        fmt::print("sample sort on {} nodes: {} keys of {} inputs, as the serial program\n", job.nodes(), count,
                   std::size(inputs));
}
