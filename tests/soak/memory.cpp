#include "soak/memory.hpp"

#include <algorithm>
#include <numeric>

namespace kumi::soak {

MemoryModel::MemoryModel(Handlers& handlers, World& world)
    : world_(world), added_to_(handlers.function("added_to",
                                                 [this](std::uint32_t node) {
                                                     Amounts amounts(sums);
                                                     for (const Known& known : known_)
                                                         for (std::size_t i = 0; i < sums; ++i)
                                                             amounts[i] = combined(i, amounts[i],
                                                                                   known.added[node * sums + i]);
                                                     return amounts;
                                                 })),
      poke_(handlers.function("poke",
                              [this](global_ptr<std::uint64_t> where, std::uint32_t count,
                                     std::uint64_t first) -> Result<bool> {
                                  Words words(count);
                                  std::iota(words.begin(), words.end(), first);
                                  if (auto put = world_.job().memory().put(where, words); !put) return put.error();
                                  if (auto done = world_.job().sync(now() + 60s); !done) return done.error();
                                  return true;
                              })),
      known_(world.plan.threads) {
    for (Known& known : known_) {
        known.versions.resize(world.plan.nodes * words_each);
        known.before.resize(world.plan.nodes * sums);
        known.added.resize(world.plan.nodes * sums);
    }
}

void MemoryModel::start() {
    words_ = must(world_.job().memory().segment<std::uint64_t>(world_.plan.nodes * world_.plan.threads * words_each));
    sums_ = must(world_.job().memory().segment<std::uint64_t>(sums));
}

void MemoryModel::act(Actor& actor) {
    switch (actor.random.below(8)) {
    case 0: return use_heap(actor);
    case 3: return store(actor);
    case 4: return copy(actor);
    case 1: return peek(actor);
    case 2: return add(actor);
    default: return put_and_get(actor);
    }
}

// ---- words of a thread

std::uint32_t MemoryModel::mark_of(Node owner, unsigned thread, std::size_t index) noexcept {
    return static_cast<std::uint32_t>(mixed(owner, thread, index)) | 1;
}

global_ptr<std::uint64_t> MemoryModel::place(const Range& range, Node owner, unsigned thread) const noexcept {
    return words_.at(range.node, (owner * world_.plan.threads + thread) * words_each + range.first);
}

MemoryModel::Range MemoryModel::some_range(Actor& actor) const {
    const std::size_t count = 1 + actor.random.size(words_each - 1);
    return {actor.some_node(world_), actor.random.below(words_each - count + 1), count};
}

MemoryModel::Words MemoryModel::words_of(unsigned thread, const Range& range, std::uint32_t version) const {
    Words words(range.count);
    for (std::size_t i = 0; i < range.count; ++i)
        words[i] = std::uint64_t{version} << 32 | mark_of(world_.self(), thread, range.first + i);
    return words;
}

void MemoryModel::put_and_get(Actor& actor) {
    const Range range = some_range(actor);
    const bool is_risky = world_.is_risky(range.node);
    Known& known = known_[actor.thread];
    std::uint32_t* const versions = &known.versions[range.node * words_each + range.first];
    const Words words = words_of(actor.thread, range, ++known.version);
    std::fill_n(versions, range.count, known.version);
    put(actor, range, words, is_risky);
    world_.sync();
    Words found(range.count);
    if (get(actor, range, found, is_risky) && !is_risky && found != words)
        world_.wrong(fmt::format("a get of {} words of node {} has other words than the put", range.count, range.node));
    const Range other{range.node, actor.random.below(words_each), 1};
    const auto word = world_.job().memory().read(place(other, world_.self(), actor.thread));
    if (!world_.is_good(word, is_risky, "read") || is_risky) return;
    const std::uint32_t version = known.versions[other.node * words_each + other.first];
    const std::uint64_t mark = mark_of(world_.self(), actor.thread, other.first);
    world_.expect(*word, version == 0 ? 0 : std::uint64_t{version} << 32 | mark, "read of a word that was put earlier");
}

void MemoryModel::put(Actor& actor, const Range& range, const Words& words, bool is_risky) {
    const auto to = place(range, world_.self(), actor.thread);
    auto memory = world_.job().memory();
    switch (actor.random.below(3)) {
    case 0: return (void)world_.is_good(memory.start_put(to, words), is_risky, "start_put");
    case 1: return (void)world_.is_good(memory.put(to, words), is_risky, "put");
    default:
        auto future = memory.async().put(to, words);
        if (!world_.is_good(future.get(world_.deadline(is_risky)), is_risky, "async put")) future.cancel();
    }
}

bool MemoryModel::get(Actor& actor, const Range& range, Words& words, bool is_risky) {
    const auto from = place(range, world_.self(), actor.thread);
    auto memory = world_.job().memory();
    switch (actor.random.below(3)) {
    case 0: return world_.is_good(memory.get(from, words), is_risky, "get");
    case 1: {
        const bool has_begun = world_.is_good(memory.start_get(from, words), is_risky, "start_get");
        world_.sync();
        return has_begun;
    }
    default:
        auto future = memory.async().get(from, words);
        const bool is_done = world_.is_good(future.get(world_.deadline(is_risky)), is_risky, "async get");
        if (!is_done) future.cancel();
        return is_done;
    }
}

/// To several nodes at once.
void MemoryModel::store(Actor& actor) {
    const Range range = some_range(actor);
    const Set set = actor.some_set(world_, range.node);
    Known& known = known_[actor.thread];
    const Words words = words_of(actor.thread, range, ++known.version);
    for (const Node node : set)
        std::fill_n(&known.versions[node * words_each + range.first], range.count, known.version);
    auto future = world_.job().multicast(set, place(range, world_.self(), actor.thread), words);
    const auto missing = future.get(world_.deadline(world_.is_victim()));
    if (!world_.is_good(missing, world_.is_victim(), "multicast to memory")) return;
    for (const Node node : *missing)
        if (!world_.is_risky(node)) world_.wrong(fmt::format("node {} did not get a multicast to memory", node));
    Words found(range.count);
    const bool is_risky = world_.is_risky(range.node);
    if (get(actor, range, found, is_risky) && !is_risky && found != words)
        world_.wrong(fmt::format("a get of {} words of node {} has other words than the multicast", range.count,
                                 range.node));
}

/// From one node to another.
void MemoryModel::copy(Actor& actor) {
    const Range from = some_range(actor);
    const Range to{actor.some_node(world_), from.first, from.count};
    const bool is_risky = world_.is_risky(from.node) || world_.is_risky(to.node);
    // What a copy that has failed, or is late, has changed is not known.
    if (is_risky || from.node == to.node) return;
    const auto begun = world_.job().memory().copy(place(from, world_.self(), actor.thread),
                                                  place(to, world_.self(), actor.thread), from.count);
    (void)world_.is_good(begun, is_risky, "copy");
    world_.sync();
    auto& versions = known_[actor.thread].versions;
    std::copy_n(&versions[from.node * words_each + from.first], from.count,
                &versions[to.node * words_each + to.first]);
    const auto word = world_.job().memory().read(place(to, world_.self(), actor.thread));
    if (!world_.is_good(word, is_risky, "read")) return;
    const std::uint32_t version = versions[to.node * words_each + to.first];
    world_.expect(*word, version == 0 ? 0 : words_of(actor.thread, {to.node, to.first, 1}, version)[0],
                  "read of a word that was copied");
}

/// The words of others change any time, but a word is never torn.
void MemoryModel::peek(Actor& actor) {
    const Range range = some_range(actor);
    const Node owner = static_cast<Node>(actor.random.below(world_.plan.nodes));
    const auto thread = static_cast<unsigned>(actor.random.below(world_.plan.threads));
    Words words(range.count);
    const bool is_risky = world_.is_risky(range.node);
    const auto got = world_.job().memory().get(place(range, owner, thread), words);
    if (!world_.is_good(got, is_risky, "get of words of others")) return;
    for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i] != 0 && static_cast<std::uint32_t>(words[i]) != mark_of(owner, thread, range.first + i))
            world_.wrong(fmt::format("word {} of node {}'s on node {} is {:x}", range.first + i, owner, range.node,
                                     words[i]));
}

