#include "kumi/group/collective/collectives.hpp"

#include "kumi/group/collective/collective_call.hpp"
#include "kumi/group/collective/rank_tree.hpp"
#include "kumi/group/started/calling.hpp"
#include "kumi/group/plan/circulant.hpp"

#include <algorithm>
#include <bit>
#include <optional>

namespace kumi::group {
namespace {

constexpr std::size_t broadcast_block_bytes = 32 << 10; // of larger ones
constexpr std::size_t reduce_block_bytes = 32 << 10;
constexpr std::size_t doubling_bytes_max = 16 << 10; // an allreduce up to this sends all of it at each step

/// Runs of values, as equal as can be.
struct Cut {
    std::size_t values;
    std::size_t bytes_each;
    std::size_t parts;

    std::size_t begin(std::size_t part) const noexcept {
        return (values / parts * part + std::min(part, values % parts)) * bytes_each;
    }
    template <class Span>
    Span of(Span all, std::size_t from, std::size_t to) const noexcept {
        return all.subspan(begin(from), begin(to) - begin(from));
    }
};

// ---- barrier, broadcast

Steps barrier_steps(CollectiveCall& call) {
    call.arrive();
    co_await call.wait();
}

struct BarrierCall {
    using Answer = void;
    CallShape shape() const noexcept { return {.collective = Collective::barrier}; }
    Steps steps(CollectiveCall& call) const { return barrier_steps(call); }
};

/// Goes round in blocks.
Steps broadcast_blocks(CollectiveCall& call, Node root, MutableBytes values) {
    const Membership& seat = call.seat();
    const std::size_t blocks = (values.size() + broadcast_block_bytes - 1) / broadcast_block_bytes;
    const auto block = [&](std::size_t index) {
        return values.subspan(index * broadcast_block_bytes,
                              std::min(broadcast_block_bytes, values.size() - index * broadcast_block_bytes));
    };
    const Node size = seat.size();
    const Circulant schedule(size, (seat.rank + size - root) % size);
    for (std::uint32_t round = 0; round < schedule.rounds(static_cast<std::uint32_t>(blocks)); ++round) {
        const auto step = schedule.step(round, static_cast<std::uint32_t>(blocks));
        if (step.receive) call.receive((step.from + root) % size, round + 1, block(*step.receive));
        if (step.send) call.send((step.to + root) % size, round + 1, block(*step.send));
        if (step.receive) co_await call.wait_received();
    }
}

/// Down the tree goes all of it, or of a large one nothing but its size. A member that came with another size takes
/// part all the same.
Steps broadcast_steps(CollectiveCall& call, Node root, MutableBytes values) {
    const Membership& seat = call.seat();
    const std::size_t own_bytes = values.size();
    std::vector<std::byte> instead;
    std::vector<std::byte> content;
    const RankTree tree(seat, root);
    std::size_t level = tree.top();
    for (auto link = tree.next_down(level); link; link = tree.next_down(level)) {
        if (!link->is_up) {
            call.send(link->other, 0, values.size() <= broadcast_block_bytes ? Bytes(values) : Bytes{});
            continue;
        }
        if (own_bytes <= broadcast_block_bytes) {
            call.receive_fitting(link->other, 0, values, content);
        } else {
            call.receive_any(link->other, 0, content);
        }
        const bool is_here = co_await call.wait_received();
        if (!is_here || call.heard_bytes() == own_bytes) continue;
        instead = std::move(content);
        instead.resize(call.heard_bytes());
        values = instead;
        call.set_bytes(values.size());
    }
    if (values.size() > broadcast_block_bytes) co_await broadcast_blocks(call, root, values);
    const bool is_good = co_await call.wait();
    if (is_good && values.size() != own_bytes)
        call.give_up(ErrorCode::misuse,
                     fmt::format("{} came with {} bytes, this node with {}",
                                 seat.mailbox.dispatcher().name_of(seat.members[root]), values.size(), own_bytes));
}

struct BroadcastCall {
    using Answer = void;
    Node root;
    MutableBytes values;
    CallShape shape() const noexcept {
        return {.collective = Collective::broadcast, .root = root, .bytes = values.size(), .takes_any_size = true};
    }
    Steps steps(CollectiveCall& call) const { return broadcast_steps(call, root, values); }
};

// ---- reduce, allreduce

/// Reduces up the tree, block by block: a member that has sent one block goes on with the next. `values` has room at
/// members that receive something.
Steps reduce_by_tree(CollectiveCall& call, Node root, Bytes mine, MutableBytes values, const Reduction& reduction) {
    const Membership& seat = call.seat();
    const std::size_t block_bytes =
        std::max<std::size_t>(reduce_block_bytes / reduction.bytes_each, 1) * reduction.bytes_each;
    const RankTree tree(seat, root);
    std::size_t step = 0;
    do {
        const auto block = [&](auto all) {
            return all.subspan(step * block_bytes, std::min(block_bytes, mine.size() - step * block_bytes));
        };
        Bytes current = block(mine); // at first what it came with
        std::size_t level = 0;
        for (auto link = tree.next_up(level); link; link = tree.next_up(level)) {
            if (link->is_up) {
                call.send(link->other, step, current);
                continue;
            }
            call.receive_into(link->other, step, block(values), current, reduction.combine, link->other < seat.rank);
            co_await call.wait_received();
            current = block(values);
        }
    } while (++step * block_bytes < mine.size());
    co_await call.wait();
}

/// Members by twos until there is a power of two of them: the first of two gives all to the second, and gets the result
/// from it.
struct Folded {
    Node power;               // of two
    Node rest;                // pairs of members
    std::optional<Node> rank; // among those that go on

