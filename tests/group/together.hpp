#pragma once

// Every call that members of a set make together: what it must answer, by a plain computation, and whose contribution
// is in it. Whoever has an answer has it from all of these, so none of them may come to the call later than that.
// Values may be the same in all rounds: then what is left of an earlier round looks right, and only the order of coming
// and leaving tells.

#include "group/node.hpp"

#include "kumi/group/group.hpp"

#include <algorithm>
#include <array>
#include <memory>

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
        const auto after = [](const auto& done, const auto& is_right) -> Result<bool> {
            if (!done) return done.error();
            return is_right(done);
        };
        return make<Result<bool>>(group, group, deadline, after);
    }
    /// Starts the call.
    Future<bool> start(group::Group& group, Instant deadline = never) const {
        const auto after = [](auto future, const auto& is_right) -> Future<bool> {
            return future.then([is_right](auto done) -> Result<bool> {
                if (!done) return done.error();
                return is_right(done);
            });
        };
        return make<Future<bool>>(group, group.start(), deadline, after);
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

    /// What a call needs while it is under way.
    struct Buffers {
        std::vector<Affine> mine, result, all, given, expected;
        Parts own, sent, for_me;
    };

    /// Makes the call by `face`. `after` gets what that answers, and a function that tells whether it is right.
    template <class Answer, class Face, class After>
    Answer make(const group::Group& group, Face&& face, Instant deadline, const After& after) const {
        const Node size = group.size(), rank = group.rank();
        const auto with = std::make_shared<Buffers>();
        with->mine = part(rank, rank, count);
        with->result.assign(count, Affine{1, 0});
        with->all.resize(count * size);
        auto& [mine, result, all, given, expected, own, sent, for_me] = *with;
        const auto is_result = [with](const auto&) { return with->result == with->expected; };
        const auto is_all = [with](const auto&) { return with->all == with->expected; };
        switch (what) {
        case barrier: return after(face.barrier(deadline), [](const auto&) { return true; });
        case broadcast:
            if (rank == root) result = mine;
            expected = part(root, root, count);
            return after(face.broadcast(root, result, deadline), is_result);
        case reduce:
            expected = rank == root ? folded(0, size) : result;
            return after(face.reduce(root, mine, result, then, deadline, order), is_result);
        case allreduce:
            expected = folded(0, size);
            return after(face.allreduce(mine, result, then, deadline, order), is_result);
        case gather:
            expected = rank == root ? everybodys(size) : all;
            return after(face.gather(root, mine, all, deadline), is_all);
        case scatter:
            if (rank == root) given = everybodys(size);
            expected = mine;
            return after(face.scatter(root, given, result, deadline), is_result);
        case allgather:
            expected = everybodys(size);
            return after(face.allgather(mine, all, deadline), is_all);
        case alltoall:
            for (Node other = 0; other < size; ++other) {
                std::ranges::copy(part(rank, other, count), std::back_inserter(given));
                std::ranges::copy(part(other, rank, count), std::back_inserter(expected));
            }
            return after(face.alltoall(given, all, deadline), is_all);
        case scan:
            expected = folded(0, rank + 1);
            return after(face.scan(mine, result, then, deadline, order), is_result);
        case exclusive_scan:
            expected = rank == 0 ? result : folded(0, rank);
            return after(face.exclusive_scan(mine, result, then, deadline, order), is_result);
        default: return make_of_any_size<Answer>(group, face, deadline, after, with);
        }
    }

    template <class Answer, class Face, class After>
    Answer make_of_any_size(const group::Group& group, Face& face, Instant deadline, const After& after,
                            const std::shared_ptr<Buffers>& with) const {
        const Node size = group.size(), rank = group.rank();
        auto& [mine, result, all, given, expected, own, sent, for_me] = *with;
        for (Node other = 0; other < size; ++other) {
            own.push_back(piece(other, other));
            sent.push_back(piece(rank, other));
            for_me.push_back(piece(other, rank));
        }
        mine = own[rank];
        if (what == gatherv)
            return after(face.gatherv(root, mine, deadline),
                         [with, is_root = rank == root](const auto& got) {
                             return *got == (is_root ? with->own : Parts{});
                         });
        if (what == allgatherv)
            return after(face.allgatherv(mine, deadline), [with](const auto& got) { return *got == with->own; });
        if (what == scatterv) {
            sent = rank == root ? own : Parts{};
            return after(face.scatterv(root, sent, deadline), [with](const auto& got) { return *got == with->mine; });
        }
        return after(face.alltoallv(sent, deadline), [with](const auto& got) { return *got == with->for_me; });
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
