#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/group/set.hpp"

#include <cstddef>
#include <mpi.h>
#include <vector>

namespace kumi::bench {

/// How members that have a part each get all parts.
enum class Allgather {
    ring,     // p - 1 rounds, as in the paper
    doubling, // log2 p rounds where p is a power of two, else the ring: what the paper plans, and MPICH does
};

/// One multicast at one member as Nagamine, Fukuma and Mori describe it, over MPI's messages between two ranks. The
/// bitmap of members travels with the content. Content of up to 8 KB goes whole down a binomial tree. Larger content is
/// scattered down this tree, 1/p of it to each of p members (of 80 KB to 256 members, 320 bytes), and then gathered.
class PaperMulticast {
public:
    /// At the master, which is the first member. `all` has a rank for each node.
    PaperMulticast(MPI_Comm all, const group::Set& members, Bytes content, Allgather allgather);
    /// At any other rank: waits until some rank sends this one a multicast of that size.
    PaperMulticast(MPI_Comm all, std::size_t bytes, Allgather allgather);

    /// Sends what other members get from this one. Returns all content when it is here.
    Bytes deliver();
    /// Waits until the members to which this one sent first have acknowledged, then acknowledges.
    void acknowledge() const;

private:
    /// Bytes of the content.
    struct Range {
        std::size_t begin;
        std::size_t end;
    };

    group::Node members() const noexcept { return members_.size(); }
    int node(group::Node rank) const noexcept { return static_cast<int>(members_.at(rank)); }
    bool goes_whole() const noexcept;
    /// The bytes of the parts from `begin` on, `count` of them or as many as there are.
    Range parts(std::size_t begin, std::size_t count) const noexcept;
    /// What a rank gets in its first message, from the rank that is `distance` before it.
    Range first_range(group::Node rank, group::Node distance) const noexcept;
    /// Calls use(rank, distance) for each rank to which this one sends first. The farthest one has the most to send.
    template <class Use>
    void for_each_child(Use&& use) const;
    void send_first(group::Node rank, group::Node distance) const;
    void gather_by_ring();
    void gather_by_doubling();
    void exchange(group::Node to, Range sent, group::Node from, Range received);

    MPI_Comm all_;
    Allgather allgather_;
    group::Set members_;
    group::Node rank_ = 0; // among the members
    int parent_ = -1;      // MPI's rank of the member that sent here first
    std::vector<std::byte> content_;
};

} // namespace kumi::bench
