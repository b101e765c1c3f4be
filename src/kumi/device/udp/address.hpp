#pragma once

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>

namespace kumi::device::udp {

/// Address of a socket: an IPv4 or IPv6 address and a port.
class Address {
public:
    Address() = default;
    Address(const sockaddr* from, socklen_t bytes) noexcept;

    /// Parses "10.0.0.1", "fd00::1" or "fe80::1%eth0". Names are refused, so that no call waits for a name server.
    static Result<Address> parse(std::string_view text, std::uint16_t port);

    /// The form in which addresses are sent to other nodes. from_wire() returns false if it is not valid.
    struct Wire {
        std::uint16_t family; // 4 or 6
        std::uint16_t port;
        std::uint32_t scope;
        std::uint8_t bytes[16];
    };
    Wire wire() const noexcept;
    static bool from_wire(const Wire& wire, Address& address) noexcept;

    int family() const noexcept { return storage_.ss_family; }
    std::uint16_t port() const noexcept;
    Address with_port(std::uint16_t port) const noexcept;
    bool is_any() const noexcept;
    bool is_loopback() const noexcept;
    const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
    socklen_t bytes() const noexcept;
    /// "10.0.0.1:7000" or "[fd00::1]:7000"; host_text() without the port.
    std::string text() const;
    std::string host_text() const;

    friend bool operator==(const Address& a, const Address& b) noexcept;

private:
    sockaddr_storage storage_{};
};
static_assert(sizeof(Address::Wire) == 24);

/// True if an interface of this host has that address, is up, and has a carrier.
bool is_up(const Address& address) noexcept;

} // namespace kumi::device::udp
