#pragma once

// Shared calls: collectives of random sets, blocking or started. All members compute what must come out.

#include "soak/world.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kumi::soak {

class Collectives {
public:
    explicit Collectives(World& world) : world_(world) {}

    /// The shared call number `step`: the same at all nodes, whether they are members or not.
    void step(unsigned step);

private:
    using Words = std::vector<std::uint64_t>;
    /// One call of this node as a member.
    struct Call {
        group::Group group;
        std::uint64_t key; // of the values
        std::size_t count; // of values
        Node root;         // a rank
        bool is_risky;
        Instant deadline;
    };

    void one_call(Random& random, group::Group& group, bool is_risky);
    void started_calls(Random& random, group::Group& group, bool is_risky);
    void objects(Random& random, group::Group& group, bool is_risky);
    void barrier(const Call& call);
    void broadcast(const Call& call);
    void reduce(const Call& call);
    void allreduce(const Call& call);
    void gather(const Call& call);
    void scatter(const Call& call);
    void allgather(const Call& call);
    void alltoall(const Call& call);
    void scan(const Call& call);
    void allgatherv(const Call& call);

    Call some_call(Random& random, group::Group& group, bool is_risky) const;
    void expect(const Call& call, const Words& found, const Words& expected, const char* what) const;

    World& world_;
};

} // namespace kumi::soak
