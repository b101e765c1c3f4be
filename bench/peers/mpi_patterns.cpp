// The cases of bench/patterns, written as MPI programs are written. Overlapping multicasts are non-blocking broadcasts
// in communicators that were made beforehand, one for each master. As in mpi_group.cpp, a reduction of one byte tells
// the master that all have the content, and the members know beforehand what comes.

#include "peers/mpi_patterns.hpp"

#include "patterns/work.hpp"
#include "peers/mpi_together.hpp"

#include <algorithm>
#include <cstdio>
#include <mpi.h>
#include <vector>

namespace kumi::bench {
namespace {

/// Seconds of this process's part of "pairs" or "incast", from a barrier to a barrier. Windows of non-blocking calls,
/// as in the OSU benchmarks, but of messages that have news and so have buffers of their own; of at most 1 MiB, so that
/// the buffers stay in the cache.
double stream_seconds(const Flow& flow, std::size_t bytes, std::int64_t count) {
    using Buffers = std::vector<std::vector<char>>;
    const auto window_max = static_cast<std::int64_t>(std::clamp<std::size_t>((1 << 20) / bytes, 1, 64));
    const int size = static_cast<int>(bytes);
    Buffers out(static_cast<std::size_t>(window_max), std::vector<char>(bytes));
    std::vector<Buffers> in(flow.from.size(), out);
    std::vector<MPI_Request> requests;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (std::int64_t done = 0; done < count; done += window_max) {
        requests.clear();
        for (std::int64_t i = done; i < std::min(count, done + window_max); ++i) {
            const auto slot = static_cast<std::size_t>(i - done);
            for (std::size_t k = 0; k < in.size(); ++k)
                MPI_Irecv(in[k][slot].data(), size, MPI_BYTE, flow.from[k], 0, MPI_COMM_WORLD,
                          &requests.emplace_back());
            if (flow.to == nobody) continue;
            renew(out[slot].data(), bytes, static_cast<int>(i));
            MPI_Isend(out[slot].data(), size, MPI_BYTE, flow.to, 0, MPI_COMM_WORLD, &requests.emplace_back());
        }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

/// Seconds of this process's part of "pingpongs", with its neighbour. The even process begins.
double pingpong_seconds(std::size_t bytes, std::int64_t count) {
    const int size = static_cast<int>(bytes), other = own_rank() ^ 1;
    const bool begins = own_rank() % 2 == 0;
    std::vector<char> out(bytes), in(bytes);
    const auto send = [&](std::int64_t number) {
        renew(out.data(), bytes, static_cast<int>(number));
        MPI_Send(out.data(), size, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    };
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (std::int64_t i = 0; i < count; ++i) {
        if (begins) send(i);
        MPI_Recv(in.data(), size, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!begins) send(i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

int rates(const std::string& what, const std::string& place) {
    const int rank = own_rank(), nodes = world_size();
    const Flow flow = flow_of(what, rank, nodes);
    const auto seconds_of = [&](std::size_t bytes, std::int64_t count) {
        const double times = static_cast<double>(count);
        return what == "pingpongs" ? pingpong_seconds(bytes, count) / times / 2
                                   : stream_seconds(flow, bytes, count) / times;
    };
    measure_rates(what, place, rank, nodes, seconds_of, as_first_says);
    return 0;
}

int placement(const std::string& place) {
    for (const std::size_t bytes : placement_bytes) {
        const int words = static_cast<int>(bytes / sizeof(std::uint64_t));
        const std::vector<int> counts(static_cast<std::size_t>(world_size()), words);
        const auto exchange = [&](const std::vector<std::uint64_t>& send, std::vector<std::uint64_t>& receive) {
            MPI_Alltoall(send.data(), words, MPI_UINT64_T, receive.data(), words, MPI_UINT64_T, MPI_COMM_WORLD);
        };
        const auto seconds = exchange_seconds(counts, own_rank(), exchange, as_first_says);
        if (!seconds) return std::fprintf(stderr, "an exchange is wrong\n"), 1;
        if (own_rank() == 0) report_pattern("placement", bytes, place, *seconds * 1e6);
    }
    return 0;
}

/// The multicasts of all masters, as this process sees them.
class Multicasts {
public:
    explicit Multicasts(int masters) {
        for (int master = 0; master < masters; ++master) {
            const std::vector<int> members = members_of(master, world_size());
            if (std::find(members.begin(), members.end(), own_rank()) != members.end())
                multicasts_.push_back({master == own_rank(), communicator_of(members), {}});
        }
    }
    Multicasts(const Multicasts&) = delete;
    ~Multicasts() {
        for (One& one : multicasts_) MPI_Comm_free(&one.communicator);
    }

    double seconds(std::size_t bytes) {
        for (One& one : multicasts_) one.content.assign(bytes, std::byte{0});
        const auto run = [&](std::int64_t count) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double start = MPI_Wtime();
            for (std::int64_t i = 0; i < count; ++i) all_at_once();
            MPI_Barrier(MPI_COMM_WORLD);
            return (MPI_Wtime() - start) / static_cast<double>(count);
        };
        return settled_seconds(1, run, as_first_says);
    }

    bool all_came() const { return all_came_; }

private:
    struct One {
        bool is_mine;
        MPI_Comm communicator; // in which the master has rank 0
        std::vector<std::byte> content;
        unsigned char has = 1, all_have = 0;
    };

    void all_at_once() {
        ++number_;
        wait_for_all([&](One& one, MPI_Request* request) {
            if (one.is_mine) stamp(one.content, number_);
            MPI_Ibcast(one.content.data(), static_cast<int>(one.content.size()), MPI_BYTE, 0, one.communicator,
                       request);
        });
        wait_for_all([](One& one, MPI_Request* request) {
            MPI_Ireduce(&one.has, &one.all_have, 1, MPI_BYTE, MPI_BOR, 0, one.communicator, request);
        });
        for (const One& one : multicasts_) all_came_ = all_came_ && stamp_of(one.content) == number_;
    }

    template <class Begin>
    void wait_for_all(Begin&& begin) {
        std::vector<MPI_Request> requests(multicasts_.size());
        for (std::size_t i = 0; i < requests.size(); ++i) begin(multicasts_[i], &requests[i]);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }

    std::vector<One> multicasts_; // that this process is a member of
    std::uint64_t number_ = 0;
    bool all_came_ = true;
};

int multicasts(const std::string& place) {
    Multicasts all(std::stoi(place));
    for (const std::size_t bytes : multicasts_bytes) {
        const double seconds = all.seconds(bytes);
        if (own_rank() == 0) report_pattern("multicasts", bytes, place, seconds * 1e6);
    }
    if (all.all_came()) return 0;
    std::fprintf(stderr, "a broadcast did not bring what was sent\n");
    return 1;
}

} // namespace

int mpi_patterns(const std::string& what, const std::string& place) {
    if (what == "placement") return placement(place);
    if (what == "multicasts") return multicasts(place);
    return rates(what, place);
}

} // namespace kumi::bench
