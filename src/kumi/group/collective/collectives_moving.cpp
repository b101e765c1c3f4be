// Collectives that move data without looking at it, and scans.

#include "kumi/group/collective/collectives.hpp"

#include "kumi/group/collective/collective_call.hpp"
#include "kumi/group/collective/moving.hpp"
#include "kumi/group/collective/rank_tree.hpp"
#include "kumi/group/started/calling.hpp"

#include <algorithm>
#include <functional>

namespace kumi::group {
namespace {

/// Up to so many members, each sends to the root directly.
constexpr Node direct_max = 8;
/// Members that one member exchanges with at a time.
constexpr Node exchanges_max = 8;

// ---- gather, scatter

Steps gather_directly(CollectiveCall& call, Node root, Bytes mine, MutableBytes all) {
    const Membership& seat = call.seat();
    const std::size_t each = mine.size();
    if (seat.rank != root) call.send(root, 0, mine);
    for (Node rank = 0; rank < seat.size() && seat.rank == root; ++rank)
        if (rank != root) call.receive(rank, 0, all.subspan(rank * each, each));
    co_await call.wait();
}

Steps gather_by_tree(CollectiveCall& call, Node root, Bytes mine, MutableBytes all) {
    const Membership& seat = call.seat();
    const std::size_t each = mine.size();
    std::vector<std::byte> run; // of ranks from this one on, that it has from others
    const RankTree tree(seat, root);
    std::size_t level = 0;
    for (auto link = tree.next_up(level); link; link = tree.next_up(level)) {
        const std::size_t bytes = (link->end - link->begin) * each;
        if (link->is_up) {
            call.send(link->other, link->level, run.empty() ? mine : Bytes(run));
            continue;
        }
        if (seat.rank == root) {
            call.receive(link->other, link->level, all.subspan(link->begin * each, bytes));
            continue;
        }
        if (run.empty()) call.copy(run, mine);
        const std::size_t before = run.size();
        run.resize(before + bytes);
        call.receive(link->other, link->level, MutableBytes(run).subspan(before));
        co_await call.wait_received(); // it moves when it grows
    }
    co_await call.wait();
}

struct GatherCall {
    using Answer = void;
    Node root;
    Bytes mine;
    MutableBytes all;
    std::vector<std::byte> instead = {};

    CallShape shape() const noexcept {
        return {.collective = Collective::gather, .root = root, .bytes = mine.size()};
    }
    Steps steps(CollectiveCall& call) {
        const Membership& seat = call.seat();
        const std::size_t each = mine.size();
        if (seat.rank == root) {
            all = fitting(call, all, each * seat.size(), instead, "the root's array");
            call.copy(all.subspan(seat.rank * each, each), mine);
        }
        return seat.size() <= direct_max ? gather_directly(call, root, mine, all)
                                         : gather_by_tree(call, root, mine, all);
    }
};

Steps scatter_directly(CollectiveCall& call, Node root, Bytes all, MutableBytes mine) {
    const Membership& seat = call.seat();
    const std::size_t each = mine.size();
    if (seat.rank != root) call.receive(root, 0, mine);
    for (Node rank = 0; rank < seat.size() && seat.rank == root; ++rank)
        if (rank != root) call.send(rank, 0, all.subspan(rank * each, each));
    co_await call.wait();
}

Steps scatter_by_tree(CollectiveCall& call, Node root, Bytes all, MutableBytes mine) {
    const Membership& seat = call.seat();
    const std::size_t each = mine.size();
    std::vector<std::byte> run; // of ranks from this one on
    const RankTree tree(seat, root);
    std::size_t level = tree.top();
    for (auto link = tree.next_down(level); link; link = tree.next_down(level)) {
        const std::size_t bytes = (link->end - link->begin) * each;
        if (!link->is_up) {
            const std::size_t begin = seat.rank == root ? link->begin * each : (link->begin - seat.rank) * each;
            call.send(link->other, link->level, (seat.rank == root ? all : Bytes(run)).subspan(begin, bytes));
            continue;
        }
        if (link->end - link->begin == 1) {
            call.receive(link->other, link->level, mine);
            continue;
        }
        run.resize(bytes);
        call.receive(link->other, link->level, run);
        const bool is_here = co_await call.wait_received();
        if (is_here) call.copy(mine, Bytes(run).first(each));
    }
    co_await call.wait();
}

struct ScatterCall {
    using Answer = void;
    Node root;
    Bytes all;
    MutableBytes mine;
    std::vector<std::byte> instead = {};

