#pragma once

// Finds out what messages between two nodes take, by trains of them: some messages, one right after the other, of which
// the last is sent back. One message takes a latency there and one back; each more in a train takes a gap. Each train
// goes several times, and the shortest counts: whatever disturbs makes it longer. Pure: the caller sends, and says how
// long it took.

#include "kumi/base/clock.hpp"
#include "kumi/group/plan/choice.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kumi::group {

class Probing {
public:
    struct Train {
        std::uint32_t messages;
        std::uint32_t bytes; // in each
    };
    /// What is to be sent now; nothing when all are back.
    std::optional<Train> next() const noexcept;
    /// The last message of that train is back.
    void on_back(Duration took) noexcept;

    /// What was measured, or `usual` if it makes no sense: more than a hundred times off. All trains are back.
    Costs costs(const Costs& usual) const noexcept;

    static constexpr std::size_t rounds = 4;
    static constexpr std::uint32_t messages_max = 8;
    static constexpr std::uint32_t bytes_max = 4096;

private:
    static constexpr std::array<Train, 3> trains{{{1, 0}, {messages_max, 0}, {messages_max, bytes_max}}};

    std::array<Duration, trains.size()> shortest_{Duration::max(), Duration::max(), Duration::max()};
    std::size_t count_ = 0; // of those that are back
};

} // namespace kumi::group
