#pragma once

// Remote memory against a model: each thread has words of its own on each node, and knows what must be in them; words
// that all threads add to have the sum of what was added; memory of the heap has what another node was asked to put.

#include "soak/world.hpp"

#include <cstdint>
#include <vector>

namespace kumi::soak {

class MemoryModel {
public:
    MemoryModel(Handlers& handlers, World& world);
    /// Makes the segments; all nodes.
    void start();

    void act(Actor& actor);
    /// All survivors have synced, and none adds.
    void check();

private:
    using Amounts = std::vector<std::uint64_t>;
    using Words = std::vector<std::uint64_t>;
    static constexpr std::size_t words_each = 3000; // of each thread on each node: more than a small message has
    static constexpr std::size_t sums = 4;          // on each node: two to add to, one to xor, one to raise

    /// What a thread knows.
    struct Known {
        std::vector<std::uint32_t> versions; // of its words, by node
        std::vector<std::uint64_t> before;   // the least that is there now, of each sum on each node
        Amounts added;                       // the same
        std::uint32_t version = 0;
    };
    struct Range {
        Node node;
        std::size_t first, count; // among the words of a thread on that node
    };

    void put_and_get(Actor& actor);
    void put(Actor& actor, const Range& range, const Words& words, bool is_risky);
    bool get(Actor& actor, const Range& range, Words& words, bool is_risky);
    void store(Actor& actor);
    void copy(Actor& actor);
    void peek(Actor& actor);
    void add(Actor& actor);
    void use_heap(Actor& actor);

    Range some_range(Actor& actor) const;
    global_ptr<std::uint64_t> place(const Range& range, Node owner, unsigned thread) const noexcept;
    /// The words of a thread, of one version.
    Words words_of(unsigned thread, const Range& range, std::uint32_t version) const;
    /// What is in a sum with `amount` after `before`.
    static std::uint64_t combined(std::size_t sum, std::uint64_t before, std::uint64_t amount) noexcept;
    static std::uint32_t mark_of(Node owner, unsigned thread, std::size_t index) noexcept;

    World& world_;
    Function<Amounts(std::uint32_t)> added_to_;
    Function<bool(global_ptr<std::uint64_t>, std::uint32_t, std::uint64_t)> poke_;
    Segment<std::uint64_t> words_;
    Segment<std::uint64_t> sums_;
    std::vector<Known> known_; // by thread
};

} // namespace kumi::soak