    CallShape shape() const noexcept {
        return {.collective = Collective::scatter, .root = root, .bytes = mine.size()};
    }
    Steps steps(CollectiveCall& call) {
        const Membership& seat = call.seat();
        const std::size_t each = mine.size();
        if (seat.rank == root) {
            all = fitting(call, all, each * seat.size(), instead, "the root's array");
            call.copy(mine, all.subspan(seat.rank * each, each));
        }
        return seat.size() <= direct_max ? scatter_directly(call, root, all, mine)
                                         : scatter_by_tree(call, root, all, mine);
    }
};

// ---- all to all

/// In step k each member has the parts of 2^k ranks from its own on, and gets those of the next 2^k (after Bruck). Past
/// the last rank it goes on with the first.
Steps allgather_steps(CollectiveCall& call, std::size_t each, MutableBytes all) {
    const Membership& seat = call.seat();
    const std::uint64_t size = seat.size();
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
        co_await call.wait_received();
    }
    co_await call.wait();
}

struct AllgatherCall {
    using Answer = void;
    Bytes mine;
    MutableBytes all;
    std::vector<std::byte> instead = {};

    CallShape shape() const noexcept { return {.collective = Collective::allgather, .bytes = mine.size()}; }
    Steps steps(CollectiveCall& call) {
        const Membership& seat = call.seat();
        const std::size_t each = mine.size();
        all = fitting(call, all, each * seat.size(), instead, "the array for all");
        call.copy(all.subspan(seat.rank * each, each), mine);
        return allgather_steps(call, each, all);
    }
};

Steps alltoall_steps(CollectiveCall& call, Bytes send, MutableBytes receive, std::size_t each) {
    const Membership& seat = call.seat();
    const Node size = seat.size();
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (seat.rank + distance) % size;
        const Node from = (seat.rank + size - distance) % size;
        call.receive(from, 0, receive.subspan(from * each, each));
        call.send(to, 0, send.subspan(to * each, each));
        if (distance % exchanges_max == 0) co_await call.wait();
    }
    co_await call.wait();
}

bool overlap(Bytes a, Bytes b) noexcept {
    const std::less<const std::byte*> is_before;
    return is_before(a.data(), b.data() + b.size()) && is_before(b.data(), a.data() + a.size());
}

struct AlltoallCall {
    using Answer = void;
    Bytes send;
    MutableBytes receive;
    std::size_t each; // for one member
    std::vector<std::byte> instead = {};
    std::vector<std::byte> sent = {}; // a copy of `send`, if the arrays overlap

    CallShape shape() const noexcept { return {.collective = Collective::alltoall, .bytes = each}; }
    Steps steps(CollectiveCall& call) {
        const Membership& seat = call.seat();
        const Node size = seat.size();
        if (send.size() % size != 0) {
            call.refuse(fmt::format("{} bytes are no equal parts for {} members", send.size(), size));
            send = send.first(each * size);
        }
        receive = fitting(call, receive, each * size, instead, "the array to receive");
        if (overlap(send, receive)) { // what comes would overwrite what is still to be sent
            sent.assign(send.begin(), send.end());
            send = sent;
        }
        call.copy(receive.subspan(seat.rank * each, each), send.subspan(seat.rank * each, each));
        return alltoall_steps(call, send, receive, each);
    }
};

// ---- each member has any number of bytes

struct GathervCall {
    using Answer = Parts;
    Node root;
    Bytes mine;
    Parts parts = {};

    CallShape shape() const noexcept {
        return {.collective = Collective::gatherv, .root = root, .takes_any_size = true};
    }
    Steps steps(CollectiveCall& call) { return gather_parts(call, root, mine, parts); }
    Parts take() { return std::move(parts); }
};

struct ScattervCall {
    using Answer = std::vector<std::byte>;
    Node root;
    std::vector<Bytes> parts;
    std::vector<std::byte> mine = {};

    CallShape shape() const noexcept {
        return {.collective = Collective::scatterv, .root = root, .takes_any_size = true};
    }
    Steps steps(CollectiveCall& call) { return scatter_parts(call, root, parts, mine); }
    std::vector<std::byte> take() { return std::move(mine); }
};

struct AllgathervCall {
    using Answer = Parts;
    Bytes mine;
    Parts parts = {};

    CallShape shape() const noexcept { return {.collective = Collective::allgatherv, .takes_any_size = true}; }
    Steps steps(CollectiveCall& call) { return allgather_parts(call, mine, parts); }
    Parts take() { return std::move(parts); }
};

