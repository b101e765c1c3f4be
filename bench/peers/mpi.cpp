// The same cases as bench/shmem/node.cpp, bench/udp/node.cpp, bench/composite/exchange_node.cpp, bench/engine,
// bench/group, bench/sizes and bench/patterns, written as MPI programs are written. Built once per MPI that is found.

#include "contestant/core.hpp"
#include "contestant/measure.hpp"
#include "contestant/work.hpp"
#include "peers/mpi_group.hpp"
#include "peers/mpi_onesided.hpp"
#include "peers/mpi_patterns.hpp"
#include "peers/mpi_together.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mpi.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

using namespace kumi::bench;
using Clock = std::chrono::steady_clock;

int rank_ = 0;
int size_ = 1;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void send(const void* data, std::size_t bytes, int to) {
    MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, 0, MPI_COMM_WORLD);
}
void receive(void* data, std::size_t bytes, int from) {
    MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

double pingpong_seconds(std::size_t bytes, int count) {
    std::vector<char> out(bytes), in(bytes);
    const auto send_next = [&](int number) {
        renew(out.data(), bytes, number);
        send(out.data(), bytes, 1 - rank_);
    };
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
        if (rank_ == 0) send_next(i);
        receive(in.data(), bytes, 1 - rank_);
        if (rank_ == 1) send_next(i);
    }
    return seconds_since(start) / count / 2;
}

