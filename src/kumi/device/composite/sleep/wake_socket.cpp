#include "kumi/device/composite/sleep/wake_socket.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace kumi::device::composite {
namespace {

constexpr socklen_t path_offset = offsetof(sockaddr_un, sun_path);

} // namespace

Result<WakeSocket> WakeSocket::open() {
    WakeSocket made;
    made.descriptor_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // An address without a name: the system makes one up, in the abstract namespace.
    if (!made.descriptor_ || ::bind(made.descriptor_.get(), reinterpret_cast<sockaddr*>(&address), path_offset) != 0)
        return system_error(errno, "making a socket to be woken by");
    socklen_t bytes = sizeof address;
    if (::getsockname(made.descriptor_.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
        return system_error(errno, "asking for the name of a socket");
    const std::size_t name_bytes = bytes - path_offset;
    if (name_bytes > made.name_.text.size())
        return error("the system's name for a socket is longer than expected: {} bytes", name_bytes);
    std::memcpy(made.name_.text.data(), address.sun_path, name_bytes);
    made.name_.bytes = static_cast<std::uint8_t>(name_bytes);
    return made;
}

void WakeSocket::wake(const Name& name) const noexcept {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.text.data(), name.bytes);
    const char call = 0;
    // No room: that sleeper has calls enough, from whatever node, or this socket has called hundreds that have not
    // run since. They will.
    constexpr int tries_max = 100;
    for (int i = 0; i < tries_max; ++i) {
        const ssize_t sent = ::sendto(descriptor_.get(), &call, sizeof call, MSG_DONTWAIT | MSG_NOSIGNAL,
                                      reinterpret_cast<const sockaddr*>(&address), path_offset + name.bytes);
        if (sent >= 0 || errno != EAGAIN) return; // a socket that is gone sleeps no more
        ::sched_yield();
    }
}

void WakeSocket::drain() const noexcept {
    // No more than that in one go: any process of this host can call, again and again. What is left ends the next
    // sleep.
    constexpr int calls_max = 8;
    char call;
    for (int i = 0; i < calls_max && ::recv(descriptor_.get(), &call, sizeof call, MSG_DONTWAIT) >= 0; ++i) {
    }
}

} // namespace kumi::device::composite