struct AlltoallvCall {
    using Answer = Parts;
    std::vector<Bytes> parts;
    Parts received = {};

    CallShape shape() const noexcept { return {.collective = Collective::alltoallv, .takes_any_size = true}; }
    Steps steps(CollectiveCall& call) { return exchange_parts(call, parts, received); }
    Parts take() { return std::move(received); }
};

struct AlltoallvIntoCall {
    using Answer = void;
    std::vector<Bytes> parts;
    std::vector<MutableBytes> rooms;

    CallShape shape() const noexcept { return {.collective = Collective::alltoallv, .takes_any_size = true}; }
    Steps steps(CollectiveCall& call) { return exchange_parts(call, parts, rooms); }
};

Steps sendrecv_steps(CollectiveCall& call, Node to, Bytes mine, Node from, MutableBytes theirs) {
    const Membership& seat = call.seat();
    const auto is_other = [&](Node rank) { return rank != no_rank && rank != seat.rank; };
    if (to == seat.rank) call.copy(theirs, mine);
    if (is_other(from)) call.receive(from, 0, theirs);
    if (is_other(to)) call.send(to, 0, mine);
    co_await call.wait();
}

struct SendrecvCall {
    using Answer = void;
    Node to;
    Bytes mine;
    Node from;
    MutableBytes theirs;

    CallShape shape() const noexcept { return {.collective = Collective::sendrecv, .takes_any_size = true}; }
    Steps steps(CollectiveCall& call) { return sendrecv_steps(call, to, mine, from, theirs); }
};

/// The call is not made after an error.
Result<void> check_sendrecv(const Membership& seat, const SendrecvCall& call) {
    for (const Node rank : {call.to, call.from})
        if (rank != no_rank)
            if (auto known = check_rank(seat, Collective::sendrecv, rank); !known) return known;
    if ((call.to == seat.rank) != (call.from == seat.rank))
        return refusal(seat, Collective::sendrecv, ErrorCode::misuse,
                       "a member that sends to itself also receives from itself");
    if (call.to == seat.rank && call.mine.size() != call.theirs.size())
        return refusal(seat, Collective::sendrecv, ErrorCode::misuse,
                       fmt::format("{} bytes to itself, into {} bytes", call.mine.size(), call.theirs.size()));
    return {};
}

// ---- scan

/// In step k each has the combination of 2^k ranks up to its own, and gives it to the one 2^k after it.
Steps scan_by_tree(CollectiveCall& call, MutableBytes total, MutableBytes before, const Reduction& reduction) {
    const Membership& seat = call.seat();
    std::vector<std::byte> came(total.size()), sent;
    bool has_before = false;
    std::size_t step = 0;
    for (std::uint64_t distance = 1; distance < seat.size(); distance *= 2, ++step) {
        const bool gives = seat.rank + distance < seat.size();
        const bool gets = seat.rank >= distance;
        if (gives) {
            co_await call.wait(); // what was given before has gone
            call.copy(sent, total);
            call.send(static_cast<Node>(seat.rank + distance), step, sent);
        }
        if (!gets) continue;
        call.receive(static_cast<Node>(seat.rank - distance), step, came);
        const bool is_here = co_await call.wait_received();
        if (!is_here) continue;
        call.combine_here(total, came, reduction.combine, true);
        if (before.empty()) continue;
        if (has_before) call.combine_here(before, came, reduction.combine, true);
        else call.copy(before, came);
        has_before = true;
    }
    co_await call.wait();
}

/// Each combines its own with what all before it have.
Steps scan_by_rank(CollectiveCall& call, MutableBytes total, MutableBytes before, const Reduction& reduction) {
    const Membership& seat = call.seat();
    std::vector<std::byte> came;
    if (seat.rank != 0) {
        came.resize(total.size());
        call.receive(seat.rank - 1, 0, came);
        const bool is_here = co_await call.wait_received();
        if (is_here) {
            call.combine_here(total, came, reduction.combine, true);
            if (!before.empty()) call.copy(before, came);
        }
    }
    if (seat.rank + 1 < seat.size()) call.send(seat.rank + 1, 0, total);
    co_await call.wait();
}

struct ScanCall {
    using Answer = void;
    Bytes mine;
    MutableBytes result;
    bool is_inclusive;
    Reduction reduction;
    std::vector<std::byte> instead = {}, scratch = {};

