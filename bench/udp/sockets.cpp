#include "udp/sockets.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace kumi::bench {
namespace {

Error refused(const char* call) { return system_error(errno, fmt::format("bare sockets ({})", call)); }

Result<base::Descriptor> socket_on(const Network& network, unsigned side, int type) {
    if (auto done = network.enter(side); !done) return done.error();
    base::Descriptor made(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    if (!made) return refused("socket");
    return made;
}

Result<sockaddr_in> bind_to(const base::Descriptor& socket, const std::string& address) {
    sockaddr_in bound{};
    bound.sin_family = AF_INET;
    ::inet_pton(AF_INET, address.c_str(), &bound.sin_addr);
    socklen_t size = sizeof bound;
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&bound), size) != 0) return refused("bind");
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) return refused("getsockname");
    return bound;
}

Result<void> connect_to(const base::Descriptor& socket, const sockaddr_in& address) {
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return refused("connect");
    return {};
}

Result<void> set(const base::Descriptor& socket, const TcpOptions& options) {
    const int nodelay = options.nodelay ? 1 : 0;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof nodelay);
    const std::string& name = options.congestion;
    if (!name.empty() &&
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) != 0)
        return error("this system has no TCP congestion control called {}", name);
    return {};
}

} // namespace

Result<SocketPair> tcp_pair(const Network& network, const TcpOptions& options) {
    auto listener = socket_on(network, 1, SOCK_STREAM);
    if (!listener) return listener.error();
    if (auto done = set(*listener, options); !done) return done.error();
    const auto address = bind_to(*listener, network.address(1));
    if (!address) return address.error();
    if (::listen(listener->get(), 1) != 0) return refused("listen");
    auto caller = socket_on(network, 0, SOCK_STREAM);
    if (!caller) return caller.error();
    if (auto done = set(*caller, options); !done) return done.error();
    // The system completes the connection before accept() is called.
    if (auto done = connect_to(*caller, *address); !done) return done.error();
    base::Descriptor called(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!called) return refused("accept");
    if (auto done = set(called, options); !done) return done.error();
    return SocketPair{std::move(*caller), std::move(called)};
}

Result<SocketPair> udp_pair(const Network& network) {
    SocketPair pair;
    std::array<sockaddr_in, 2> addresses;
    for (const unsigned side : {0u, 1u}) {
        auto made = socket_on(network, side, SOCK_DGRAM);
        if (!made) return made.error();
        const auto bound = bind_to(*made, network.address(side));
        if (!bound) return bound.error();
        addresses[side] = *bound;
        pair[side] = std::move(*made);
        const int bytes = 4 << 20;
        for (const int buffer : {SO_RCVBUF, SO_SNDBUF})
            ::setsockopt(pair[side].get(), SOL_SOCKET, buffer, &bytes, sizeof bytes);
    }
    for (const unsigned side : {0u, 1u})
        if (auto done = connect_to(pair[side], addresses[1 - side]); !done) return done.error();
    return pair;
}

bool send_all(int socket, Bytes bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return false;
        if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
}

std::size_t receive(int socket, MutableBytes into, std::size_t bytes_min, Waiting waiting) {
    std::size_t have = 0;
    while (have < bytes_min) {
        const ssize_t got =
            ::recv(socket, into.data() + have, into.size() - have, waiting == Waiting::spinning ? MSG_DONTWAIT : 0);
        if (got > 0) have += static_cast<std::size_t>(got);
        else if (got == 0) return 0;
        else if (errno != EAGAIN && errno != EINTR) return 0;
    }
    return have;
}

} // namespace kumi::bench
