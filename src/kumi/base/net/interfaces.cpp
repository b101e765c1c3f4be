#include "kumi/base/net/interfaces.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>

namespace kumi::base {
namespace {

/// Of an IPv4 or IPv6 socket address or mask; none of other families.
std::optional<IpAddress> address_in(const sockaddr* from) noexcept {
    IpAddress address;
    if (from == nullptr) return std::nullopt;
    if (from->sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, from, sizeof v4);
        std::memcpy(address.bytes.data(), &v4.sin_addr, 4);
        return address;
    }
    if (from->sa_family != AF_INET6) return std::nullopt;
    sockaddr_in6 v6{};
    std::memcpy(&v6, from, sizeof v6);
    address.size = 16;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
    return address;
}

unsigned bits_in(const IpAddress& mask) noexcept {
    int bits = 0;
    for (unsigned i = 0; i < mask.size; ++i) bits += std::popcount(mask.bytes[i]);
    return static_cast<unsigned>(bits);
}

/// What the system would send from to an address that is nobody's, if it has a way there. Nothing is sent.
std::optional<IpAddress> source_towards(const char* nobody) noexcept {
    const IpAddress to = *IpAddress::parse(nobody);
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    v4.sin_family = AF_INET;
    v6.sin6_family = AF_INET6;
    v4.sin_port = v6.sin6_port = htons(9);
    std::memcpy(&v4.sin_addr, to.bytes.data(), 4);
    std::memcpy(&v6.sin6_addr, to.bytes.data(), 16);
    const bool is_v4 = to.size == 4;
    const auto* target = is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
    const Descriptor socket(::socket(target->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || ::connect(socket.get(), target, is_v4 ? sizeof v4 : sizeof v6) != 0) return std::nullopt;
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return std::nullopt;
    return address_in(reinterpret_cast<const sockaddr*>(&own));
}

} // namespace

std::string Interface::text() const { return fmt::format("{}/{}", address.text(), bits); }

bool is_for_others(const IpAddress& address) noexcept {
    const auto& byte = address.bytes;
    if (address.size == 4) return byte[0] != 0 && byte[0] != 127 && !(byte[0] == 169 && byte[1] == 254);
    const bool is_global = (byte[0] & 0xe0) == 0x20; // 2000::/3
    const bool is_local_unique = (byte[0] & 0xfe) == 0xfc; // fc00::/7
    return is_global || is_local_unique;
}

Result<std::vector<Interface>> running_interfaces() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0)
        return system_error(errno, "listing the network interfaces of this host (getifaddrs)");
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
    std::vector<Interface> found;
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        const auto address = address_in(entry->ifa_addr);
        const auto mask = address_in(entry->ifa_netmask);
        if ((entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_RUNNING) == 0) continue;
        if (address && mask && is_for_others(*address)) found.push_back({entry->ifa_name, *address, bits_in(*mask)});
    }
    // Of blocks that are reserved for documents: seldom a subnet of anybody's.
    for (const char* const nobody : {"192.0.2.1", "2001:db8::1"})
        if (const auto source = source_towards(nobody))
            for (Interface& interface : found)
                interface.leads_out = interface.leads_out || interface.address == *source;
    return found;
}

} // namespace kumi::base