    CallShape shape() const noexcept {
        return {.collective = is_inclusive ? Collective::scan : Collective::exclusive_scan,
                .bytes = mine.size(),
                .bytes_each = reduction.bytes_each};
    }
    Steps steps(CollectiveCall& call) {
        result = fitting(call, result, mine.size(), instead, "the result");
        MutableBytes total = result, before;
        if (!is_inclusive) {
            scratch.resize(mine.size());
            total = scratch;
            before = result;
        }
        call.copy(total, mine);
        return reduction.order == Order::by_rank ? scan_by_rank(call, total, before, reduction)
                                                 : scan_by_tree(call, total, before, reduction);
    }
};

} // namespace

Steps gather_parts(CollectiveCall& call, Node root, Bytes mine, Parts& parts) {
    const Membership& seat = call.seat();
    parts.resize(seat.rank == root ? seat.size() : 0);
    if (seat.rank != root) call.send(root, 0, mine);
    for (Node rank = 0; rank < parts.size(); ++rank) {
        if (rank == root) call.copy(parts[rank], mine);
        else call.receive_any(rank, 0, parts[rank]);
    }
    co_await call.wait();
}

Steps scatter_parts(CollectiveCall& call, Node root, const std::vector<Bytes>& parts, std::vector<std::byte>& mine) {
    const Membership& seat = call.seat();
    if (seat.rank != root) {
        call.receive_any(root, 0, mine);
    } else {
        const bool is_good = parts.size() == seat.size();
        if (!is_good) call.refuse(fmt::format("the root has {} parts, for {} members", parts.size(), seat.size()));
        for (Node rank = 0; rank < seat.size(); ++rank)
            if (rank != root) call.send(rank, 0, is_good ? parts[rank] : Bytes{});
        if (is_good) call.copy(mine, parts[root]);
    }
    co_await call.wait();
}

/// Round the ring: each passes on what it got last.
Steps allgather_parts(CollectiveCall& call, Bytes mine, Parts& parts) {
    const Membership& seat = call.seat();
    const Node size = seat.size();
    parts.resize(size);
    call.copy(parts[seat.rank], mine);
    for (Node step = 1; step < size; ++step) {
        call.send((seat.rank + 1) % size, step, parts[(seat.rank + size - step + 1) % size]);
        call.receive_any((seat.rank + size - 1) % size, step, parts[(seat.rank + size - step) % size]);
        co_await call.wait_received();
    }
    co_await call.wait();
}

Steps exchange_parts(CollectiveCall& call, const std::vector<Bytes>& parts, Parts& received) {
    const Membership& seat = call.seat();
    const Node size = seat.size();
    const bool is_good = parts.size() == size;
    if (!is_good) call.refuse(fmt::format("there are {} parts, for {} members", parts.size(), size));
    received.resize(size);
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (seat.rank + distance) % size;
        const Node from = (seat.rank + size - distance) % size;
        call.receive_any(from, 0, received[from]);
        call.send(to, 0, is_good ? parts[to] : Bytes{});
        if (distance % exchanges_max == 0) co_await call.wait();
    }
    if (is_good) call.copy(received[seat.rank], parts[seat.rank]);
    co_await call.wait();
}

Steps exchange_parts(CollectiveCall& call, const std::vector<Bytes>& parts, const std::vector<MutableBytes>& rooms) {
    const Membership& seat = call.seat();
    const Node size = seat.size(), self = seat.rank;
    const bool is_good = parts.size() == size && rooms.size() == size;
    if (!is_good)
        call.refuse(fmt::format("there are {} parts and {} arrays, for {} members", parts.size(), rooms.size(), size));
    else if (parts[self].size() != rooms[self].size())
        call.refuse(fmt::format("{} bytes to itself, into {} bytes", parts[self].size(), rooms[self].size()));
    else call.copy(rooms[self], parts[self]);
    for (Node distance = 1; distance < size; ++distance) {
        const Node to = (self + distance) % size;
        const Node from = (self + size - distance) % size;
        call.receive(from, 0, is_good ? rooms[from] : MutableBytes{});
        call.send(to, 0, is_good ? parts[to] : Bytes{});
        if (distance % exchanges_max == 0) co_await call.wait();
    }
    co_await call.wait();
}

// ---- both forms

Result<void> gather(Membership& seat, Node root, Bytes mine, MutableBytes all, Instant deadline) {
    return call_and_wait(seat, GatherCall{root, mine, all}, deadline);
}
Future<void> start_gather(Membership& seat, Node root, Bytes mine, MutableBytes all, Instant deadline) {
    return start(seat, GatherCall{root, mine, all}, deadline);
}