    Folded(Node size, Node own) noexcept : power(std::bit_floor(size)), rest(size - power) {
        if (own >= 2 * rest) rank = own - rest;
        else if (own % 2 == 1) rank = own / 2;
    }
    Node original(Node folded) const noexcept { return folded < rest ? 2 * folded + 1 : folded + rest; }
};

/// What comes from the other is combined when all of `values` has gone there: until then it must not change.
Steps combine_later(CollectiveCall& call, Node other, std::size_t step, MutableBytes values,
                    const Reduction& reduction) {
    std::vector<std::byte> came(values.size());
    call.receive(other, step, came);
    const bool is_good = co_await call.wait();
    if (is_good) call.combine_here(values, came, reduction.combine, other < call.seat().rank);
}

/// At each step the two of a pair divide what they have: each combines one half, and in the end all are put together
/// again, in the opposite order.
Steps allreduce_by_halves(CollectiveCall& call, const Folded& folded, Bytes mine, MutableBytes values,
                          const Reduction& reduction) {
    const Membership& seat = call.seat();
    const Cut cut{values.size() / reduction.bytes_each, reduction.bytes_each, folded.power};
    std::size_t begin = 0, end = folded.power, step = 1;
    for (Node distance = 1; distance < folded.power; distance *= 2, ++step) {
        const Node partner = *folded.rank ^ distance;
        const Node other = folded.original(partner);
        const std::size_t middle = begin + (end - begin) / 2;
        const bool keeps_first = *folded.rank < partner;
        // It is written again when the other one sends it back, and so has got all of it.
        call.send(other, step, keeps_first ? cut.of(mine, middle, end) : cut.of(mine, begin, middle));
        (keeps_first ? end : begin) = middle;
        call.receive_into(other, step, cut.of(values, begin, end), cut.of(mine, begin, end), reduction.combine,
                          other < seat.rank);
        co_await call.wait_received();
        mine = values;
    }
    for (Node distance = folded.power / 2; distance >= 1; distance /= 2, ++step) {
        const Node partner = *folded.rank ^ distance;
        const Node other = folded.original(partner);
        const std::size_t count = end - begin;
        const bool has_first = *folded.rank < partner;
        call.send(other, step, cut.of(values, begin, end));
        if (has_first) call.receive(other, step, cut.of(values, end, end + count)), end += count;
        else call.receive(other, step, cut.of(values, begin - count, begin)), begin -= count;
        co_await call.wait_received();
    }
}

Steps allreduce_by_tree(CollectiveCall& call, Bytes mine, MutableBytes values, const Reduction& reduction) {
    constexpr std::size_t last_step = 1000;
    const Membership& seat = call.seat();
    const Folded folded(seat.size(), seat.rank);
    const bool is_of_pair = seat.rank < 2 * folded.rest;
    if (!folded.rank) {
        call.send(seat.rank + 1, 0, mine);
        co_await call.wait();
        call.receive(seat.rank + 1, last_step, values);
        co_await call.wait();
        co_return;
    }
    if (seat.size() == 1) call.copy(values, mine);
    if (is_of_pair) {
        call.receive_into(seat.rank - 1, 0, values, mine, reduction.combine, true);
        co_await call.wait();
        mine = values;
    }
    if (values.size() > doubling_bytes_max) {
        co_await allreduce_by_halves(call, folded, mine, values, reduction);
    } else {
        std::size_t step = 1;
        for (Node distance = 1; distance < folded.power; distance *= 2, ++step, mine = values) {
            const Node other = folded.original(*folded.rank ^ distance);
            const bool has_gone = call.send(other, step, mine);
            if (has_gone || mine.data() != values.data()) {
                call.receive_into(other, step, values, mine, reduction.combine, other < seat.rank);
                co_await call.wait();
            } else {
                co_await combine_later(call, other, step, values, reduction);
            }
        }
    }
    if (is_of_pair) call.send(seat.rank - 1, last_step, values);
    co_await call.wait();
}

/// Each member gets one part of the values of all members and folds it from the first rank on; `own` becomes its part.
/// Members send what is in `mine`.
Steps fold_parts(CollectiveCall& call, Bytes mine, const Cut& cut, const Reduction& reduction,
                 std::vector<std::byte>& own) {
    const Membership& seat = call.seat();
    const Node size = seat.size();
    const std::size_t part_bytes = cut.begin(seat.rank + 1) - cut.begin(seat.rank);
    std::vector<std::byte> all(part_bytes * size);
    const auto place = [&](Node rank) { return MutableBytes(all).subspan(rank * part_bytes, part_bytes); };
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (seat.rank + distance) % size;
        const Node from = (seat.rank + size - distance) % size;
        call.receive(from, 0, place(from));
        call.send(to, 0, cut.of(mine, to, to + 1));
    }
    call.copy(place(seat.rank), cut.of(mine, seat.rank, seat.rank + 1));
    const bool is_good = co_await call.wait();
    if (!is_good) co_return;
    own.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(part_bytes));
    for (Node rank = 1; rank < size; ++rank) call.combine_here(own, place(rank), reduction.combine, false);
}

