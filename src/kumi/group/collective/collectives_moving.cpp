// Collectives that move data without looking at it, and scans.

#include "kumi/group/collective/collectives.hpp"

#include "kumi/group/collective/collective_call.hpp"
#include "kumi/group/collective/rank_tree.hpp"

#include <algorithm>

namespace kumi::group {
namespace {

/// Up to so many members, each sends to the root directly.
constexpr Node direct_max = 8;
/// Members that one member exchanges with at a time.
constexpr Node exchanges_max = 8;

} // namespace

// ---- gather, scatter

Result<void> gather(Membership& seat, Node root, Bytes mine, MutableBytes all, Instant deadline) {
    if (auto good = check_root(seat, Collective::gather, root); !good) return good;
    CollectiveCall call(seat, {.collective = Collective::gather, .root = root, .bytes = mine.size()}, deadline);
    const std::size_t each = mine.size();
    std::vector<std::byte> run; // of ranks from this one on, that it has from others
    std::vector<std::byte> instead;
    if (seat.rank == root) {
        all = fitting(call, all, each * seat.size(), instead, "the root's array");
        copy(all.subspan(seat.rank * each, each), mine);
    }
    if (seat.size() <= direct_max) {
        if (seat.rank != root) call.send(root, 0, mine);
        for (Node rank = 0; rank < seat.size() && seat.rank == root; ++rank)
            if (rank != root) call.receive(rank, 0, all.subspan(rank * each, each));
        return call.end();
    }
    RankTree(seat, root).each_up([&](const RankTree::Link& link) {
        const std::size_t bytes = (link.end - link.begin) * each;
        if (link.is_up) return (void)call.send(link.other, link.level, run.empty() ? mine : Bytes(run));
        if (seat.rank == root) {
            call.receive(link.other, link.level, all.subspan(link.begin * each, bytes));
            return;
        }
        if (run.empty()) run.assign(mine.begin(), mine.end());
        const std::size_t before = run.size();
        run.resize(before + bytes);
        call.receive(link.other, link.level, MutableBytes(run).subspan(before));
        call.wait_received(); // it moves when it grows
    });
    return call.end();
}

Result<void> scatter(Membership& seat, Node root, Bytes all, MutableBytes mine, Instant deadline) {
    if (auto good = check_root(seat, Collective::scatter, root); !good) return good;
    CollectiveCall call(seat, {.collective = Collective::scatter, .root = root, .bytes = mine.size()}, deadline);
    const std::size_t each = mine.size();
    std::vector<std::byte> run; // of ranks from this one on
    if (seat.rank == root) {
        if (all.size() != each * seat.size()) {
            call.refuse(
                fmt::format("the root's array has {} bytes, and {} are needed", all.size(), each * seat.size()));
            run.resize(each * seat.size());
            all = run;
        }
        copy(mine, all.subspan(seat.rank * each, each));
    }
    if (seat.size() <= direct_max) {
        if (seat.rank != root) call.receive(root, 0, mine);
        for (Node rank = 0; rank < seat.size() && seat.rank == root; ++rank)
            if (rank != root) call.send(rank, 0, all.subspan(rank * each, each));
        return call.end();
    }
    RankTree(seat, root).each_down([&](const RankTree::Link& link) {
        const std::size_t bytes = (link.end - link.begin) * each;
        if (!link.is_up) {
            const std::size_t begin = seat.rank == root ? link.begin * each : (link.begin - seat.rank) * each;
            call.send(link.other, link.level, (seat.rank == root ? all : Bytes(run)).subspan(begin, bytes));
            return;
        }
        if (link.end - link.begin == 1) {
            call.receive(link.other, link.level, mine);
            return;
        }
        run.resize(bytes);
        call.receive(link.other, link.level, run);
        if (call.wait_received()) copy(mine, Bytes(run).first(each));
    });
    return call.end();
}

Result<Parts> gatherv(Membership& seat, Node root, Bytes mine, Instant deadline) {
    if (auto good = check_root(seat, Collective::gatherv, root); !good) return good.error();
    CollectiveCall call(seat, {.collective = Collective::gatherv, .root = root, .takes_any_size = true}, deadline);
    Parts parts(seat.rank == root ? seat.size() : 0);
    if (seat.rank != root) call.send(root, 0, mine);
    for (Node rank = 0; rank < parts.size(); ++rank) {
        if (rank == root) parts[rank].assign(mine.begin(), mine.end());
        else call.receive_any(rank, 0, parts[rank]);
    }
    if (auto ended = call.end(); !ended) return ended.error();
    return parts;
}

Result<std::vector<std::byte>> scatterv(Membership& seat, Node root, std::span<const Bytes> parts, Instant deadline) {
    if (auto good = check_root(seat, Collective::scatterv, root); !good) return good.error();
    CollectiveCall call(seat, {.collective = Collective::scatterv, .root = root, .takes_any_size = true}, deadline);
    std::vector<std::byte> mine;
    if (seat.rank != root) {
        call.receive_any(root, 0, mine);
    } else {
        const bool is_good = parts.size() == seat.size();
        if (!is_good) call.refuse(fmt::format("the root has {} parts, for {} members", parts.size(), seat.size()));
        for (Node rank = 0; rank < seat.size(); ++rank)
            if (rank != root) call.send(rank, 0, is_good ? parts[rank] : Bytes{});
        if (is_good) mine.assign(parts[root].begin(), parts[root].end());
    }
    if (auto ended = call.end(); !ended) return ended.error();
    return mine;
}

// ---- all to all

/// In step k each member has the parts of 2^k ranks from its own on, and gets those of the next 2^k (after Bruck). Past
/// the last rank it goes on with the first.
Result<void> allgather(Membership& seat, Bytes mine, MutableBytes all, Instant deadline) {
    CollectiveCall call(seat, {.collective = Collective::allgather, .bytes = mine.size()}, deadline);
    const std::uint64_t size = seat.size();
    const std::size_t each = mine.size();
    std::vector<std::byte> instead;
    all = fitting(call, all, each * size, instead, "the array for all");
    copy(all.subspan(seat.rank * each, each), mine);
    for (std::uint64_t have = 1, step = 0; have < size; have *= 2, ++step) {
        const std::uint64_t count = std::min(have, size - have);
        const auto run = [&](std::uint64_t begin, bool is_wrapped) {
            const std::uint64_t before_end = std::min(count, size - begin);
            return is_wrapped ? all.first((count - before_end) * each) : all.subspan(begin * each, before_end * each);
        };
        const auto to = static_cast<Node>((seat.rank + size - have) % size);
        const auto from = static_cast<Node>((seat.rank + have) % size);
        for (const bool is_wrapped : {false, true}) {
            if (!is_wrapped || from + count > size) call.receive(from, step, run(from, is_wrapped));
            if (!is_wrapped || seat.rank + count > size) call.send(to, step, run(seat.rank, is_wrapped));
        }
        call.wait_received();
    }
    return call.end();
}

/// Round the ring: each passes on what it got last.
Result<Parts> allgatherv(Membership& seat, Bytes mine, Instant deadline) {
    CollectiveCall call(seat, {.collective = Collective::allgatherv, .takes_any_size = true}, deadline);
    const Node size = seat.size();
    Parts parts(size);
    parts[seat.rank].assign(mine.begin(), mine.end());
    for (Node step = 1; step < size; ++step) {
        call.send((seat.rank + 1) % size, step, parts[(seat.rank + size - step + 1) % size]);
        call.receive_any((seat.rank + size - 1) % size, step, parts[(seat.rank + size - step) % size]);
        call.wait_received();
    }
    if (auto ended = call.end(); !ended) return ended.error();
    return parts;
}

Result<void> alltoall(Membership& seat, Bytes send, MutableBytes receive, Instant deadline) {
    const Node size = seat.size();
    const std::size_t each = send.size() / size;
    CollectiveCall call(seat, {.collective = Collective::alltoall, .bytes = each}, deadline);
    std::vector<std::byte> instead, nothing;
    if (send.size() % size != 0) {
        call.refuse(fmt::format("{} bytes are no equal parts for {} members", send.size(), size));
        send = send.first(each * size);
    }
    receive = fitting(call, receive, each * size, instead, "the array to receive");
    copy(receive.subspan(seat.rank * each, each), send.subspan(seat.rank * each, each));
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (seat.rank + distance) % size;
        const Node from = (seat.rank + size - distance) % size;
        call.receive(from, 0, receive.subspan(from * each, each));
        call.send(to, 0, send.subspan(to * each, each));
        if (distance % exchanges_max == 0) call.wait();
    }
    return call.end();
}

