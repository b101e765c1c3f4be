#include "kumi/device/mpi/arrivals.hpp"

#include <utility>

namespace kumi::device::mpi {

bool Arrivals::hold(std::uint32_t sequence, Held packet) {
    if (sequence - accepted_ >= window_packets - (accepted_ - taken_)) return false;
    if (!ring_) ring_ = std::make_unique<Held[]>(window_packets);
    if (held(sequence).state != Held::State::missing) return false;
    held(sequence) = std::move(packet);
    held(sequence).state = Held::State::waiting;
    return true;
}

Held* Arrivals::accept() noexcept {
    if (!ring_ || accepted_ - taken_ == window_packets || held(accepted_).state != Held::State::waiting) return nullptr;
    Held& next = held(accepted_);
    ++accepted_;
    if (next.kind != Kind::large) next.state = Held::State::complete;
    return &next;
}

} // namespace kumi::device::mpi
