#include "kumi/device/udp/address.hpp"

#include <arpa/inet.h>
#include <cstddef>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

namespace kumi::device::udp {
namespace {

template <class To>
To as(const sockaddr_storage& storage) noexcept {
    To to;
    std::memcpy(&to, &storage, sizeof to);
    return to;
}

} // namespace

Address::Address(const sockaddr* from, socklen_t bytes) noexcept {
    if (bytes <= sizeof storage_) std::memcpy(&storage_, from, bytes);
}

Result<Address> Address::parse(std::string_view text, std::uint16_t port) {
    const std::string_view host = text.substr(0, text.find('%'));
    const std::string name(host);
    sockaddr_in v4{};
    if (::inet_pton(AF_INET, name.c_str(), &v4.sin_addr) == 1 && host.size() == text.size()) {
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        return Address(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
    }
    sockaddr_in6 v6{};
    if (::inet_pton(AF_INET6, name.c_str(), &v6.sin6_addr) != 1)
        return error("{}: write a numeric address such as 10.0.0.1 or fd00::1", text);
    if (host.size() != text.size()) {
        const std::string interface(text.substr(host.size() + 1));
        v6.sin6_scope_id = ::if_nametoindex(interface.c_str());
        if (v6.sin6_scope_id == 0) return error("{}: there is no interface {}", text, interface);
    }
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    return Address(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
}

Address::Wire Address::wire() const noexcept {
    Wire wire{};
    wire.port = port();
    if (family() == AF_INET) {
        wire.family = 4;
        const auto v4 = as<sockaddr_in>(storage_);
        std::memcpy(wire.bytes, &v4.sin_addr, 4);
    } else {
        const auto v6 = as<sockaddr_in6>(storage_);
        wire.family = 6;
        wire.scope = v6.sin6_scope_id;
        std::memcpy(wire.bytes, &v6.sin6_addr, 16);
    }
    return wire;
}

bool Address::from_wire(const Wire& wire, Address& address) noexcept {
    if (wire.port == 0) return false;
    if (wire.family == 4) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(wire.port);
        std::memcpy(&v4.sin_addr, wire.bytes, 4);
        address = Address(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
        return true;
    }
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(wire.port);
    v6.sin6_scope_id = wire.scope;
    std::memcpy(&v6.sin6_addr, wire.bytes, 16);
    address = Address(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
    return wire.family == 6;
}

std::uint16_t Address::port() const noexcept {
    return ntohs(family() == AF_INET ? as<sockaddr_in>(storage_).sin_port : as<sockaddr_in6>(storage_).sin6_port);
}

Address Address::with_port(std::uint16_t port) const noexcept {
    Address changed = *this;
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    const std::uint16_t value = htons(port);
    std::memcpy(reinterpret_cast<std::byte*>(&changed.storage_) + offsetof(sockaddr_in, sin_port), &value,
                sizeof value);
    return changed;
}

bool Address::is_any() const noexcept {
    const Wire mine = wire();
    for (const std::uint8_t byte : mine.bytes)
        if (byte != 0) return false;
    return true;
}

bool Address::is_loopback() const noexcept {
    const std::string host = host_text();
    return family() == AF_INET ? host.starts_with("127.") : host == "::1"; // all of 127.0.0.0/8 is this host
}

socklen_t Address::bytes() const noexcept { return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

std::string Address::host_text() const {
    char text[INET6_ADDRSTRLEN] = "?";
    const Wire mine = wire();
    ::inet_ntop(family(), mine.bytes, text, sizeof text);
    return text;
}

std::string Address::text() const {
    return family() == AF_INET ? fmt::format("{}:{}", host_text(), port())
                               : fmt::format("[{}]:{}", host_text(), port());
}

bool operator==(const Address& a, const Address& b) noexcept {
    const Address::Wire first = a.wire(), second = b.wire();
    return first.family == second.family && first.port == second.port &&
           std::memcmp(first.bytes, second.bytes, 16) == 0;
}

bool is_up(const Address& address) noexcept {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return true; // not known
    bool found = false;
    for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != address.family()) continue;
        const socklen_t bytes = one->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        const bool is_same = Address(one->ifa_addr, bytes).with_port(address.port()) == address;
        found = is_same && (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0;
    }
    ::freeifaddrs(all);
    return found || address.is_loopback();
}

} // namespace kumi::device::udp
