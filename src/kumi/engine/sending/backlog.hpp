#pragma once

// How much waits on this node to be sent, to all nodes together, and what follows from that: which requests to handlers
// are held back, and the pressure of a request that has to wait. Pure. outbox.hpp has the reason for pressure.

#include "kumi/engine/wire.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kumi::engine {

class Backlog {
public:
    static constexpr std::size_t bytes_usual = std::size_t{16} << 20;

    /// While more than `bytes_max` wait, requests are held back.
    explicit Backlog(std::size_t bytes_max = bytes_usual) noexcept : bytes_max_(bytes_max) {}

    void add(std::size_t bytes) noexcept {
        bytes_ += bytes;
        set_limit();
    }
    void remove(std::size_t bytes) noexcept {
        bytes_ -= bytes;
        set_limit();
    }
    std::size_t bytes() const noexcept { return bytes_; }

    /// So much waits that requests of that pressure are to be held back. Those of pressure_max never are.
    bool is_full(std::uint32_t pressure = 0) const noexcept {
        return bytes_ > (pressure + 1) * bytes_max_ && pressure < pressure_max;
    }
    /// The pressure of a request that waits, if it came last and is counted.
    std::uint32_t pressure() const noexcept {
        const std::size_t steps = bytes_max_ == 0 ? pressure_max : bytes_ / bytes_max_;
        return static_cast<std::uint32_t>(std::min<std::size_t>(steps, pressure_max));
    }
    /// Requests to handlers that threads of the program may have under way to a node: none while much waits.
    std::uint64_t requests_limit() const noexcept { return limit_; }

private:
    void set_limit() noexcept { limit_ = is_full() ? 0 : requests_max; }

    std::size_t bytes_max_;
    std::size_t bytes_ = 0;
    std::uint64_t limit_ = requests_max; // kept, because every send looks at it
};

} // namespace kumi::engine
