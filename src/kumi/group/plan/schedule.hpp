#pragma once

#include "kumi/group/plan/circulant.hpp"
#include "kumi/group/plan/scatter.hpp"
#include "kumi/group/plan/way.hpp"

#include <optional>
#include <variant>

namespace kumi::group {

/// The steps in which a rank sends its blocks, for a way, a number of members and a number of blocks.
class Schedule {
public:
    Schedule(Way way, Node members, Node rank, std::uint32_t blocks)
        : steps_(make_steps(way, members, rank, blocks)), blocks_(blocks) {}

    std::uint32_t steps() const noexcept {
        if (const auto* const circulant = std::get_if<Circulant>(&steps_)) return circulant->rounds(blocks_);
        return static_cast<std::uint32_t>(std::get<Passings>(steps_).size());
    }
    /// Nothing: the rank sends no block in that step.
    std::optional<Passing> step(std::uint32_t index) const noexcept {
        const auto* const circulant = std::get_if<Circulant>(&steps_);
        if (circulant == nullptr) return std::get<Passings>(steps_)[index];
        const Circulant::Step step = circulant->step(index, blocks_);
        if (!step.send || step.to == 0) return {};
        return Passing{step.to, *step.send, *step.send + 1};
    }

private:
    using Passings = std::vector<Passing>;
    using Steps = std::variant<Circulant, Passings>;

    static Steps make_steps(Way way, Node members, Node rank, std::uint32_t blocks) {
        if (way == Way::scatter_ring) return scatter_ring(members, rank, blocks);
        if (way == Way::scatter_doubling) return scatter_doubling(members, rank, blocks);
        return Circulant(members, rank);
    }

    Steps steps_;
    std::uint32_t blocks_;
};

} // namespace kumi::group
