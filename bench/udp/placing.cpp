#include "udp/placing.hpp"

#include "contestant/measure.hpp"
#include "contestant/processes.hpp"
#include "contestant/work.hpp"
#include "udp/bursts.hpp"

#include <array>
#include <cstring>
#include <ctime>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <vector>

namespace kumi::bench {
namespace {

constexpr std::size_t head_bytes = reliable::piece_head_bytes;
constexpr std::size_t datagram_bytes = burst_of_pieces.datagram_bytes;
constexpr std::size_t piece_bytes = datagram_bytes - head_bytes;
constexpr std::size_t burst_bytes = burst_of_pieces.bytes;
/// Messages of one burst each, in turn: about as much as Kumi has under way.
constexpr std::size_t messages = 8;

/// Where pieces come in and where they belong.
class Places {
public:
    Places() : batches_(messages * burst_bytes), messages_(messages * pieces_of_burst * piece_bytes) {}

    std::size_t receive(int socket) { return to_size(::recv(socket, batch(), burst_bytes, 0)); }

    std::size_t receive_and_copy(int socket) {
        const std::size_t bytes = receive(socket);
        for (std::size_t at = 0, i = 0; at + datagram_bytes <= bytes; at += datagram_bytes, ++i)
            std::memcpy(place_of(i), batch() + at + head_bytes, piece_bytes);
        return bytes;
    }

    std::size_t receive_scattered(int socket) {
        std::array<iovec, 2 * pieces_of_burst> parts;
        for (std::size_t i = 0; i < pieces_of_burst; ++i) {
            parts[2 * i] = {heads_[i].data(), head_bytes};
            parts[2 * i + 1] = {place_of(i), piece_bytes};
        }
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = parts.size();
        return to_size(::recvmsg(socket, &message, 0));
    }

    void next_message() noexcept { message_ = (message_ + 1) % messages; }

private:
    static std::size_t to_size(ssize_t got) noexcept { return got < 0 ? 0 : static_cast<std::size_t>(got); }
    std::byte* batch() noexcept { return batches_.data() + message_ * burst_bytes; }
    std::byte* place_of(std::size_t piece) noexcept {
        return messages_.data() + (message_ * pieces_of_burst + piece) * piece_bytes;
    }

    std::vector<std::byte> batches_, messages_;
    std::array<std::array<std::byte, head_bytes>, pieces_of_burst> heads_;
    std::size_t message_ = 0;
};

double own_processor_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace

int measure_placing(const Task& task, const SocketPair& sockets) {
    const auto take = [&] {
        const int socket = sockets[1].get(), on = 1;
        const timeval longest{0, 20'000};
        ::setsockopt(socket, SOL_UDP, UDP_GRO, &on, sizeof on);
        ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
        Places places;
        std::uint64_t arrived = 0, told = 0;
        const auto take_until = [&](auto deadline) {
            while (MeasuringClock::now() < deadline) {
                arrived += task.who == "kumi"        ? places.receive_and_copy(socket)
                           : task.who == "scattered" ? places.receive_scattered(socket)
                                                     : places.receive(socket);
                places.next_message();
                tell_sender(socket, arrived, told);
            }
        };
        const double each = growth(arrived, take_until, window, own_processor_seconds).metered_each;
        report(task.row().c_str(), each * 1e12 / burst_of_pieces.content());
        return 0;
    };
    const auto give = [&] {
        send_bursts(sockets[0].get(), burst_of_pieces);
        return 1; // not reached
    };
    return run_parts({{take, 1}, {give, 0}});
}

} // namespace kumi::bench
