#include "udp/bare.hpp"

#include "contestant/measure.hpp"
#include "contestant/mix.hpp"
#include "contestant/processes.hpp"
#include "contestant/processor_time.hpp"
#include "contestant/work.hpp"
#include "udp/bursts.hpp"
#include "udp/placing.hpp"
#include "udp/sockets.hpp"

#include <algorithm>
#include <cstring>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <vector>

namespace kumi::bench {
namespace {

using Buffer = std::vector<std::byte>;

Result<SocketPair> pair_for(const Task& task, const Network& network) {
    if (task.who == "limit" || task.who == "udp_connected") return udp_pair(network);
    if (task.who == "tcp_nagle") return tcp_pair(network, {.nodelay = false});
    if (task.who == "tcp_cubic") return tcp_pair(network, {.congestion = "cubic"});
    if (task.who == "tcp_bbr") return tcp_pair(network, {.congestion = "bbr"});
    return tcp_pair(network, {});
}

/// A message to and fro; on a stream, that number of bytes. The limit is a socket that names the destination of each
/// datagram, because a socket for all peers must do so. That costs the system a look at its routes, which udp_connected
/// does not need.
int pingpong(const Task& task, const SocketPair& sockets, Waiting waiting) {
    const bool addressed = task.who == "limit";
    const auto exchange = [&](int socket, bool first) {
        Buffer buffer(pingpong_bytes);
        sockaddr_in peer{};
        socklen_t peer_bytes = sizeof peer;
        ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_bytes);
        return [=]() mutable {
            if (!first && receive(socket, buffer, buffer.size(), waiting) == 0) return false;
            const bool sent = addressed ? ::sendto(socket, buffer.data(), buffer.size(), 0,
                                                   reinterpret_cast<const sockaddr*>(&peer), peer_bytes) > 0
                                        : send_all(socket, buffer);
            if (!sent) return false;
            return !first || receive(socket, buffer, buffer.size(), waiting) != 0;
        };
    };
    const auto ask = [&] {
        auto once = exchange(sockets[0].get(), true);
        bool good = true;
        const double seconds = seconds_per_call([&] { good = good && once(); });
        if (good) report(task.row().c_str(), seconds / 2 * 1e9);
        return good ? 0 : 1;
    };
    const auto answer = [&] {
        auto once = exchange(sockets[1].get(), false);
        while (once()) {
        }
        return 0;
    };
    return run_parts({{ask, 0}, {answer, 1}});
}

/// The bytes that arrive. A receiver spins, as Kumi's does, so that the sender need not wake it; but both ends sleep
/// where their processor time is measured.
Growth stream_growth(const Task& task, const SocketPair& sockets, const ProcessorTime& processor) {
    const Waiting waiting = task.is_processor_time() ? Waiting::blocking : Waiting::spinning;
    Buffer into(256 << 10);
    std::uint64_t bytes = 0;
    return growth(
        bytes,
        [&](auto deadline) {
            while (MeasuringClock::now() < deadline) bytes += receive(sockets[1].get(), into, 1, waiting);
        },
        task.is("loss") ? loss_window : window, [&] { return processor.seconds(); });
}

int stream(const Task& task, const SocketPair& sockets, std::size_t write_bytes, double unit) {
    ProcessorTime processor;
    const auto take = [&] {
        processor.join();
        report_stream(task, stream_growth(task, sockets, processor), unit);
        return 0;
    };
    const auto give = [&] {
        processor.join();
        const Buffer from(write_bytes);
        while (send_all(sockets[0].get(), from)) {
        }
        return 1;
    };
    return run_parts({{take, 1}, {give, 0}});
}

/// Requests and replies with the sizes of the paper's mix. Each message follows its length.
int mix(const Task& task, const SocketPair& sockets) {
    const auto send_next = [](int socket, Mix& sizes, Buffer& buffer) {
        const auto size = static_cast<std::uint32_t>(sizes.next());
        std::memcpy(buffer.data(), &size, sizeof size);
        return send_all(socket, Bytes(buffer).first(sizeof size + size));
    };
    const auto receive_next = [](int socket, Buffer& buffer) {
        std::uint32_t size = 0;
        std::size_t have = receive(socket, buffer, sizeof size, Waiting::spinning);
        if (have == 0) return false;
        std::memcpy(&size, buffer.data(), sizeof size);
        const std::size_t missing = sizeof size + size - have;
        return missing == 0 || receive(socket, MutableBytes(buffer).subspan(have), missing, Waiting::spinning) != 0;
    };
    const auto ask = [&] {
        Mix sizes(1);
        Buffer buffer(mix_bytes_max + sizeof(std::uint32_t));
        bool good = true;
        const double seconds = seconds_per_call([&] {
            good = good && send_next(sockets[0].get(), sizes, buffer) && receive_next(sockets[0].get(), buffer);
        });
        if (good) report(task.row().c_str(), 1e-3 / seconds);
        return good ? 0 : 1;
    };
    const auto answer = [&] {
        Mix sizes(2);
        Buffer buffer(mix_bytes_max + sizeof(std::uint32_t));
        while (receive_next(sockets[1].get(), buffer) && send_next(sockets[1].get(), sizes, buffer)) {
        }
        return 0;
    };
    return run_parts({{ask, 0}, {answer, 1}});
}

/// Bytes of content that arrive per second.
double receive_bursts(int socket, const Burst& burst) {
    const int on = 1;
    ::setsockopt(socket, SOL_UDP, UDP_GRO, &on, sizeof on);
    Buffer into(64 << 10);
    std::uint64_t arrived = 0, told = 0;
    const double rate = per_second(arrived, [&](auto deadline) {
        while (MeasuringClock::now() < deadline) {
            const ssize_t got = ::recv(socket, into.data(), into.size(), MSG_DONTWAIT);
            if (got > 0) arrived += static_cast<std::size_t>(got);
            tell_sender(socket, arrived, told);
        }
    });
    return rate * burst.content();
}

double burst_rate(const SocketPair& sockets, const Burst& burst) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
    const base::Descriptor tell(ends[0]), hear(ends[1]);
    const auto take = [&] {
        const double rate = receive_bursts(sockets[1].get(), burst);
        return ::send(tell.get(), &rate, sizeof rate, 0) == sizeof rate ? 0 : 1;
    };
    const auto give = [&] {
        send_bursts(sockets[0].get(), burst);
        return 1; // not reached
    };
    double rate = 0;
    if (run_parts({{take, 1}, {give, 0}}) != 0) return 0;
    return ::recv(hear.get(), &rate, sizeof rate, MSG_DONTWAIT) == sizeof rate ? rate : 0;
}

