#pragma once

// Shared calls of the engine: puts with notices, barriers with deadlines that are too short, segments that are made and
// freed, and rendezvous, some of which are cancelled.

#include "soak/world.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kumi::soak {

class Exchanges {
public:
    explicit Exchanges(World& world) : world_(world) {}
    /// Makes the segments; all nodes.
    void start();

    /// The shared call number `step`: the same at all nodes, whether they are members or not.
    void step(unsigned step);

private:
    using Words = std::vector<std::uint64_t>;
    static constexpr std::size_t words_each = 2000; // of each node on each node
    /// Memory of a rendezvous, which must stay while the engine may use it.
    struct Buffer {
        std::vector<std::byte> bytes;
        Flag flag = 0;
    };

    void pass_round(Random& random, const Set& set, std::uint64_t id);
    void count_arrivals(Random& random, const Set& set, std::uint64_t id);
    void barrier_of_all(Random& random, std::uint64_t id);
    void use_segment(Random& random, std::uint64_t id);
    void rendezvous(Random& random, const Set& set, std::uint64_t id);
    void give(Node to, std::uint64_t key, std::size_t bytes, bool cancels, Actor& mine);
    void take(Node from, std::uint64_t key, std::size_t bytes, bool cancels, Actor& mine);
    /// A barrier of a set that no lost node is in.
    void meet(const Set& set);
    Buffer& buffer(std::vector<std::byte> bytes);
    /// Waits for the flag of a rendezvous with `other`. Returns nothing if it failed with ErrorCode::cancelled.
    bool wait_for(const Buffer& buffer, Node other, const char* what);

    World& world_;
    Segment<std::uint64_t> words_; // by sender
    Segment<Flag> flags_;          // by sender
    Segment<Counter> counter_;
    std::vector<std::unique_ptr<Buffer>> buffers_; // of one step; those that a lost node may use, for ever
};

} // namespace kumi::soak