// ---- words that all add to

std::uint64_t MemoryModel::combined(std::size_t sum, std::uint64_t before, std::uint64_t amount) noexcept {
    return sum < 2 ? before + amount : sum == 2 ? before ^ amount : std::max(before, amount);
}

void MemoryModel::add(Actor& actor) {
    const Node node = actor.some_node(world_);
    const std::size_t index = actor.random.below(sums);
    Known& known = known_[actor.thread];
    std::uint64_t& least = known.before[node * sums + index];
    for (std::uint64_t i = actor.random.between(1, 20); i > 0; --i) {
        const std::uint64_t amount = actor.random.between(1, 1000);
        const bool is_risky = world_.is_risky(node);
        auto memory = world_.job().memory();
        const auto sum = sums_.at(node, index);
        const auto before = index < 2    ? memory.fetch_add(sum, amount)
                            : index == 2 ? memory.fetch_xor(sum, amount)
                                         : memory.fetch_max(sum, amount);
        if (!world_.is_good(before, is_risky, "an atomic operation")) return;
        if (index != 2 && *before < least)
            world_.wrong(fmt::format("a sum of node {} was {}, then {}", node, least, *before));
        least = combined(index, *before, amount);
        std::uint64_t& added = known.added[node * sums + index];
        added = combined(index, added, amount);
    }
}

void MemoryModel::check() {
    Amounts added(sums);
    for (const Node node : world_.survivors()) {
        const auto amounts = world_.job().invoke(node, added_to_, world_.self()).get(world_.deadline(false));
        if (!world_.is_good(amounts, false, "invoke of added_to")) return;
        for (std::size_t i = 0; i < sums; ++i) added[i] = combined(i, added[i], (*amounts)[i]);
    }
    const bool is_exact = !world_.is_some_lost(); // nodes that are lost have added, too
    for (std::size_t i = 0; i < sums; ++i) {
        const std::uint64_t found = load_flag(sums_[i]);
        if ((i != 2 && found < added[i]) || (is_exact && found != added[i]))
            world_.wrong(fmt::format("sum {} is {}, and {} was added", i, found, added[i]));
    }
}

// ---- the heap

void MemoryModel::use_heap(Actor& actor) {
    const auto count = static_cast<std::uint32_t>(1 + actor.random.size(20000));
    const auto memory = must(world_.job().memory().allocate<std::uint64_t>(count));
    const Node node = actor.some_node(world_);
    const bool is_risky = world_.is_some_lost(); // the function syncs
    const std::uint64_t first = actor.random.next();
    auto future = world_.job().invoke(node, poke_, memory, count, first);
    const auto done = future.get(world_.deadline(world_.is_risky(node)));
    // Of a node that is lost, or too slow, something may still come: its memory is not given back.
    if (!world_.is_good(done, is_risky, "poke")) return;
    const std::uint64_t* const words = world_.job().memory().local(memory, count);
    for (std::uint32_t i = 0; i < count; ++i) world_.expect(words[i], first + i, "a word that another node has put");
    (void)world_.is_good(world_.job().memory().release(memory), false, "release");
}

} // namespace kumi::soak