/// What the network carries for a bare sender that has everything where it must be and repairs nothing.
int bulk_limit(const Task& task, const Network& network) {
    std::vector<Burst> bursts{burst_of_pieces};
    if (network.is_loopback()) bursts.insert(bursts.end(), {{65507, 65507}, {32000, 64000}});
    double best = 0;
    for (const Burst& burst : bursts) {
        const auto sockets = udp_pair(network);
        if (!sockets) return fail(sockets.error());
        best = std::max(best, burst_rate(*sockets, burst));
    }
    if (best == 0) return fail(error("bare datagrams: none arrived"));
    report(task.row().c_str(), best * 1e-6);
    return 0;
}

} // namespace

int run_bare(const Task& task, const Network& network) {
    if (task.is("bulk") && task.who == "limit") return bulk_limit(task, network);
    const auto sockets = task.is("placing") ? udp_pair(network) : pair_for(task, network);
    if (!sockets) return fail(sockets.error());
    if (task.is("placing")) return measure_placing(task, *sockets);
    if (task.is("latency")) return pingpong(task, *sockets, Waiting::spinning);
    if (task.is("sleeping")) return pingpong(task, *sockets, Waiting::blocking);
    if (task.is("bulk") || task.is("loss")) return stream(task, *sockets, bulk_message_bytes, 1e6);
    if (task.is("rate")) return stream(task, *sockets, small_message_bytes, small_message_bytes * 1e6);
    if (task.is("mix")) return mix(task, *sockets);
    return fail(error("kumi-bench node: {} has no part in {}", task.who, task.what));
}

} // namespace kumi::bench
