#include "kumi/group/plan/probing.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>

namespace kumi::group {

std::optional<Probing::Train> Probing::next() const noexcept {
    if (count_ == trains.size() * rounds) return {};
    return trains[count_ % trains.size()];
}

void Probing::on_back(Duration took) noexcept {
    KUMI_ASSERT(count_ < trains.size() * rounds);
    Duration& shortest = shortest_[count_++ % trains.size()];
    shortest = std::min(shortest, took);
}

Costs Probing::costs(const Costs& usual) const noexcept {
    KUMI_ASSERT(!next());
    const auto us = [&](std::size_t train) {
        return std::chrono::duration<double, std::micro>(shortest_[train]).count();
    };
    Costs found;
    found.origin = Origin::measured;
    found.latency_us = us(0) / 2;
    // Messages that share a packet take next to nothing each, and less than the clock can tell.
    found.overhead_us = std::clamp((us(1) - us(0)) / (messages_max - 1), found.latency_us / 100, found.latency_us);
    found.us_per_byte = (us(2) - us(1)) / (messages_max * bytes_max);
    const auto is_sound = [](double value, double common) { return value > common / 100 && value < common * 100; };
    return is_sound(found.latency_us, usual.latency_us) && is_sound(found.us_per_byte, usual.us_per_byte) ? found
                                                                                                          : usual;
}

} // namespace kumi::group
