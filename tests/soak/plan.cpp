#include "soak/plan.hpp"

#include <algorithm>

namespace kumi::soak {

std::uint64_t Random::next() noexcept {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t word = state_;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

std::size_t Random::size(std::size_t most) noexcept {
    const std::size_t limit = once_in(20) ? most : once_in(5) ? 5000 : 100;
    return below(std::min(limit, most) + 1);
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) noexcept {
    std::uint64_t word = Random(a).next();
    for (const std::uint64_t other : {b, c, d}) word = Random(word ^ other).next();
    return word;
}

Plan::Plan(std::uint64_t its_seed, Node its_nodes, unsigned its_epochs, unsigned its_steps, Trouble trouble)
    : seed(its_seed), nodes(its_nodes), epochs(its_epochs), steps(its_steps), fates(its_nodes) {
    Random random(mixed(seed, nodes));
    threads = static_cast<unsigned>(random.between(1, 3));
    stop_ms = static_cast<unsigned>(random.between(50, 1500));
    if (trouble == Trouble::none) return;
    Node left = nodes;
    for (Fate& fate : fates) {
        const std::uint64_t lot = random.below(6);
        fate.epoch = static_cast<unsigned>(random.below(epochs));
        fate.after_ms = static_cast<unsigned>(random.below(400));
        if (lot == 0) fate.kind = Fate::stops;
        if (trouble != Trouble::losses || lot == 0 || lot > 3 || left <= 2) continue;
        fate.kind = lot == 1 ? Fate::leaves : Fate::dies;
        if (fate.kind == Fate::leaves) fate.after_ms = static_cast<unsigned>(random.below(steps + 1));
        --left;
    }
}

bool Plan::is_lost(Node node, unsigned epoch) const noexcept {
    const Fate& fate = fates[node];
    return (fate.kind == Fate::leaves || fate.kind == Fate::dies) && fate.epoch <= epoch;
}

Set Plan::survivors(unsigned epoch) const {
    Set set;
    for (Node node = 0; node < nodes; ++node)
        if (!is_lost(node, epoch)) set.add(node);
    return set;
}

bool Plan::has_watchers() const noexcept {
    return std::any_of(fates.begin(), fates.end(),
                       [](const Fate& fate) { return fate.kind == Fate::dies || fate.kind == Fate::stops; });
}

} // namespace kumi::soak
