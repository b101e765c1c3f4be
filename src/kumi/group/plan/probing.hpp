#pragma once

// Measures the costs of messages between two nodes with trains: several messages right after each other, of which the
// receiver sends the last one back. A train of one message takes a latency in each direction; each further message
// takes a gap. Each kind of train is sent several times and the shortest time counts, because disturbances only make it
// longer. Pure: the caller sends the trains and says how long they took.

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
    /// The train to send now; nothing when all are back.
    std::optional<Train> next() const noexcept;
    /// The last message of that train is back.
    void on_back(Duration took) noexcept;

    /// The measured costs, or `usual` if the measurement makes no sense: a cost is off by more than a factor of a
    /// hundred. All trains must be back.
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
