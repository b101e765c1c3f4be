// Collectives that move data without looking at it, and scans.

#include "kumi/group/collectives.hpp"

#include "kumi/group/rank_tree.hpp"
#include "kumi/group/collective_call.hpp"

#include <algorithm>

namespace kumi::group {
namespace {

/// Up to so many members, each talks to the root itself.
constexpr Node direct_max = 8;
/// Members that one member exchanges with at a time.
constexpr Node exchanges_max = 8;

} // namespace

// ---- gather, scatter

Result<void> gather(Membership& seat, Node root, Bytes mine, MutableBytes all, Instant deadline) {
    if (auto good = check_root(seat, What::gather, root); !good) return good;
    CollectiveCall talk(seat, {.what = What::gather, .root = root, .bytes = mine.size()}, deadline);
    const std::size_t each = mine.size();
    std::vector<std::byte> run; // of ranks from this one on, that it has from others
    std::vector<std::byte> instead;
    if (seat.rank == root) {
        all = fitting(talk, all, each * seat.size(), instead, "the root's array");
        copy(all.subspan(seat.rank * each, each), mine);
    }
    if (seat.size() <= direct_max) {
        if (seat.rank != root) talk.send(root, 0, mine);
        for (Node rank = 0; rank < seat.size() && seat.rank == root; ++rank)
            if (rank != root) talk.receive(rank, 0, all.subspan(rank * each, each));
        return talk.end();
    }
    RankTree(seat, root).each_up([&](const RankTree::Link& link) {
        const std::size_t bytes = (link.end - link.begin) * each;
        if (link.is_up) return (void)talk.send(link.other, link.level, run.empty() ? mine : Bytes(run));
        if (seat.rank == root) {
            talk.receive(link.other, link.level, all.subspan(link.begin * each, bytes));
            return;
        }
        if (run.empty()) run.assign(mine.begin(), mine.end());
        const std::size_t before = run.size();
        run.resize(before + bytes);
        talk.receive(link.other, link.level, MutableBytes(run).subspan(before));
        talk.wait_received(); // it moves when it grows
    });
    return talk.end();
}

Result<void> scatter(Membership& seat, Node root, Bytes all, MutableBytes mine, Instant deadline) {
    if (auto good = check_root(seat, What::scatter, root); !good) return good;
    CollectiveCall talk(seat, {.what = What::scatter, .root = root, .bytes = mine.size()}, deadline);
    const std::size_t each = mine.size();
    std::vector<std::byte> run; // of ranks from this one on
    if (seat.rank == root) {
        if (all.size() != each * seat.size()) {
            talk.refuse(
                fmt::format("the root's array has {} bytes, and {} are needed", all.size(), each * seat.size()));
            run.resize(each * seat.size());
            all = run;
        }
        copy(mine, all.subspan(seat.rank * each, each));
    }
    if (seat.size() <= direct_max) {
        if (seat.rank != root) talk.receive(root, 0, mine);
        for (Node rank = 0; rank < seat.size() && seat.rank == root; ++rank)
            if (rank != root) talk.send(rank, 0, all.subspan(rank * each, each));
        return talk.end();
    }
    RankTree(seat, root).each_down([&](const RankTree::Link& link) {
        const std::size_t bytes = (link.end - link.begin) * each;
        if (!link.is_up) {
            const std::size_t begin = seat.rank == root ? link.begin * each : (link.begin - seat.rank) * each;
            talk.send(link.other, link.level, (seat.rank == root ? all : Bytes(run)).subspan(begin, bytes));
            return;
        }
        if (link.end - link.begin == 1) {
            talk.receive(link.other, link.level, mine);
            return;
        }
        run.resize(bytes);
        talk.receive(link.other, link.level, run);
        if (talk.wait_received()) copy(mine, Bytes(run).first(each));
    });
    return talk.end();
}

Result<Parts> gatherv(Membership& seat, Node root, Bytes mine, Instant deadline) {
    if (auto good = check_root(seat, What::gatherv, root); !good) return good.error();
    CollectiveCall talk(seat, {.what = What::gatherv, .root = root, .takes_any_size = true}, deadline);
    Parts parts(seat.rank == root ? seat.size() : 0);
    if (seat.rank != root) talk.send(root, 0, mine);
    for (Node rank = 0; rank < parts.size(); ++rank) {
        if (rank == root) parts[rank].assign(mine.begin(), mine.end());
        else talk.receive_any(rank, 0, parts[rank]);
    }
    if (auto ended = talk.end(); !ended) return ended.error();
    return parts;
}

Result<std::vector<std::byte>> scatterv(Membership& seat, Node root, std::span<const Bytes> parts, Instant deadline) {
    if (auto good = check_root(seat, What::scatterv, root); !good) return good.error();
    CollectiveCall talk(seat, {.what = What::scatterv, .root = root, .takes_any_size = true}, deadline);
    std::vector<std::byte> mine;
    if (seat.rank != root) {
        talk.receive_any(root, 0, mine);
    } else {
        const bool is_good = parts.size() == seat.size();
        if (!is_good) talk.refuse(fmt::format("the root has {} parts, for {} members", parts.size(), seat.size()));
        for (Node rank = 0; rank < seat.size(); ++rank)
            if (rank != root) talk.send(rank, 0, is_good ? parts[rank] : Bytes{});
        if (is_good) mine.assign(parts[root].begin(), parts[root].end());
    }
    if (auto ended = talk.end(); !ended) return ended.error();
    return mine;
}

// ---- all to all

/// In step k each member has the parts of 2^k ranks from its own on, and gets those of the next 2^k (after Bruck). Past
/// the last rank it goes on with the first.
Result<void> allgather(Membership& seat, Bytes mine, MutableBytes all, Instant deadline) {
    CollectiveCall talk(seat, {.what = What::allgather, .bytes = mine.size()}, deadline);
    const std::uint64_t size = seat.size();
    const std::size_t each = mine.size();
    std::vector<std::byte> instead;
    all = fitting(talk, all, each * size, instead, "the array for all");
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
            if (!is_wrapped || from + count > size) talk.receive(from, step, run(from, is_wrapped));
            if (!is_wrapped || seat.rank + count > size) talk.send(to, step, run(seat.rank, is_wrapped));
        }
        talk.wait_received();
    }
    return talk.end();
}

