#include "kumi/device/udp/socket.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/errqueue.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/time.h>
#include <utility>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace kumi::device::udp {
namespace {

constexpr std::size_t batch_bytes = 65'536;
constexpr std::size_t udp_header_bytes = 8;
/// Smaller datagrams of a burst whose pieces are apart are copied together first: the system takes one large piece so
/// much faster than many small ones that the copy pays.
constexpr std::size_t gathered_bytes_min = 4096;

bool set(int descriptor, int level, int name, int value) noexcept {
    return ::setsockopt(descriptor, level, name, &value, sizeof value) == 0;
}

int get(int descriptor, int level, int name) noexcept {
    int value = 0;
    socklen_t bytes = sizeof value;
    return ::getsockopt(descriptor, level, name, &value, &bytes) == 0 ? value : 0;
}

/// Asks for a buffer, and returns the size granted. The system reports twice of that, for its own bookkeeping.
std::size_t size_buffer(int descriptor, int name, int force_name, std::size_t wanted, const char* sysctl) {
    const int bytes = static_cast<int>(std::min<std::size_t>(wanted, 1 << 30));
    if (!set(descriptor, SOL_SOCKET, force_name, bytes)) set(descriptor, SOL_SOCKET, name, bytes);
    const auto granted = static_cast<std::size_t>(get(descriptor, SOL_SOCKET, name)) / 2;
    if (granted < wanted)
        base::log_warning(
            "udp: the system grants a socket buffer of {} instead of {}, so many senders at once have to wait more; "
            "sysctl -w {}={} raises the limit",
            base::readable_bytes(granted), base::readable_bytes(wanted), sysctl, wanted);
    return granted;
}

std::size_t ip_header_bytes(int family) noexcept { return family == AF_INET ? 20 : 40; }

void forbid_fragments(int descriptor, int family) noexcept {
    if (family == AF_INET) set(descriptor, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    else set(descriptor, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
}

} // namespace

struct Socket::Buffers {
    // Not a power of two apart, or else all starts would compete for the same few cache lines.
    alignas(64) std::byte bytes[batches_max][batch_bytes + 1600];
    std::array<mmsghdr, batches_max> headers;
    std::array<iovec, batches_max> pieces;
    std::array<Batch, batches_max> batches;
    alignas(64) std::byte burst[batch_bytes]; // for a burst that is copied together
};

void Socket::BuffersDeleter::operator()(Buffers* buffers) const noexcept { delete buffers; }

Result<Socket> Socket::open(const Address& local, const Options& options) {
    Socket socket;
    const int family = local.family();
    socket.descriptor_.reset(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
    const int descriptor = socket.descriptor_.get();
    if (descriptor < 0) return system_error(errno, "udp: making a socket");
    if (family == AF_INET6) set(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (::bind(descriptor, local.data(), local.bytes()) != 0) {
        const int reason = errno;
        const Error said = system_error(reason, fmt::format("udp: opening {}", local.text()));
        if (reason == EADDRINUSE)
            return error("{}; another program has this port: choose another, or 0 for any", said.text());
        if (reason == EADDRNOTAVAIL) return error("{}; this host has no such address: see `ip address`", said.text());
        return said;
    }
    sockaddr_storage bound{};
    socklen_t bytes = sizeof bound;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &bytes);
    socket.local_ = Address(reinterpret_cast<const sockaddr*>(&bound), bytes);

    socket.receive_buffer_bytes_ =
        size_buffer(descriptor, SO_RCVBUF, SO_RCVBUFFORCE, options.buffer_bytes, "net.core.rmem_max");
    size_buffer(descriptor, SO_SNDBUF, SO_SNDBUFFORCE, std::min(options.buffer_bytes, send_buffer_bytes),
                "net.core.wmem_max");
    // Ask for error reports of the path, and forbid IP fragmentation.
    family == AF_INET ? set(descriptor, IPPROTO_IP, IP_RECVERR, 1) : set(descriptor, IPPROTO_IPV6, IPV6_RECVERR, 1);
    forbid_fragments(descriptor, family);
    if (options.offload) {
        socket.has_bursts_ = set(descriptor, IPPROTO_UDP, UDP_SEGMENT, 0);
        const bool joins = set(descriptor, IPPROTO_UDP, UDP_GRO, 1);
        if (!socket.has_bursts_ || !joins)
            base::log_warning("udp: this system cannot {} bursts (UDP_{}), so large messages cost more processor time",
                              socket.has_bursts_ ? "receive" : "send", socket.has_bursts_ ? "GRO" : "SEGMENT");
    }

    socket.buffers_.reset(new Buffers);
    Buffers& buffers = *socket.buffers_;
    for (std::size_t i = 0; i < batches_max; ++i) {
        buffers.pieces[i] = {buffers.bytes[i], batch_bytes};
        buffers.headers[i] = {};
        buffers.headers[i].msg_hdr.msg_iov = &buffers.pieces[i];
        buffers.headers[i].msg_hdr.msg_iovlen = 1;
    }
    return socket;
}

Result<std::uint32_t> Socket::path_bytes(const Address& peer) const {
    const base::Descriptor probe(::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
    const Address from = local_.with_port(0);
    if (!probe || ::bind(probe.get(), from.data(), from.bytes()) != 0 ||
        ::connect(probe.get(), peer.data(), peer.bytes()) != 0)
        return system_error(errno,
                            fmt::format("udp: finding the route from {} to {}", local_.host_text(), peer.host_text()));
    const int mtu =
        peer.family() == AF_INET ? get(probe.get(), IPPROTO_IP, IP_MTU) : get(probe.get(), IPPROTO_IPV6, IPV6_MTU);
    const std::size_t headers = ip_header_bytes(peer.family()) + udp_header_bytes;
    const std::size_t path = std::max<std::size_t>(static_cast<std::size_t>(mtu), 576);
    return static_cast<std::uint32_t>(std::min<std::size_t>(path, 65'535) - headers);
}

// ---- receiving

std::span<const Batch> Socket::receive(std::size_t count) noexcept {
    Buffers& buffers = *buffers_;
    ssize_t got = 0;
    if (count == 1) { // the cheapest call: every answer waits for it
        got = ::recv(descriptor_.get(), buffers.bytes[0], batch_bytes, MSG_DONTWAIT);
        if (got >= 0) {
            buffers.batches[0] = MutableBytes(buffers.bytes[0], static_cast<std::size_t>(got));
            return {buffers.batches.data(), 1};
        }
    } else {
        got =
            ::recvmmsg(descriptor_.get(), buffers.headers.data(), static_cast<unsigned>(count), MSG_DONTWAIT, nullptr);
    }
    if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) has_errors_ = true;
        return {};
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i)
        buffers.batches[i] = MutableBytes(buffers.bytes[i], buffers.headers[i].msg_len);
    return {buffers.batches.data(), static_cast<std::size_t>(got)};
}

std::span<const Batch> Socket::receive_by(Instant deadline) noexcept {
    // One call sleeps and receives, so what wakes is received at once. Its time limit is set by another call, so there
    // are only a few limits, and a sleep may end early.
    constexpr long limits_ms[] = {1, 10, 100, 1000};
    long limit_ms = 0;
    if (deadline != never) {
        const int left = milliseconds_until(deadline);
        if (left == 0) return {};
        limit_ms = limits_ms[0];
        for (const long candidate : limits_ms)
            if (candidate <= left) limit_ms = candidate;
    }
    if (limit_ms != std::exchange(receive_timeout_ms_, limit_ms)) {
        const timeval limit{limit_ms / 1000, limit_ms % 1000 * 1000};
        ::setsockopt(descriptor_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    Buffers& buffers = *buffers_;
    const ssize_t got = ::recv(descriptor_.get(), buffers.bytes[0], batch_bytes, 0);
    if (got < 0 && errno != EAGAIN && errno != EINTR) has_errors_ = true;
    if (got <= 0) return {};
    buffers.batches[0] = MutableBytes(buffers.bytes[0], static_cast<std::size_t>(got));
    return {buffers.batches.data(), 1};
}

void Socket::wait(Instant deadline, bool or_room) const noexcept {
    const timespec limit = time_until(deadline);
    pollfd watched{descriptor_.get(), static_cast<short>(or_room ? POLLIN | POLLOUT : POLLIN), 0};
    ::ppoll(&watched, 1, deadline == never ? nullptr : &limit, nullptr);
}

// ---- sending

Socket::Sent Socket::classify(int error_number) noexcept {
    switch (error_number) {
    case EAGAIN:
    case EINTR: return Sent::blocked;
    // The interface's queue was full, or the interface dropped the packet. Nothing tells when that is over, so the
    // packet counts as lost.
    case ENOBUFS: ++drops_; return Sent::dropped;
    // The system reports it once more in the error queue, and wakes sleepers until that is read.
    case EMSGSIZE: has_errors_ = true; return Sent::too_large;
    case EIO:
    case EINVAL:
    case ENOPROTOOPT:
    case EOPNOTSUPP: return Sent::burst_refused;
    default: ++unreachables_; return Sent::unreachable; // no route or interface: counts as lost
    }
}

/// Makes the call until it returns 0 or more. An error of an earlier packet, perhaps to another peer, may be returned
/// in its place: then it is noted, and the call is made again.
template <class Call>
Socket::Sent Socket::send_by(Call&& call) noexcept {
    for (int tries = 0; tries < 3; ++tries) {
        if (call() >= 0) return Sent::all;
        if (errno != ECONNREFUSED && errno != EHOSTUNREACH) return classify(errno);
        has_errors_ = true;
    }
    return Sent::unreachable;
}

Socket::Sent Socket::send_message(const msghdr& message) noexcept {
    return send_by([&] { return ::sendmsg(descriptor_.get(), &message, MSG_DONTWAIT); });
}

Socket::Sent Socket::send(const Address& to, const Datagram& datagram) noexcept {
    if (datagram.body.empty() && send_plain(to, datagram.head)) return Sent::all;
    iovec pieces[2] = {{const_cast<std::byte*>(datagram.head.data()), datagram.head.size()},
                       {const_cast<std::byte*>(datagram.body.data()), datagram.body.size()}};
    msghdr message{};
    message.msg_name = const_cast<sockaddr*>(to.data());
    message.msg_namelen = to.bytes();
    message.msg_iov = pieces;
    message.msg_iovlen = datagram.body.empty() ? 1 : 2;
    return send_message(message);
}

Socket::Sent Socket::send_burst(const Address& to, std::span<const Datagram> datagrams) noexcept {
    iovec pieces[2 * datagrams_max];
    std::size_t count = 0;
    const std::size_t datagram_bytes = datagrams[0].head.size() + datagrams[0].body.size();
    std::byte* gathered = buffers_->burst;
    const auto add = [&](Bytes piece) {
        iovec* const last = count == 0 ? nullptr : &pieces[count - 1];
        std::byte* const at = const_cast<std::byte*>(piece.data());
        if (last != nullptr && static_cast<std::byte*>(last->iov_base) + last->iov_len == at)
            last->iov_len += piece.size();
        else pieces[count++] = {at, piece.size()};
    };
    const auto gather = [&](Bytes piece) {
        std::memcpy(gathered, piece.data(), piece.size());
        add(Bytes(std::exchange(gathered, gathered + piece.size()), piece.size()));
    };
    for (const Datagram& datagram : datagrams) {
        if (datagram.body.empty()) add(datagram.head);
        else if (datagram_bytes < gathered_bytes_min) gather(datagram.head), gather(datagram.body);
        else add(datagram.head), add(datagram.body);
    }
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(std::uint16_t))] = {};
    msghdr message{};
    message.msg_name = const_cast<sockaddr*>(to.data());
    message.msg_namelen = to.bytes();
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* segment = CMSG_FIRSTHDR(&message);
    segment->cmsg_level = IPPROTO_UDP;
    segment->cmsg_type = UDP_SEGMENT;
    segment->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto bytes = static_cast<std::uint16_t>(datagram_bytes);
    std::memcpy(CMSG_DATA(segment), &bytes, sizeof bytes);
    return send_message(message);
}

Socket::Sent Socket::send_each(const Address& to, std::span<const Datagram> datagrams, std::size_t& count) noexcept {
    std::array<mmsghdr, datagrams_max> headers;
    std::array<iovec, 2 * datagrams_max> pieces;
    for (std::size_t i = 0; i < datagrams.size(); ++i) {
        pieces[2 * i] = {const_cast<std::byte*>(datagrams[i].head.data()), datagrams[i].head.size()};
        pieces[2 * i + 1] = {const_cast<std::byte*>(datagrams[i].body.data()), datagrams[i].body.size()};
        headers[i] = {};
        headers[i].msg_hdr.msg_name = const_cast<sockaddr*>(to.data());
        headers[i].msg_hdr.msg_namelen = to.bytes();
        headers[i].msg_hdr.msg_iov = &pieces[2 * i];
        headers[i].msg_hdr.msg_iovlen = datagrams[i].body.empty() ? 1 : 2;
    }
    return send_by([&] {
        const int sent =
            ::sendmmsg(descriptor_.get(), headers.data(), static_cast<unsigned>(datagrams.size()), MSG_DONTWAIT);
        count = sent > 0 ? static_cast<std::size_t>(sent) : 0;
        return sent;
    });
}

// ---- errors of the path

bool Socket::next_error(PathError& reported) noexcept {
    char content[64];
    iovec piece{content, sizeof content};
    alignas(cmsghdr) char control[512];
    sockaddr_storage destination{};
    msghdr message{};
    message.msg_name = &destination;
    message.msg_namelen = sizeof destination;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(descriptor_.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return has_errors_ = false;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
        const bool is_error = (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR) ||
                              (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR);
        if (!is_error) continue;
        sock_extended_err said;
        std::memcpy(&said, CMSG_DATA(part), sizeof said);
        const Address where(reinterpret_cast<const sockaddr*>(&destination), message.msg_namelen);
        const std::size_t headers = ip_header_bytes(where.family()) + udp_header_bytes;
        reported = {where, static_cast<int>(said.ee_errno),
                    said.ee_info > headers ? static_cast<std::uint32_t>(said.ee_info - headers) : 0};
        return true;
    }
    reported = {};
    return true;
}

std::uint64_t Socket::overruns() const noexcept {
    std::uint32_t info[SK_MEMINFO_VARS] = {};
    socklen_t bytes = sizeof info;
    if (::getsockopt(descriptor_.get(), SOL_SOCKET, SO_MEMINFO, info, &bytes) != 0) return 0;
    return info[SK_MEMINFO_DROPS];
}

} // namespace kumi::device::udp
