#pragma once

// Puts the packets of one node in order. Pure: no MPI.
//
// There are two steps, each in the order of sequences. A packet is accepted when all packets before it have arrived;
// only then may a large message that it announces have a buffer. In another order, buffers could go to messages that
// wait for one that has none. A packet is taken, that is handed to the handler, when all packets before it have been.
// Most packets are accepted and taken as they arrive, and change only two counts here; the others are held.

#include "kumi/device/mpi/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kumi::device::mpi {

/// A packet that arrived and is not yet taken.
struct Held {
    enum class State : std::uint8_t { missing, waiting, complete };

    State state = State::missing;
    Kind kind = Kind::small;
    std::uint32_t bytes = 0;
    std::uint32_t buffer = 0;          // of a large message, once it has a buffer
    std::unique_ptr<std::byte[]> copy; // of a small message
};

class Arrivals {
public:
    /// How many packets were taken so far. Wraps.
    std::uint32_t taken() const noexcept { return taken_; }

    /// True if the packet is the next to be accepted and taken; then it counts as both.
    bool take_at_once(std::uint32_t sequence) noexcept {
        if (sequence != taken_ || taken_ != accepted_) return false;
        ++taken_, ++accepted_;
        return true;
    }

    /// Holds a packet. False: the sequence is outside the window, or is held already.
    bool hold(std::uint32_t sequence, Held packet);

    /// Accepts the next packet if it has arrived. A small one is complete then; a large one when its bytes have arrived
    /// and the caller sets the state of the returned packet. Null: none.
    Held* accept() noexcept;
    /// The sequence that accept() returns next.
    std::uint32_t accepted() const noexcept { return accepted_; }

    Held& held(std::uint32_t sequence) noexcept { return ring_[sequence % window_packets]; }

    /// The next packet to be taken, if it is complete. Null: none.
    Held* complete() noexcept {
        if (taken_ == accepted_ || held(taken_).state != Held::State::complete) return nullptr;
        return &held(taken_);
    }
    /// Counts the packet of complete() as taken, and forgets it.
    void take() noexcept {
        held(taken_) = {};
        ++taken_;
    }

private:
    std::uint32_t taken_ = 0;
    std::uint32_t accepted_ = 0; // never less than taken_
    std::unique_ptr<Held[]> ring_; // by sequence; allocated when the first packet is held
};

} // namespace kumi::device::mpi
