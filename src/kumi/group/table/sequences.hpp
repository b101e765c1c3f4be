#pragma once

#include "kumi/base/data/bitmap.hpp"

#include <cstdint>

namespace kumi::group {

/// The multicasts of one master that a node has seen, by sequence. Sequences begin with 1 and are never used again.
/// Exact for the newest `window` sequences; older ones count as seen.
class Sequences {
public:
    static constexpr std::uint64_t window = 4096;

    bool was_seen(std::uint64_t sequence) const noexcept {
        if (sequence > newest_) return false;
        return sequence < oldest_ || newest_ - sequence >= window || seen_.test(sequence % window);
    }
    /// The multicast was given up: it counts as seen and has not come. False for sequences older than the window.
    bool was_missed(std::uint64_t sequence) const noexcept {
        if (newest_ - sequence >= window) return false;
        return !seen_.test(sequence % window) || missed_.test(sequence % window);
    }

    void add(std::uint64_t sequence) noexcept {
        if (sequence > newest_) {
            // Sequences that the window has passed are old.
            if (sequence - newest_ >= window) seen_.clear();
            else
                for (std::uint64_t passed = newest_ + 1; passed <= sequence; ++passed) seen_.clear(passed % window);
            newest_ = sequence;
        }
        seen_.set(sequence % window);
        missed_.clear(sequence % window);
    }
    /// Marks a sequence that was added as given up.
    void miss(std::uint64_t sequence) noexcept { missed_.set(sequence % window); }

    /// The first sequence that is not too late: earlier ones count as seen.
    std::uint64_t oldest() const noexcept { return oldest_; }
    void begin_at(std::uint64_t sequence) noexcept {
        if (sequence > oldest_) oldest_ = sequence;
    }

private:
    std::uint64_t newest_ = 0;
    std::uint64_t oldest_ = 0;
    base::Bitmap seen_{window};   // by sequence modulo window, up to the newest
    base::Bitmap missed_{window}; // of these
};

} // namespace kumi::group