Result<Parts> alltoallv(Membership& seat, std::span<const Bytes> parts, Instant deadline) {
    const Node size = seat.size();
    CollectiveCall call(seat, {.collective = Collective::alltoallv, .takes_any_size = true}, deadline);
    const bool is_good = parts.size() == size;
    if (!is_good) call.refuse(fmt::format("there are {} parts, for {} members", parts.size(), size));
    Parts received(size);
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (seat.rank + distance) % size;
        const Node from = (seat.rank + size - distance) % size;
        call.receive_any(from, 0, received[from]);
        call.send(to, 0, is_good ? parts[to] : Bytes{});
        if (distance % exchanges_max == 0) call.wait();
    }
    if (is_good) received[seat.rank].assign(parts[seat.rank].begin(), parts[seat.rank].end());
    if (auto ended = call.end(); !ended) return ended.error();
    return received;
}

// ---- scan

namespace {

/// In step k each has the combination of 2^k ranks up to its own, and gives it to the one 2^k after it.
void scan_by_tree(CollectiveCall& call, const Membership& seat, MutableBytes total, MutableBytes before,
                  const Reduction& reduction) {
    std::vector<std::byte> came(total.size()), sent;
    bool has_before = false;
    std::size_t step = 0;
    for (std::uint64_t distance = 1; distance < seat.size(); distance *= 2, ++step) {
        const bool gives = seat.rank + distance < seat.size();
        const bool gets = seat.rank >= distance;
        if (gives) {
            call.wait(); // what was given before has gone
            sent.assign(total.begin(), total.end());
            call.send(static_cast<Node>(seat.rank + distance), step, sent);
        }
        if (!gets) continue;
        call.receive(static_cast<Node>(seat.rank - distance), step, came);
        if (!call.wait_received()) continue;
        call.combine_here(total, came, reduction.combine, true);
        if (before.empty()) continue;
        if (has_before) call.combine_here(before, came, reduction.combine, true);
        else copy(before, came);
        has_before = true;
    }
    call.wait();
}

/// Each combines its own with what all before it have.
void scan_by_rank(CollectiveCall& call, const Membership& seat, MutableBytes total, MutableBytes before,
                  const Reduction& reduction) {
    if (seat.rank != 0) {
        std::vector<std::byte> came(total.size());
        call.receive(seat.rank - 1, 0, came);
        if (call.wait_received()) {
            call.combine_here(total, came, reduction.combine, true);
            if (!before.empty()) copy(before, came);
        }
    }
    if (seat.rank + 1 < seat.size()) call.send(seat.rank + 1, 0, total);
    call.wait();
}

} // namespace

Result<void> scan(Membership& seat, Bytes mine, MutableBytes result, bool is_inclusive, const Reduction& reduction,
                  Instant deadline) {
    CollectiveCall call(seat,
                        {.collective = is_inclusive ? Collective::scan : Collective::exclusive_scan,
                         .bytes = mine.size(),
                         .bytes_each = reduction.bytes_each},
                        deadline);
    std::vector<std::byte> instead, scratch;
    result = fitting(call, result, mine.size(), instead, "the result");
    MutableBytes total = result, before;
    if (!is_inclusive) {
        scratch.resize(mine.size());
        total = scratch;
        before = result;
    }
    copy(total, mine);
    if (reduction.order == Order::by_rank) scan_by_rank(call, seat, total, before, reduction);
    else scan_by_tree(call, seat, total, before, reduction);
    return call.end();
}

} // namespace kumi::group
