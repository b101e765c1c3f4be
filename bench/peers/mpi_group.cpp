// Multicasts as MPI programs do them: a communicator for each set, in which node 0 broadcasts. By a reduction of one
// byte node 0 learns that all members have the content. This is more than fair to MPI: its members know beforehand
// which set comes next and wait for it, while Kumi's members learn the set from the message. And the communicators are
// made before the measurement, unless the making is measured.

#include "peers/mpi_group.hpp"

#include "contestant/measure.hpp"
#include "contestant/work.hpp"
#include "group/work.hpp"
#include "peers/mpi_together.hpp"

#include <algorithm>
#include <cstdio>
#include <mpi.h>
#include <optional>
#include <span>
#include <vector>

namespace kumi::bench {
namespace {

/// A set that this process is in.
class Members {
public:
    explicit Members(const std::vector<int>& ranks) : ranks_(ranks) {}

    /// A communicator of the members. Other processes take no part.
    void create() { communicator_ = communicator_of(ranks_); }
    void free() { MPI_Comm_free(&communicator_); }

    void multicast(std::span<std::byte> content) {
        MPI_Bcast(content.data(), static_cast<int>(content.size()), MPI_BYTE, 0, communicator_);
        unsigned char mine = 1, all = 0;
        MPI_Reduce(&mine, &all, 1, MPI_BYTE, MPI_BOR, 0, communicator_);
    }

private:
    std::vector<int> ranks_;
    MPI_Comm communicator_ = MPI_COMM_NULL;
};

/// All sets in turn, as this process sees them.
class Multicasts {
public:
    explicit Multicasts(bool creates) : creates_(creates) {
        for (const std::vector<int>& ranks : random_sets(world_size())) {
            const bool is_member = std::binary_search(ranks.begin(), ranks.end(), rank_);
            sets_.push_back(is_member ? std::optional<Members>(ranks) : std::nullopt);
            if (is_member && !creates) sets_.back()->create();
        }
    }
    Multicasts(const Multicasts&) = delete;
    ~Multicasts() {
        if (creates_) return;
        for (std::optional<Members>& set : sets_)
            if (set) set->free();
    }

    double seconds(std::size_t bytes) {
        std::vector<std::byte> content(bytes);
        const auto all_sets = [&] {
            for (std::optional<Members>& set : sets_) {
                ++number_;
                if (set) multicast(*set, content);
            }
        };
        const auto run = [&](std::int64_t count) { return seconds_each(count, all_sets); };
        return settled_seconds(1, run, as_first_says) / sets_in_turn;
    }

    bool all_came() const { return all_came_; }

private:
    void multicast(Members& set, std::span<std::byte> content) {
        if (rank_ == 0) stamp(content, number_);
        if (creates_) set.create();
        set.multicast(content);
        if (creates_) set.free();
        all_came_ = all_came_ && stamp_of(content) == number_;
    }

    bool creates_;
    int rank_ = own_rank();
    std::vector<std::optional<Members>> sets_; // empty: this process is no member
    std::uint64_t number_ = 0;
    bool all_came_ = true;
};

void report_size(const std::string& what, std::size_t bytes, const std::string& place, double seconds) {
    if (own_rank() == 0) report(("group." + what + "." + std::to_string(bytes) + "." + place).c_str(), seconds * 1e6);
}

int multicasts(const std::string& what, std::span<const std::size_t> sizes, const std::string& place) {
    Multicasts casts(what == "create");
    for (const std::size_t bytes : sizes) report_size(what, bytes, place, casts.seconds(bytes));
    if (casts.all_came()) return 0;
    std::fprintf(stderr, "a broadcast did not bring what was sent\n");
    return 1;
}

int allreduces(const std::string& place) {
    for (const std::size_t bytes : allreduce_bytes) {
        const auto sum_up = [](const std::vector<double>& mine, std::vector<double>& sums) {
            MPI_Allreduce(mine.data(), sums.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        };
        const auto seconds = allreduce_seconds(bytes, world_size(), sum_up, as_first_says);
        if (!seconds) return std::fprintf(stderr, "a sum is wrong\n"), 1;
        report_size("allreduce", bytes, place, *seconds);
    }
    return 0;
}

int alltoallvs(const std::string& place) {
    const int nodes = world_size();
    const int rank = own_rank();
    for (const std::size_t bytes : alltoallv_bytes) {
        const std::vector<int> sizes = alltoallv_counts(bytes, nodes);
        const std::vector<int> sizes_here(sizes.size(), sizes[static_cast<std::size_t>(rank)]);
        std::vector<int> offsets(sizes.size()), offsets_here(sizes.size());
        std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), 0);
        std::exclusive_scan(sizes_here.begin(), sizes_here.end(), offsets_here.begin(), 0);
        const auto exchange = [&](const std::vector<std::uint64_t>& send, std::vector<std::uint64_t>& receive) {
            MPI_Alltoallv(send.data(), sizes.data(), offsets.data(), MPI_UINT64_T, receive.data(), sizes_here.data(),
                          offsets_here.data(), MPI_UINT64_T, MPI_COMM_WORLD);
        };
        const auto seconds = exchange_seconds(sizes, rank, exchange, as_first_says);
        if (!seconds) return std::fprintf(stderr, "an exchange is wrong\n"), 1;
        report_size("alltoallv", bytes, place, *seconds);
    }
    return 0;
}

} // namespace

int mpi_group(const std::string& what, const std::string& place) {
    if (what == "alltoallv") return alltoallvs(place);
    if (what == "allreduce") return allreduces(place);
    if (what == "create") return multicasts(what, create_bytes, place);
    return multicasts(what, multicast_bytes, place);
}

} // namespace kumi::bench
