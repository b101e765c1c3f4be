#pragma once

// Multicasts to handlers of random sets: each member gets those of each master once and in order, and only lost members
// are missing.

#include "soak/world.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

namespace kumi::soak {

class Multicasts {
public:
    Multicasts(Handlers& handlers, World& world);

    void act(Actor& actor);
    /// Every multicast of every survivor has arrived. All survivors have waited for theirs.
    void check();

private:
    World& world_;
    Handler<std::uint64_t, Bytes> take_;
    Function<std::uint64_t(std::uint32_t)> received_by_;
    std::mutex mutex_;                // threads multicast in the order of the numbers that they take
    std::vector<std::uint64_t> sent_; // by member
    std::uint64_t number_ = 0;
    std::vector<std::uint64_t> last_;                  // by master: the number that came last
    std::vector<std::atomic<std::uint64_t>> received_; // by master: how many
};

} // namespace kumi::soak