/// Windows of non-blocking calls, as in the OSU benchmarks.
double stream_seconds(std::size_t bytes, int count) {
    constexpr int window = 64;
    std::vector<char> buffer(bytes);
    std::vector<MPI_Request> requests(window);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (int done = 0; done < count; done += window) {
        for (int i = 0; i < window; ++i)
            rank_ == 0
                ? MPI_Isend(buffer.data(), static_cast<int>(bytes), MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i])
                : MPI_Irecv(buffer.data(), static_cast<int>(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return seconds_since(start) / ((count + window - 1) / window * window);
}

/// The producer fills, the consumer sums; two buffers each, so that both work at the same time.
double produce_consume_seconds(int count) {
    std::vector<std::uint64_t> buffers[2] = {std::vector<std::uint64_t>(large_words),
                                             std::vector<std::uint64_t>(large_words)};
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    std::uint64_t total = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    const auto post = [&](int i) {
        MPI_Irecv(buffers[i % 2].data(), large_bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i % 2]);
    };
    if (rank_ == 1) post(0), post(1);
    for (int i = 0; i < count; ++i) {
        MPI_Wait(&requests[i % 2], MPI_STATUS_IGNORE);
        if (rank_ == 0) {
            fill(buffers[i % 2].data(), large_words, static_cast<std::uint64_t>(i));
            MPI_Isend(buffers[i % 2].data(), large_bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i % 2]);
        } else {
            total += sum(buffers[i % 2].data(), large_words);
            if (i + 2 < count) post(i + 2);
        }
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (total == 1) std::puts(""); // the sum is needed
    return seconds_since(start) / count;
}

/// Like produce_consume_seconds(), with blocking calls.
double produce_consume_blocking_seconds(int count) {
    std::vector<std::uint64_t> buffer(large_words);
    std::uint64_t total = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
        if (rank_ == 0) {
            fill(buffer.data(), large_words, static_cast<std::uint64_t>(i));
            send(buffer.data(), large_bytes, 1);
        } else {
            receive(buffer.data(), large_bytes, 0);
            total += sum(buffer.data(), large_words);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (total == 1) std::puts(""); // the sum is needed
    return seconds_since(start) / count;
}

void pair() {
    for (const std::size_t bytes : latency_sizes) {
        pingpong_seconds(bytes, pingpongs_small / 10);
        const double seconds = pingpong_seconds(bytes, pingpongs_small);
        if (rank_ == 0) report(("shmem.latency." + std::to_string(bytes)).c_str(), seconds * 1e9);
    }
    stream_seconds(8, stream_small / 10);
    const double small = stream_seconds(8, stream_small);
    stream_seconds(large_bytes, 100);
    const double copy = stream_seconds(large_bytes, stream_large);
    const double pingpong = pingpong_seconds(large_bytes, pingpongs_large);
    // The better of two ways counts.
    const double in_place =
        std::min(produce_consume_seconds(stream_large), produce_consume_blocking_seconds(stream_large));
    if (rank_ != 0) return;
    report("shmem.rate.8", 1e-6 / small);
    report("shmem.bandwidth.copy.1048576", large_bytes * 1e-6 / copy);
    report("shmem.bandwidth.pingpong.1048576", large_bytes * 1e-6 / pingpong);
    report("shmem.bandwidth.inplace.1048576", large_bytes * 1e-6 / in_place);
}

void ring() {
    std::uint64_t token = 0;
    const int next = (rank_ + 1) % size_;
    const int previous = (rank_ + size_ - 1) % size_;
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (int round = 0; round < ring_rounds; ++round) {
        if (rank_ != 0) receive(&token, sizeof token, previous);
        send(&token, sizeof token, next);
        if (rank_ == 0) receive(&token, sizeof token, previous);
    }
    if (rank_ == 0) report("shmem.ring.16", seconds_since(start) / ring_rounds / size_ * 1e6);
}

/// One row of `kumi bench udp` or `kumi bench composite`.
void net(std::string_view what, const char* row) {
    bind_to_core(static_cast<unsigned>(rank_)); // here, since mpirun takes two hosts on one machine for two machines
    if (what == "latency.64") {
        pingpong_seconds(pingpong_bytes, pingpongs_small / 50);
        const double seconds = pingpong_seconds(pingpong_bytes, pingpongs_small / 5);
        if (rank_ == 0) report(row, seconds * 1e9);
    }
    if (what == "bulk") {
        double seconds = stream_seconds(bulk_message_bytes, 1);
        for (const double duration : {0.1, 0.5})
            seconds = stream_seconds(bulk_message_bytes, static_cast<int>(as_first_says(count_in(duration, seconds))));
        if (rank_ == 0) report(row, bulk_message_bytes * 1e-6 / seconds);
    }
}

/// `kumi bench sizes`.
void sizes(const std::string& what, const std::string& place) {
    bind_to_core(static_cast<unsigned>(rank_)); // as in net()
    measure_sizes(what, place, SIZE_MAX, rank_ == 0, pingpong_seconds, stream_seconds);
}

/// A row of `kumi bench engine`. The next function measures another.
int onesided(const std::string& place) {
    bind_to_core(static_cast<unsigned>(rank_)); // here, since mpirun takes two hosts on one machine for two machines
    return mpi_onesided(place);
}

void barrier(const char* row) {
    const auto barriers = [](std::int64_t count) { return seconds_each(count, [] { MPI_Barrier(MPI_COMM_WORLD); }); };
    const double seconds = settled_seconds(barriers_first, barriers, as_first_says);
    if (rank_ == 0) report(row, seconds * 1e6);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    const std::string_view what = argc > 1 ? argv[1] : "join";
    if (what == "pair") pair();
    if (what == "ring") ring();
    if (what == "net" && argc == 4) net(argv[2], argv[3]);
    if (what == "sizes" && argc == 4) sizes(argv[2], argv[3]);
    int code = 0;
    if (what == "onesided" && argc == 3) code = onesided(argv[2]);
    if (what == "barrier" && argc == 3) barrier(argv[2]);
    if (what == "group" && argc == 4) code = mpi_group(argv[2], argv[3]);
    if (what == "patterns" && argc == 4) code = mpi_patterns(argv[2], argv[3]);
    // MPICH 4.0's MPI_Finalize() may hang where hosts with few cores have many processes; all is measured by then.
    std::signal(SIGALRM, [](int) { std::_Exit(0); });
    if (what == "barrier" || what == "group" || what == "patterns") ::alarm(3);
    MPI_Finalize();
    return code;
}