/// Round the ring: each passes on what it got last.
Result<Parts> allgatherv(Membership& seat, Bytes mine, Instant deadline) {
    CollectiveCall talk(seat, {.what = What::allgatherv, .takes_any_size = true}, deadline);
    const Node size = seat.size();
    Parts parts(size);
    parts[seat.rank].assign(mine.begin(), mine.end());
    for (Node step = 1; step < size; ++step) {
        talk.send((seat.rank + 1) % size, step, parts[(seat.rank + size - step + 1) % size]);
        talk.receive_any((seat.rank + size - 1) % size, step, parts[(seat.rank + size - step) % size]);
        talk.wait_received();
    }
    if (auto ended = talk.end(); !ended) return ended.error();
    return parts;
}

Result<void> alltoall(Membership& seat, Bytes send, MutableBytes receive, Instant deadline) {
    const Node size = seat.size();
    const std::size_t each = send.size() / size;
    CollectiveCall talk(seat, {.what = What::alltoall, .bytes = each}, deadline);
    std::vector<std::byte> instead, nothing;
    if (send.size() % size != 0) {
        talk.refuse(fmt::format("{} bytes are no equal parts for {} members", send.size(), size));
        send = send.first(each * size);
    }
    receive = fitting(talk, receive, each * size, instead, "the array to receive");
    copy(receive.subspan(seat.rank * each, each), send.subspan(seat.rank * each, each));
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (seat.rank + distance) % size;
        const Node from = (seat.rank + size - distance) % size;
        talk.receive(from, 0, receive.subspan(from * each, each));
        talk.send(to, 0, send.subspan(to * each, each));
        if (distance % exchanges_max == 0) talk.wait();
    }
    return talk.end();
}

