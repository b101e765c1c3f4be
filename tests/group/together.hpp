#pragma once

// Every call that members of a set make together: what it must answer, by a plain computation, and whose contribution
// is in it. Whoever has an answer has it from all of these, so none of them may come to the call later than that.
// Values may be the same in all rounds: then what is left of an earlier round looks right, and only the order of coming
// and leaving tells.

#include "group/node.hpp"

#include "kumi/group/group.hpp"

#include <algorithm>
#include <array>

namespace kumi::group_test {

/// x -> a * x + b, modulo 2^32. One after the other is one again, and the order matters.
struct Affine {
    std::uint32_t a, b;
    friend bool operator==(const Affine&, const Affine&) = default;
};
inline constexpr auto then = [](const Affine& first, const Affine& second) {
    return Affine{first.a * second.a, first.b * second.a + second.b};
};

struct Together {
    enum What {
        barrier,
        broadcast,
        reduce,
        allreduce,
        gather,
        scatter,
        allgather,
        alltoall,
        scan,
        exclusive_scan,
        gatherv,
        scatterv,
        allgatherv,
        alltoallv,
        whats
    };

    What what = barrier;
    Node root = 0; // rank
    std::size_t count = 1;
    group::Order order = group::Order::tree;
    std::uint32_t values = 0; // which ones: of a round, or always the same

    /// What the answer at rank `to` is made of.
    bool needs(Node to, Node from) const {
        switch (what) {
        case broadcast:
        case scatter:
        case scatterv: return from == root;
        case reduce:
        case gather:
        case gatherv: return to == root;
        case scan: return from <= to;
        case exclusive_scan: return from < to;
        default: return true;
        }
    }

    /// Makes the call; true if it answers what it must.
    Result<bool> call(group::Group& group, Instant deadline = never) const {
        const Node size = group.size(), rank = group.rank();
        const std::vector<Affine> mine = part(rank, rank, count);
        std::vector<Affine> result(count, Affine{1, 0}), all(count * size);
        const auto answered = [](const Result<void>& done, bool is_right) -> Result<bool> {
            if (!done) return done.error();
            return is_right;
        };
        switch (what) {
        case barrier: return answered(group.barrier(deadline), true);
        case broadcast: {
            if (rank == root) result = mine;
            const auto done = group.broadcast(root, result, deadline);
            return answered(done, result == part(root, root, count));
        }
        case reduce: {
            const auto done = group.reduce(root, mine, result, then, deadline, order);
            return answered(done, rank != root || result == folded(0, size));
        }
        case allreduce: {
            const auto done = group.allreduce(mine, result, then, deadline, order);
            return answered(done, result == folded(0, size));
        }
        case gather: {
            const auto done = group.gather(root, mine, all, deadline);
            return answered(done, rank != root || all == everybodys(size));
        }
        case scatter: {
            const auto done =
                group.scatter(root, rank == root ? everybodys(size) : std::vector<Affine>{}, result, deadline);
            return answered(done, result == mine);
        }
        case allgather: {
            const auto done = group.allgather(mine, all, deadline);
            return answered(done, all == everybodys(size));
        }
        case alltoall: {
            std::vector<Affine> sent, expected;
            for (Node other = 0; other < size; ++other) {
                std::ranges::copy(part(rank, other, count), std::back_inserter(sent));
                std::ranges::copy(part(other, rank, count), std::back_inserter(expected));
            }
            const auto done = group.alltoall(sent, all, deadline);
            return answered(done, all == expected);
        }
        case scan: {
            const auto done = group.scan(mine, result, then, deadline, order);
            return answered(done, result == folded(0, rank + 1));
        }
        case exclusive_scan: {
            const auto done = group.exclusive_scan(mine, result, then, deadline, order);
            return answered(done,
                            rank == 0 ? result == std::vector<Affine>(count, Affine{1, 0}) : result == folded(0, rank));
        }
        default: return call_of_any_size(group, deadline);
        }
    }

    std::string text() const {
        return fmt::format("call {} with root {}, {} values, {}", static_cast<int>(what), root, count,
                           order == group::Order::tree ? "tree" : "by rank");
    }

private:
    using Parts = std::vector<std::vector<Affine>>;

    /// What `from` has for `to`.
    std::vector<Affine> part(Node from, Node to, std::size_t of) const {
        std::vector<Affine> some(of);
        std::uint32_t state = values * 2654435761u + from * 40503u + to * 9176u + 1;
        for (Affine& one : some) {
            state = state * 1664525u + 1013904223u;
            one = {state | 1, state >> 7};
        }
        return some;
    }
    std::vector<Affine> folded(Node begin, Node end) const {
        auto all = part(begin, begin, count);
        for (Node rank = begin + 1; rank < end; ++rank)
            std::ranges::transform(all, part(rank, rank, count), all.begin(), then);
        return all;
    }
    std::vector<Affine> everybodys(Node size) const {
        std::vector<Affine> all;
        for (Node rank = 0; rank < size; ++rank) std::ranges::copy(part(rank, rank, count), std::back_inserter(all));
        return all;
    }
    /// Each rank has another size, and one has nothing.
    std::vector<Affine> piece(Node from, Node to) const {
        return part(from, to, count * ((from + to + values) % 3) / 2);
    }

    Result<bool> call_of_any_size(group::Group& group, Instant deadline) const {
        const Node size = group.size(), rank = group.rank();
        Parts own, for_me;
        for (Node other = 0; other < size; ++other)
            own.push_back(piece(other, other)), for_me.push_back(piece(other, rank));
        const auto is = [](const Result<Parts>& got, const Parts& expected) -> Result<bool> {
            if (!got) return got.error();
            return *got == expected;
        };
        if (what == gatherv) return is(group.gatherv(root, own[rank], deadline), rank == root ? own : Parts{});
        if (what == allgatherv) return is(group.allgatherv(own[rank], deadline), own);
        if (what == scatterv) {
            const auto mine = group.scatterv(root, rank == root ? own : Parts{}, deadline);
            if (!mine) return mine.error();
            return *mine == own[rank];
        }
        Parts sent;
        for (Node other = 0; other < size; ++other) sent.push_back(piece(rank, other));
        return is(group.alltoallv(sent, deadline), for_me);
    }
};

/// Any call, with as few values as most have, or with as many as are treated in another way than one less.
inline Together any_together(std::mt19937_64& random, Node size) {
    constexpr std::array<std::size_t, 10> edges{2048, 2049, 4096, 4097, 8192, 8193, 12'288, 0, 1, 2};
    Together one;
    one.what = static_cast<Together::What>(random() % Together::whats);
    one.root = static_cast<Node>(random() % size);
    one.count = random() % 4 == 0 ? edges[random() % edges.size()] : 1 + random() % 20;
    if (random() % 3 == 0) one.order = group::Order::by_rank;
    one.values = random() % 2 == 0 ? 7 : static_cast<std::uint32_t>(random() % 1000);
    return one;
}

} // namespace kumi::group_test
