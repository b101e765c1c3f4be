#include "soak/multicasts.hpp"

#include <algorithm>

namespace kumi::soak {

Multicasts::Multicasts(Handlers& handlers, World& world)
    : world_(world), take_(handlers.add("take_multicast",
                                        [this](Call& call, std::uint64_t number, Bytes content) {
                                            const Node master = call.source();
                                            if (number <= std::exchange(last_[master], number))
                                                world_.wrong(fmt::format("multicast {} of node {} is late", number,
                                                                         master));
                                            if (!has_pattern(content, mixed(master, number)))
                                                world_.wrong(fmt::format("multicast {} of node {} has other bytes",
                                                                         number, master));
                                            ++received_[master];
                                        })),
      received_by_(handlers.function("multicasts_received",
                                     [this](std::uint32_t master) { return received_[master].load(); })),
      sent_(world.plan.nodes), last_(world.plan.nodes), received_(world.plan.nodes) {}

void Multicasts::act(Actor& actor) {
    std::vector<std::pair<Set, Future<Set>>> under_way;
    for (std::uint64_t i = actor.random.between(1, 5); i > 0; --i) {
        const Set set = actor.some_set(world_, actor.some_node(world_));
        const std::size_t bytes = actor.random.size(300000);
        const std::lock_guard lock(mutex_);
        const auto content = pattern(mixed(world_.self(), ++number_), bytes);
        under_way.emplace_back(set, world_.job().multicast(set, take_, number_, Bytes(content)));
        for (const Node member : set) ++sent_[member];
    }
    for (auto& [set, future] : under_way) {
        const auto missing = future.get(world_.deadline(world_.is_victim()));
        if (!world_.is_good(missing, world_.is_victim(), "multicast")) continue; // lost members are no error
        for (const Node node : *missing)
            if (!world_.is_risky(node)) world_.wrong(fmt::format("node {} did not get a multicast", node));
    }
}

void Multicasts::check() {
    const Instant deadline = world_.deadline(false);
    for (const Node node : world_.survivors()) {
        // A multicast that this node has not waited for to the end, because of a lost member, may still be under way.
        for (std::uint64_t found = ~std::uint64_t{0}; found != sent_[node];) {
            const auto count = world_.job().invoke(node, received_by_, world_.self()).get(deadline);
            if (!world_.is_good(count, false, "invoke of multicasts_received")) return;
            found = *count;
            const bool may_be_late = world_.is_some_lost() && now() < deadline;
            if (found > sent_[node] || (found < sent_[node] && !may_be_late))
                world_.wrong(fmt::format("node {} got {} multicasts of {}", node, found, sent_[node]));
        }
    }
}

} // namespace kumi::soak