Result<Parts> alltoallv(Membership& seat, std::span<const Bytes> parts, Instant deadline) {
    const Node size = seat.size();
    CollectiveCall talk(seat, {.what = What::alltoallv, .takes_any_size = true}, deadline);
    const bool is_good = parts.size() == size;
    if (!is_good) talk.refuse(fmt::format("there are {} parts, for {} members", parts.size(), size));
    Parts received(size);
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (seat.rank + distance) % size;
        const Node from = (seat.rank + size - distance) % size;
        talk.receive_any(from, 0, received[from]);
        talk.send(to, 0, is_good ? parts[to] : Bytes{});
        if (distance % exchanges_max == 0) talk.wait();
    }
    if (is_good) received[seat.rank].assign(parts[seat.rank].begin(), parts[seat.rank].end());
    if (auto ended = talk.end(); !ended) return ended.error();
    return received;
}

// ---- scan

namespace {

/// In step k each has the combination of 2^k ranks up to its own, and gives it to the one 2^k after it.
void scan_by_tree(CollectiveCall& talk, const Membership& seat, MutableBytes sum, MutableBytes before,
                  const Reduction& reduction) {
    std::vector<std::byte> came(sum.size()), sent;
    bool has_before = false;
    std::size_t step = 0;
    for (std::uint64_t distance = 1; distance < seat.size(); distance *= 2, ++step) {
        const bool gives = seat.rank + distance < seat.size();
        const bool gets = seat.rank >= distance;
        if (gives) {
            talk.wait(); // what was given before has gone
            sent.assign(sum.begin(), sum.end());
            talk.send(static_cast<Node>(seat.rank + distance), step, sent);
        }
        if (!gets) continue;
        talk.receive(static_cast<Node>(seat.rank - distance), step, came);
        if (!talk.wait_received()) continue;
        talk.combine_here(sum, came, reduction.combine, true);
        if (before.empty()) continue;
        if (has_before) talk.combine_here(before, came, reduction.combine, true);
        else copy(before, came);
        has_before = true;
    }
    talk.wait();
}

/// Each combines its own with what all before it have.
void scan_by_rank(CollectiveCall& talk, const Membership& seat, MutableBytes sum, MutableBytes before,
                  const Reduction& reduction) {
    if (seat.rank != 0) {
        std::vector<std::byte> came(sum.size());
        talk.receive(seat.rank - 1, 0, came);
        if (talk.wait_received()) {
            talk.combine_here(sum, came, reduction.combine, true);
            if (!before.empty()) copy(before, came);
        }
    }
    if (seat.rank + 1 < seat.size()) talk.send(seat.rank + 1, 0, sum);
    talk.wait();
}

} // namespace

Result<void> scan(Membership& seat, Bytes mine, MutableBytes result, bool is_inclusive, const Reduction& reduction,
                  Instant deadline) {
    CollectiveCall talk(seat,
                        {.what = is_inclusive ? What::scan : What::exclusive_scan,
                         .bytes = mine.size(),
                         .bytes_each = reduction.bytes_each},
                        deadline);
    std::vector<std::byte> instead, scratch;
    result = fitting(talk, result, mine.size(), instead, "the result");
    MutableBytes sum = result, before;
    if (!is_inclusive) {
        scratch.resize(mine.size());
        sum = scratch;
        before = result;
    }
    copy(sum, mine);
    if (reduction.order == Order::by_rank) scan_by_rank(talk, seat, sum, before, reduction);
    else scan_by_tree(talk, seat, sum, before, reduction);
    return talk.end();
}

} // namespace kumi::group
