#pragma once

// The barriers that will not be complete, because they lack a node that is lost. Pure.

#include "kumi/engine/barrier/barrier_token.hpp"
#include "kumi/engine/wire.hpp"

#include <cstdint>
#include <unordered_map>

namespace kumi::engine {

class GivenUp {
public:
    /// False: that is known already, of the same barrier of that set or of an earlier one.
    bool note(const Hopeless& what) {
        const auto [known, is_new] = by_set_.try_emplace(what.set, what);
        if (!is_new && is_from(known->second, what.sequence)) return false;
        known->second = what;
        return true;
    }
    /// The reason why that barrier will not be complete; null: there is none. A barrier may be complete all the same,
    /// if its last steps came first.
    const Hopeless* find(const BarrierToken& token) const noexcept {
        if (by_set_.empty()) return nullptr;
        const auto known = by_set_.find(token.set);
        return known != by_set_.end() && is_from(known->second, token.sequence) ? &known->second : nullptr;
    }
    /// From which barrier of `set` on; null: none.
    const Hopeless* find(std::uint64_t set) const noexcept {
        const auto known = by_set_.find(set);
        return known == by_set_.end() ? nullptr : &known->second;
    }
    std::size_t size() const noexcept { return by_set_.size(); }

private:
    static bool is_from(const Hopeless& known, std::uint32_t sequence) noexcept {
        return static_cast<std::int32_t>(sequence - known.sequence) >= 0;
    }

    std::unordered_map<std::uint64_t, Hopeless> by_set_;
};

} // namespace kumi::engine
