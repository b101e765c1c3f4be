#pragma once

#include "kumi/engine/barrier/barrier_token.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::engine {

/// Barriers that this node has arrived at, and that a call has failed to wait for. The next call on the set goes on
/// waiting for the oldest of them: if it arrived at another one instead, this node would be ahead of the others, and
/// would take their barriers for later ones. Pure.
class UnfinishedBarriers {
public:
    void add(const BarrierToken& token) { tokens_.push_back(token); }
    /// Takes the oldest one of that set.
    std::optional<BarrierToken> take(std::uint64_t set) {
        auto oldest = tokens_.end();
        for (auto one = tokens_.begin(); one != tokens_.end(); ++one)
            if (one->set == set && (oldest == tokens_.end() || is_before(*one, *oldest))) oldest = one;
        if (oldest == tokens_.end()) return {};
        const BarrierToken token = *oldest;
        tokens_.erase(oldest);
        return token;
    }
    /// The next call on that set arrives at another barrier.
    void forget(std::uint64_t set) {
        std::erase_if(tokens_, [&](const BarrierToken& token) { return token.set == set; });
    }

private:
    /// Sequences wrap.
    static bool is_before(const BarrierToken& a, const BarrierToken& b) noexcept {
        return static_cast<std::int32_t>(a.sequence - b.sequence) < 0;
    }

    std::vector<BarrierToken> tokens_;
};

} // namespace kumi::engine
