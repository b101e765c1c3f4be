#pragma once

// What collectives have in common: a tree of ranks, and a check of arguments.

#include "kumi/base/bytes.hpp"
#include "kumi/group/collective/collective_call.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kumi::group {

/// A tree in which every subtree is a run of ranks, so that values are combined in order. In level k two runs of 2^k
/// ranks make one of 2^(k+1). One member speaks for each run: the root if it is in the run, otherwise the first.
class RankTree {
public:
    RankTree(const Membership& seat, Node root) noexcept : size_(seat.size()), rank_(seat.rank), root_(root) {}

    struct Link {
        Node other;      // the member that speaks for the other run
        Node begin, end; // the run of the one of the two that is further from the root
        bool is_up;      // this member is further from the root, and has no more links
        std::size_t level;
    };
    /// The links of this member, from the leaves to the root: the next one from `level` on, which is 0 at first and
    /// moves on. Nothing: there are no more.
    std::optional<Link> next_up(std::size_t& level) const noexcept {
        while (level < levels_max && (std::uint64_t{1} << level) < size_) {
            const auto link = at(level++);
            if (!link) continue;
            if (link->is_up) level = levels_max;
            return link;
        }
        return {};
    }
    /// Whether this member has members below it.
    bool has_below() const noexcept {
        std::size_t level = 0;
        const auto first = next_up(level);
        return first && !first->is_up;
    }
    /// The links of this member, from the root to the leaves: the next one below `level`, which is top() at first.
    std::optional<Link> next_down(std::size_t& level) const noexcept {
        while (level > 0)
            if (const auto link = at(--level)) return link;
        return {};
    }
    std::size_t top() const noexcept {
        std::size_t highest = 0; // in which it speaks
        while ((std::uint64_t{1} << highest) < size_ && speaker(run(rank_, highest)) == rank_) ++highest;
        return speaker(run(rank_, highest)) == rank_ ? highest + 1 : highest;
    }

private:
    static constexpr std::size_t levels_max = 33; // of ranks with 32 bits

    struct Run {
        std::uint64_t begin, end;
    };
    /// The run of 2^level ranks that contains `rank`.
    Run run(std::uint64_t rank, std::size_t level) const noexcept {
        const std::uint64_t begin = rank >> level << level;
        return {begin, std::min<std::uint64_t>(begin + (std::uint64_t{1} << level), size_)};
    }
    Node speaker(const Run& run) const noexcept {
        return static_cast<Node>(root_ >= run.begin && root_ < run.end ? root_ : run.begin);
    }
    std::optional<Link> at(std::size_t level) const noexcept {
        const Run mine = run(rank_, level);
        if (speaker(mine) != rank_) return {};
        const std::uint64_t beside = mine.begin ^ (std::uint64_t{1} << level);
        if (beside >= size_) return {};
        const Run others = run(beside, level);
        const bool is_up = speaker(run(rank_, level + 1)) != rank_;
        const Run& further = is_up ? mine : others;
        return Link{speaker(others), static_cast<Node>(further.begin), static_cast<Node>(further.end), is_up, level};
    }

    Node size_;
    Node rank_;
    Node root_;
};

/// If sizes do not fit together, this member has made a mistake: the other members are told, and this member goes
/// through the steps with memory that fits. `Span` is Bytes for what is sent, MutableBytes for what is received.
template <class Span>
Span fitting(CollectiveCall& call, Span given, std::size_t needed, std::vector<std::byte>& instead,
             std::string_view what) {
    if (given.size() == needed) return given;
    constexpr std::string_view has = std::is_same_v<Span, Bytes> ? "has" : "has room for";
    call.refuse(fmt::format("{} {} {} bytes, and {} are needed", what, has, given.size(), needed));
    instead.resize(needed);
    return instead;
}

} // namespace kumi::group
