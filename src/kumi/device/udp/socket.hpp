#pragma once

// A UDP socket with what Linux offers for speed: bursts that the system cuts into packets (GSO) and puts together
// again (GRO), several datagrams per call, errors of the path as a queue.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"
#include "kumi/device/udp/address.hpp"
#include "kumi/device/udp/options.hpp"

#include <array>
#include <memory>
#include <span>
#include <sys/socket.h>
#include <sys/uio.h>

namespace kumi::device::udp {

/// What came in one go: one datagram, or several of one sender one behind the other. Their own headers tell where each
/// ends: that is cheaper than asking the system, and works where the system gets it wrong. May be changed, to decrypt
/// in place.
using Batch = MutableBytes;

/// One datagram to send, in two pieces.
struct Datagram {
    Bytes head;
    Bytes body;
};

/// The path says no about something that was sent earlier.
struct PathError {
    Address destination;
    int error_number;
    std::uint32_t packet_bytes_max; // with EMSGSIZE: what the path carries
};

class Socket {
public:
    enum class Sent : std::uint8_t { all, blocked, dropped, too_large, burst_refused, unreachable };

    static constexpr std::size_t batches_max = 64;
    static constexpr std::size_t datagrams_max = 64;

    /// Binds. What the system refuses to give is a warning if one can live without it.
    static Result<Socket> open(const Address& local, const Options& options);

    int descriptor() const noexcept { return descriptor_.get(); }
    const Address& local() const noexcept { return local_; }
    /// As the system grants it.
    std::size_t receive_buffer_bytes() const noexcept { return receive_buffer_bytes_; }
    bool has_bursts() const noexcept { return has_bursts_; }
    void stop_bursts() noexcept { has_bursts_ = false; }

    /// The largest datagram that the way to `peer` carries without being cut.
    Result<std::uint32_t> path_bytes(const Address& peer) const;

    /// Takes what has come, up to `count` batches; valid until the next call.
    std::span<const Batch> receive(std::size_t count) noexcept;
    /// Sleeps until something comes, and takes it, or until about the deadline: the system's ticks may make it some
    /// milliseconds later. An empty one is only meant to wake.
    std::span<const Batch> receive_by(Instant deadline) noexcept;
    /// Sleeps until something comes, or `or_room` something may be sent, or until the deadline, by a finer clock.
    void wait(Instant deadline, bool or_room) const noexcept;

    /// One datagram, by the plainest call there is. False: it did not leave; send() says why.
    bool send_plain(const Address& to, Bytes datagram) noexcept {
        if (::sendto(descriptor_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT, to.data(), to.bytes()) >= 0)
            return true;
        has_errors_ = true; // the answer may be about an earlier packet, and is given only once
        return false;
    }
    /// An empty datagram to itself, which ends a sleep. From any thread.
    void nudge() const noexcept {
        ::sendto(descriptor_.get(), nullptr, 0, MSG_DONTWAIT, local_.data(), local_.bytes());
    }
    /// One datagram.
    Sent send(const Address& to, const Datagram& datagram) noexcept;
    /// Several of one size, the last may be shorter, as one burst.
    Sent send_burst(const Address& to, std::span<const Datagram> datagrams) noexcept;
    /// Several of any size; answers how many were taken in `count`.
    Sent send_each(const Address& to, std::span<const Datagram> datagrams, std::size_t& count) noexcept;

    /// The next error that the path reported.
    bool next_error(PathError& reported) noexcept;
    /// An earlier send or receive noticed that there are some.
    bool has_errors() const noexcept { return has_errors_; }

    /// Datagrams dropped because the receive buffer was full.
    std::uint64_t overruns() const noexcept;
    std::uint64_t unreachables() const noexcept { return unreachables_; }
    std::uint64_t drops() const noexcept { return drops_; }

private:
    struct Buffers;
    struct BuffersDeleter {
        void operator()(Buffers* buffers) const noexcept;
    };

    template <class Call>
    Sent send_by(Call&& call) noexcept;
    Sent send_message(const msghdr& message) noexcept;
    Sent classify(int error_number) noexcept;

    base::Descriptor descriptor_;
    long patience_ms_ = 0; // how long a receive sleeps at most, as the system knows it; 0: for ever
    Address local_;
    std::size_t receive_buffer_bytes_ = 0;
    bool has_bursts_ = false;
    bool has_errors_ = false;
    std::uint64_t unreachables_ = 0;
    std::uint64_t drops_ = 0;
    std::unique_ptr<Buffers, BuffersDeleter> buffers_;
};

} // namespace kumi::device::udp
