#include "kumi/group/plan/scatter.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace kumi::group {
namespace {

/// Parts from `begin` to before `end`. 64 bits, because sums may be larger than a Node.
struct PartRange {
    std::uint64_t begin;
    std::uint64_t end;
};

class PassingList {
public:
    PassingList(Node members, Node rank, std::uint32_t blocks) : members_(members), rank_(rank), blocks_(blocks) {
        KUMI_ASSERT(rank < members);
    }

    std::uint64_t rank() const noexcept { return rank_; }
    std::vector<Passing> take() { return std::move(passings_); }

    /// The largest half first: it has the longest path.
    void scatter() {
        for (std::uint64_t half = std::bit_ceil(members_) / 2; half > 0; half /= 2)
            if (rank_ % (2 * half) == 0 && rank_ + half < members_) add(rank_ + half, scattered(rank_ + half));
    }

    /// Sends the parts that the receiver did not get in the scatter. After the last part comes the first one.
    void gather(std::uint64_t to, PartRange parts) {
        const std::uint64_t last = std::min(parts.end, members_);
        gather_run(to, {parts.begin, last});
        gather_run(to, {0, parts.end - last});
    }

private:
    /// The parts that a rank has after the scatter.
    PartRange scattered(std::uint64_t rank) const noexcept {
        if (rank == 0) return {0, members_};
        return {rank, std::min(rank + (rank & (~rank + 1)), members_)};
    }

    void gather_run(std::uint64_t to, PartRange parts) {
        const PartRange had = scattered(to);
        add(to, {parts.begin, std::min(parts.end, had.begin)});
        add(to, {std::max(parts.begin, had.end), parts.end});
    }

    void add(std::uint64_t to, PartRange parts) {
        if (parts.begin >= parts.end) return;
        const Passing passing{static_cast<Node>(to), first_block(parts.begin), first_block(parts.end)};
        if (passing.begin != passing.end) passings_.push_back(passing);
    }
    std::uint32_t first_block(std::uint64_t part) const noexcept {
        return static_cast<std::uint32_t>(part * blocks_ / members_);
    }

    std::uint64_t members_;
    std::uint64_t rank_;
    std::uint64_t blocks_;
    std::vector<Passing> passings_;
};

} // namespace

std::vector<Passing> scatter_ring(Node members, Node rank, std::uint32_t blocks) {
    PassingList list(members, rank, blocks);
    list.scatter();
    for (std::uint64_t round = 0; round + 1 < members; ++round) {
        const std::uint64_t part = (list.rank() + members - round) % members;
        list.gather((list.rank() + 1) % members, {part, part + 1});
    }
    return list.take();
}

std::vector<Passing> scatter_doubling(Node members, Node rank, std::uint32_t blocks) {
    PassingList list(members, rank, blocks);
    list.scatter();
    for (std::uint64_t span = 1; span < members; span *= 2) {
        if (std::has_single_bit(members)) { // two runs of ranks exchange what they have
            const std::uint64_t own = rank / span * span;
            list.gather(rank ^ span, {own, own + span});
        } else { // after Bruck and others: each has the parts from its own on
            list.gather((list.rank() + members - span) % members,
                        {list.rank(), list.rank() + std::min(span, members - span)});
        }
    }
    return list.take();
}

} // namespace kumi::group
