#pragma once

#include "kumi/reliable/packet.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace kumi::reliable {

/// What a node tells the others about peers that do not listen any more: each peer is named in several rounds, because
/// a report may be lost, and because nodes believe only what is said twice. Pure.
class Reports {
public:
    /// Added to the number of a peer that has left, and may still wait for what others have to say.
    static constexpr std::uint64_t left_bit = std::uint64_t{1} << 32;

    static constexpr unsigned rounds = 3;
    /// As many as fit one packet. More wait for the next round.
    static constexpr std::size_t words_max = ack_words_max;

    explicit Reports(std::size_t nodes) { pending_.reserve(nodes); }

    bool empty() const noexcept { return pending_.empty(); }
    void clear() noexcept { pending_.clear(); }
    /// Begins to report `node`. False: that goes on already.
    bool add(Node node, bool has_left) noexcept {
        const auto is_it = [&](const Pending& one) { return one.node == node; };
        if (std::any_of(pending_.begin(), pending_.end(), is_it)) return false;
        pending_.push_back({.node = node, .rounds_left = rounds, .has_left = has_left});
        return true;
    }
    /// `node` listens after all.
    void remove(Node node) noexcept {
        std::erase_if(pending_, [&](const Pending& one) { return one.node == node; });
    }
    /// Writes the nodes of this round, a word of 8 bytes each; answers how many.
    std::size_t write(std::byte* at) noexcept {
        const std::size_t count = std::min(pending_.size(), words_max);
        for (std::size_t i = 0; i < count; ++i) {
            pending_[i].is_told = true;
            const std::uint64_t word = pending_[i].node | (pending_[i].has_left ? left_bit : 0);
            std::memcpy(at + i * sizeof word, &word, sizeof word);
        }
        return count;
    }
    /// The next round begins: what was written since the last one is written in one round less.
    void begin_round() noexcept {
        for (Pending& one : pending_)
            if (std::exchange(one.is_told, false)) --one.rounds_left;
        std::erase_if(pending_, [](const Pending& one) { return one.rounds_left == 0; });
    }

private:
    struct Pending {
        Node node;
        unsigned rounds_left;
        bool has_left;
        bool is_told = false; // in this round
    };
    std::vector<Pending> pending_;
};

} // namespace kumi::reliable
