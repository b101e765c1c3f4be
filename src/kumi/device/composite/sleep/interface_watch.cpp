#include "kumi/device/composite/sleep/interface_watch.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace kumi::device::composite {

Result<InterfaceWatch> InterfaceWatch::open() {
    base::Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    sockaddr_nl all{};
    all.nl_family = AF_NETLINK;
    all.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&all), sizeof all) != 0)
        return error("composite: cannot watch the network interfaces: {}", std::strerror(errno));
    return InterfaceWatch(std::move(socket));
}

bool InterfaceWatch::has_changed() noexcept {
    constexpr int reads_max = 64; // more will be there next time
    std::array<std::byte, 8192> buffer;
    bool changed = false;
    for (int i = 0; i < reads_max; ++i) {
        const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && errno != ENOBUFS) break; // ENOBUFS: there was more than could be kept
        changed = true;
    }
    return changed;
}

} // namespace kumi::device::composite
