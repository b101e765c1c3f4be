#include "kumi/boot/foreign/handover.hpp"

#include "kumi/boot/wire.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace kumi::boot {
namespace {

constexpr std::size_t greeting_bytes_max = 256;

struct Address {
    explicit Address(const ListenerName& name) {
        address.sun_family = AF_UNIX;
        constexpr std::string_view prefix = "kumi-"; // after a zero byte, which means an abstract name
        std::copy(prefix.begin(), prefix.end(), address.sun_path + 1);
        std::memcpy(address.sun_path + 1 + prefix.size(), name.data(), name.size());
        bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + prefix.size() + name.size());
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

    sockaddr_un address{};
    socklen_t bytes = 0;
};

base::Descriptor make_socket() {
    return base::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool is_ours(int socket) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == ::geteuid();
}

} // namespace

Result<Listener> open_listener() {
    Listener listener{make_socket(), {}};
    if (!listener.socket) return system_error(errno, "opening a Unix socket for the nodes of this host");
    if (::getrandom(listener.name.data(), listener.name.size(), 0) != static_cast<ssize_t>(listener.name.size()))
        return system_error(errno, "naming a Unix socket (getrandom)");
    const Address address(listener.name);
    if (::bind(listener.socket.get(), address.get(), address.bytes) != 0 ||
        ::listen(listener.socket.get(), INT_MAX) != 0)
        return system_error(errno, "opening a Unix socket for the nodes of this host");
    return listener;
}

Result<base::Descriptor> connect_to(const ListenerName& name, Bytes greeting) {
    auto socket = make_socket();
    if (!socket) return system_error(errno, "opening a Unix socket for the nodes of this host");
    const Address address(name);
    if (::connect(socket.get(), address.get(), address.bytes) != 0) {
        if (errno == EAGAIN)
            return error("more nodes on this host than may wait at a socket: raise net.core.somaxconn");
        return system_error(errno, "meeting the nodes of this host");
    }
    if (!is_ours(socket.get())) return error("meeting the nodes of this host: a process of another user answers");
    if (send_some(socket.get(), greeting) != static_cast<std::ptrdiff_t>(greeting.size()))
        return system_error(errno, "meeting the nodes of this host");
    return socket;
}

std::optional<Connection> next_connection(const Listener& listener) {
    while (true) {
        Connection connection;
        connection.socket.reset(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!connection.socket && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (!connection.socket) return std::nullopt;
        if (!is_ours(connection.socket.get())) return connection;
        std::vector<std::byte>& greeting = connection.greeting;
        greeting.resize(greeting_bytes_max);
        const ssize_t got = ::recv(connection.socket.get(), greeting.data(), greeting.size(), MSG_DONTWAIT);
        greeting.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        return connection;
    }
}

Result<void> send_descriptor(int socket, int descriptor, const std::string& whom) {
    constexpr std::byte here{1}; // a descriptor is sent along with at least one byte
    if (send_some(socket, bytes_of(here), descriptor) != 1)
        return error("handing over shared memory to {}: that node is gone; its own messages may say why", whom);
    return {};
}

Result<base::Descriptor> receive_descriptor(int socket, Instant deadline, const std::string& who) {
    while (true) {
        pollfd readable{socket, POLLIN, 0};
        const int ready = ::poll(&readable, 1, milliseconds_until(deadline));
        if (ready == 0) return error("{} did not hand over its shared memory in time: is it stopped?", who);
        if (ready < 0 && errno != EINTR) return system_error(errno, "waiting for " + who);
        if (ready > 0) break;
    }
    std::byte here{};
    iovec piece{&here, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
        return error("{}, which shares its memory with this node, is gone", who);
    auto came = base::descriptors_in(message);
    if (came.size() != 1) return error("{} handed over no descriptor: too many open files? see ulimit -n", who);
    return std::move(came.front());
}

} // namespace kumi::boot
