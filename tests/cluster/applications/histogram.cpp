// Counts random keys in bins that are spread over all nodes, by remote atomic additions.
//
//     kumi run -n 3 ./histogram [KEYS] [BINS]
//
// Each addition answers how many keys its bin had before: the place of the key in its bin. So the places of the keys of
// a bin are 0, 1, 2 and so on, each once, whatever the order of the additions; their sum is checked, too.
#include "applications.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <vector>

namespace {

using Count = std::uint64_t;

/// The bin of key number `index`. Low bins get more keys, so nodes often add to the same bin at the same time.
std::size_t bin_at(std::size_t index, std::size_t bins) {
    return std::min(random_at(2 * index) % bins, random_at(2 * index + 1) % bins);
}

} // namespace

int main(int count, char** words) {
    const std::size_t keys = number_in(count, words, 1, 20'001), bins = number_in(count, words, 2, 97);
    auto job = kumi::must(kumi::Job::join());
    auto memory = job.memory();
    const kumi::Node self = job.node(), nodes = job.nodes();
    if (bins == 0) return kumi::fail(kumi::error("a histogram has one bin or more"));

    // Bin b is on node b % nodes, where it has index b / nodes.
    const std::size_t bins_each = (bins + nodes - 1) / nodes;
    const auto counts = kumi::must(memory.segment<Count>(bins_each));
    const Part mine = part_of(keys, self, nodes);

    // Half of the keys one after the other, which waits for each answer; half of them all at once.
    Count places = 0;
    std::vector<kumi::Future<Count>> answers;
    for (std::size_t i = mine.first; i < mine.end; ++i) {
        const std::size_t bin = bin_at(i, bins);
        const auto place = counts.at(static_cast<kumi::Node>(bin % nodes), bin / nodes);
        if (i % 2 == 0) places += kumi::must(memory.fetch_add(place, 1));
        else answers.push_back(memory.async().fetch_add(place, 1));
    }
    for (auto& answer : answers) places += kumi::must(answer.get());

    // Each node has all its answers before it comes here, so all keys are counted behind this call.
    places = kumi::must(job.world().allreduce(places, kumi::group::sum));
    std::vector<Count> all(bins_each * nodes);
    if (self == 0)
        for (kumi::Node node = 0; node < nodes; ++node)
            kumi::must(memory.get(counts.at(node), std::span(all).subspan(node * bins_each, bins_each)));
    kumi::must(job.barrier()); // no node leaves before node 0 has read its bins
    if (self != 0) return 0;

    std::vector<Count> found(bins), serial(bins);
    for (std::size_t bin = 0; bin < bins; ++bin) found[bin] = all[bin % nodes * bins_each + bin / nodes];
    for (std::size_t i = 0; i < keys; ++i) ++serial[bin_at(i, bins)];
    if (auto equal = check_equal(found, serial); !equal) return kumi::fail(equal.error());
    Count serial_places = 0;
    for (const Count in_bin : serial) serial_places += in_bin * (in_bin - (in_bin > 0)) / 2;
    if (places != serial_places)
        return kumi::fail(kumi::error("the places of keys add up to {}, but those of the serial program to {}", places,
                                      serial_places));
    fmt::print("histogram on {} nodes: {} keys in {} bins, as the serial program\n", nodes, keys, bins);
}