/// `values` has room at the root, or at all.
Steps reduce_by_rank(CollectiveCall& call, std::optional<Node> root, Bytes mine, MutableBytes values,
                     const Reduction& reduction) {
    const Membership& seat = call.seat();
    const Node size = seat.size();
    const Cut cut{mine.size() / reduction.bytes_each, reduction.bytes_each, size};
    std::vector<std::byte> own;
    co_await fold_parts(call, mine, cut, reduction, own);
    own.resize(cut.begin(seat.rank + 1) - cut.begin(seat.rank)); // also after a failure
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (seat.rank + distance) % size;
        const Node from = (seat.rank + size - distance) % size;
        if (!root || *root == seat.rank) call.receive(from, 1, cut.of(values, from, from + 1));
        if (!root || *root == to) call.send(to, 1, own);
    }
    const bool is_good = co_await call.wait();
    if (is_good && (!root || *root == seat.rank)) call.copy(cut.of(values, seat.rank, seat.rank + 1), own);
}

Steps only_copy(CollectiveCall& call, Bytes mine, MutableBytes values) {
    call.copy(values, mine);
    co_await call.wait();
}

struct ReduceCall {
    using Answer = void;
    Node root;
    Bytes mine;
    MutableBytes result;
    Reduction reduction;
    std::vector<std::byte> scratch = {};

    CallShape shape() const noexcept {
        return {.collective = Collective::reduce,
                .root = root,
                .bytes = mine.size(),
                .bytes_each = reduction.bytes_each};
    }
    Steps steps(CollectiveCall& call) {
        const Membership& seat = call.seat();
        const bool gets_something =
            seat.rank == root || (reduction.order == Order::tree && RankTree(seat, root).has_below());
        const MutableBytes values = seat.rank == root ? fitting(call, result, mine.size(), scratch, "the result")
                                                      : (scratch.resize(gets_something ? mine.size() : 0), scratch);
        if (seat.size() == 1) return only_copy(call, mine, values);
        if (reduction.order == Order::by_rank) return reduce_by_rank(call, root, mine, values, reduction);
        return reduce_by_tree(call, root, mine, values, reduction);
    }
};

struct AllreduceCall {
    using Answer = void;
    Bytes mine;
    MutableBytes result;
    Reduction reduction;
    std::vector<std::byte> instead = {};

    CallShape shape() const noexcept {
        return {.collective = Collective::allreduce, .bytes = mine.size(), .bytes_each = reduction.bytes_each};
    }
    Steps steps(CollectiveCall& call) {
        const MutableBytes values = fitting(call, result, mine.size(), instead, "the result");
        if (reduction.order == Order::by_rank) return reduce_by_rank(call, {}, mine, values, reduction);
        return allreduce_by_tree(call, mine, values, reduction);
    }
};

} // namespace

Result<void> barrier(Membership& seat, Instant deadline) { return call_and_wait(seat, BarrierCall{}, deadline); }
Future<void> start_barrier(Membership& seat, Instant deadline) { return start(seat, BarrierCall{}, deadline); }

Result<void> broadcast(Membership& seat, Node root, MutableBytes values, Instant deadline) {
    return call_and_wait(seat, BroadcastCall{root, values}, deadline);
}
Future<void> start_broadcast(Membership& seat, Node root, MutableBytes values, Instant deadline) {
    return start(seat, BroadcastCall{root, values}, deadline);
}

Result<void> reduce(Membership& seat, Node root, Bytes mine, MutableBytes result, const Reduction& reduction,
                    Instant deadline) {
    return call_and_wait(seat, ReduceCall{root, mine, result, reduction}, deadline);
}
Future<void> start_reduce(Membership& seat, Node root, Bytes mine, MutableBytes result, const Reduction& reduction,
                          Instant deadline) {
    return start(seat, ReduceCall{root, mine, result, reduction}, deadline);
}

Result<void> allreduce(Membership& seat, Bytes mine, MutableBytes result, const Reduction& reduction,
                       Instant deadline) {
    return call_and_wait(seat, AllreduceCall{mine, result, reduction}, deadline);
}
Future<void> start_allreduce(Membership& seat, Bytes mine, MutableBytes result, const Reduction& reduction,
                             Instant deadline) {
    return start(seat, AllreduceCall{mine, result, reduction}, deadline);
}

} // namespace kumi::group