Result<void> scatter(Membership& seat, Node root, Bytes all, MutableBytes mine, Instant deadline) {
    return call_and_wait(seat, ScatterCall{root, all, mine}, deadline);
}
Future<void> start_scatter(Membership& seat, Node root, Bytes all, MutableBytes mine, Instant deadline) {
    return start(seat, ScatterCall{root, all, mine}, deadline);
}

Result<void> allgather(Membership& seat, Bytes mine, MutableBytes all, Instant deadline) {
    return call_and_wait(seat, AllgatherCall{mine, all}, deadline);
}
Future<void> start_allgather(Membership& seat, Bytes mine, MutableBytes all, Instant deadline) {
    return start(seat, AllgatherCall{mine, all}, deadline);
}

Result<void> alltoall(Membership& seat, Bytes send, MutableBytes receive, Instant deadline) {
    return call_and_wait(seat, AlltoallCall{send, receive, send.size() / seat.size()}, deadline);
}
Future<void> start_alltoall(Membership& seat, Bytes send, MutableBytes receive, Instant deadline) {
    return start(seat, AlltoallCall{send, receive, send.size() / seat.size()}, deadline);
}

Result<void> scan(Membership& seat, Bytes mine, MutableBytes result, bool is_inclusive, const Reduction& reduction,
                  Instant deadline) {
    return call_and_wait(seat, ScanCall{mine, result, is_inclusive, reduction}, deadline);
}
Future<void> start_scan(Membership& seat, Bytes mine, MutableBytes result, bool is_inclusive,
                        const Reduction& reduction, Instant deadline) {
    return start(seat, ScanCall{mine, result, is_inclusive, reduction}, deadline);
}

Result<Parts> gatherv(Membership& seat, Node root, Bytes mine, Instant deadline) {
    return call_and_wait(seat, GathervCall{root, mine}, deadline);
}
Future<Parts> start_gatherv(Membership& seat, Node root, Bytes mine, Instant deadline) {
    return start(seat, GathervCall{root, mine}, deadline);
}

Result<std::vector<std::byte>> scatterv(Membership& seat, Node root, std::span<const Bytes> parts, Instant deadline) {
    return call_and_wait(seat, ScattervCall{root, {parts.begin(), parts.end()}}, deadline);
}
Future<std::vector<std::byte>> start_scatterv(Membership& seat, Node root, std::span<const Bytes> parts,
                                              Instant deadline) {
    return start(seat, ScattervCall{root, {parts.begin(), parts.end()}}, deadline);
}

Result<Parts> allgatherv(Membership& seat, Bytes mine, Instant deadline) {
    return call_and_wait(seat, AllgathervCall{mine}, deadline);
}
Future<Parts> start_allgatherv(Membership& seat, Bytes mine, Instant deadline) {
    return start(seat, AllgathervCall{mine}, deadline);
}

Result<Parts> alltoallv(Membership& seat, std::span<const Bytes> parts, Instant deadline) {
    return call_and_wait(seat, AlltoallvCall{{parts.begin(), parts.end()}}, deadline);
}
Future<Parts> start_alltoallv(Membership& seat, std::span<const Bytes> parts, Instant deadline) {
    return start(seat, AlltoallvCall{{parts.begin(), parts.end()}}, deadline);
}
Result<void> alltoallv(Membership& seat, std::span<const Bytes> parts, std::span<const MutableBytes> rooms,
                       Instant deadline) {
    return call_and_wait(seat, AlltoallvIntoCall{{parts.begin(), parts.end()}, {rooms.begin(), rooms.end()}}, deadline);
}
Future<void> start_alltoallv(Membership& seat, std::span<const Bytes> parts, std::span<const MutableBytes> rooms,
                             Instant deadline) {
    return start(seat, AlltoallvIntoCall{{parts.begin(), parts.end()}, {rooms.begin(), rooms.end()}}, deadline);
}

Result<void> sendrecv(Membership& seat, Node to, Bytes mine, Node from, MutableBytes theirs, Instant deadline) {
    const SendrecvCall call{to, mine, from, theirs};
    if (auto good = check_sendrecv(seat, call); !good) return good;
    return call_and_wait(seat, call, deadline);
}
Future<void> start_sendrecv(Membership& seat, Node to, Bytes mine, Node from, MutableBytes theirs, Instant deadline) {
    const SendrecvCall call{to, mine, from, theirs};
    if (auto good = check_sendrecv(seat, call); !good) return Future<void>::ready(good.error());
    return start(seat, call, deadline);
}

} // namespace kumi::group
