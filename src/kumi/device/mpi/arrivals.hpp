#pragma once

// What has arrived from one node, put in order. Pure: no MPI.
//
// Two steps, each in the order of sequences. A packet is accepted when all before it have arrived: then a large message
// that it announces may have a buffer; in another order buffers could go to messages that wait for one that has none.
// It is taken, which is to say handed out, when all before it have been. Most packets are both as they arrive, and
// touch nothing here but two counts; the others are held.

#include "kumi/device/mpi/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kumi::device::mpi {

/// A packet that is held.
struct Held {
    enum class State : std::uint8_t { missing, waiting, complete };

    State state = State::missing;
    Kind kind = Kind::small;
    std::uint32_t bytes = 0;
    std::uint32_t buffer = 0;          // of a large message, once it has one
    std::unique_ptr<std::byte[]> copy; // of a small one
};

class Arrivals {
public:
    /// Packets that were taken so far; wraps.
    std::uint32_t taken() const noexcept { return taken_; }

    /// Answers whether this one is next in every respect, and then counts it as taken.
    bool take_at_once(std::uint32_t sequence) noexcept {
        if (sequence != taken_ || taken_ != accepted_) return false;
        ++taken_, ++accepted_;
        return true;
    }

    /// Holds a packet. False: a sequence that cannot be, or that is held already.
    bool hold(std::uint32_t sequence, Held packet);

    /// Accepts the next packet if it is here: a small one is complete by that, a large one when its bytes have come and
    /// the caller says so in what this answers. Null: none.
    Held* accept() noexcept;
    /// Which one accept() answers next.
    std::uint32_t accepted() const noexcept { return accepted_; }

    Held& held(std::uint32_t sequence) noexcept { return ring_[sequence % window_packets]; }

    /// The next packet to be taken, if it is complete. Null: none.
    Held* complete() noexcept {
        if (taken_ == accepted_ || held(taken_).state != Held::State::complete) return nullptr;
        return &held(taken_);
    }
    /// That one is taken, and forgotten.
    void take() noexcept {
        held(taken_) = {};
        ++taken_;
    }

private:
    std::uint32_t taken_ = 0;
    std::uint32_t accepted_ = 0; // never before taken_
    std::unique_ptr<Held[]> ring_; // by sequence; made when the first is held
};

} // namespace kumi::device::mpi
