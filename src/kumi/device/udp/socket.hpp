#pragma once

// A UDP socket that uses what Linux offers for speed: bursts that the system cuts into packets (GSO) and joins again
// (GRO), several datagrams per call, and a queue of errors that the path reported.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/device/udp/address.hpp"
#include "kumi/device/udp/options.hpp"

#include <array>
#include <memory>
#include <span>
#include <sys/socket.h>
#include <sys/uio.h>

namespace kumi::device::udp {

/// What one receive brought: one datagram, or several of one sender one after another. The packets' own headers tell
/// where each ends: that is cheaper than asking the system, and works where the system gets it wrong. The bytes may be
/// changed, to decrypt in place.
using Batch = MutableBytes;

/// One datagram to send, in two pieces.
struct Datagram {
    Bytes head;
    Bytes body;
};

/// The path reported an error about a packet that was sent earlier.
struct PathError {
    Address destination;
    int error_number;
    std::uint32_t packet_bytes_max; // with EMSGSIZE: the largest that the path carries
};

class Socket {
public:
    enum class Sent : std::uint8_t { all, blocked, dropped, too_large, burst_refused, unreachable };

    static constexpr std::size_t batches_max = 64;
    static constexpr std::size_t datagrams_max = 64;

    /// Opens and binds a socket. If the system refuses something that is not essential, there is a warning.
    static Result<Socket> open(const Address& local, const Options& options);

    int descriptor() const noexcept { return descriptor_.get(); }
    const Address& local() const noexcept { return local_; }
    /// The size that the system granted.
    std::size_t receive_buffer_bytes() const noexcept { return receive_buffer_bytes_; }
    bool has_bursts() const noexcept { return has_bursts_; }
    void stop_bursts() noexcept { has_bursts_ = false; }

    /// The largest datagram that the path to `peer` carries without IP fragmentation.
    Result<std::uint32_t> path_bytes(const Address& peer) const;

    /// Receives up to `count` batches without waiting. Valid until the next call.
    std::span<const Batch> receive(std::size_t count) noexcept;
    /// Sleeps until something arrives, and receives it, or until about the deadline: the system's ticks may make it
    /// some milliseconds late. An empty datagram only wakes.
    std::span<const Batch> receive_by(Instant deadline) noexcept;
    /// Sleeps until something arrives, or the deadline, by a finer clock; with `or_room`, also until something may be
    /// sent.
    void wait(Instant deadline, bool or_room) const noexcept;

    /// Sends one datagram by the cheapest system call. False: it was not sent, and send() tells why.
    bool send_plain(const Address& to, Bytes datagram) noexcept {
        if (::sendto(descriptor_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT, to.data(), to.bytes()) >= 0)
            return true;
        has_errors_ = true; // the error may be about an earlier packet, and is reported only once
        return false;
    }
    /// Sends an empty datagram to itself, which ends a sleep. May be called from any thread.
    void nudge() const noexcept {
        ::sendto(descriptor_.get(), nullptr, 0, MSG_DONTWAIT, local_.data(), local_.bytes());
    }
    /// Sends one datagram.
    Sent send(const Address& to, const Datagram& datagram) noexcept;
    /// Sends several datagrams of one size (the last may be shorter) as one burst.
    Sent send_burst(const Address& to, std::span<const Datagram> datagrams) noexcept;
    /// Sends several datagrams of any size. Sets `count` to how many were sent.
    Sent send_each(const Address& to, std::span<const Datagram> datagrams, std::size_t& count) noexcept;

    /// The next error that the path reported; false if there is none.
    bool next_error(PathError& reported) noexcept;
    /// True if an earlier send or receive noticed that there are errors.
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
    long receive_timeout_ms_ = 0; // the system's limit for a receive; 0: none
    Address local_;
    std::size_t receive_buffer_bytes_ = 0;
    bool has_bursts_ = false;
    bool has_errors_ = false;
    std::uint64_t unreachables_ = 0;
    std::uint64_t drops_ = 0;
    std::unique_ptr<Buffers, BuffersDeleter> buffers_;
};

} // namespace kumi::device::udp
