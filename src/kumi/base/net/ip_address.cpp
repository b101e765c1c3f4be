#include "kumi/base/net/ip_address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>

namespace kumi::base {
namespace {

void set_bit(IpAddress& address, unsigned bit, bool value) noexcept {
    const auto mask = static_cast<std::uint8_t>(0x80 >> bit % 8);
    auto& byte = address.bytes[bit / 8];
    byte = static_cast<std::uint8_t>(value ? byte | mask : byte & ~mask);
}

} // namespace

std::optional<IpAddress> IpAddress::parse(const std::string& text) {
    IpAddress address;
    if (::inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) return address;
    address.size = 16;
    if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
    return std::nullopt;
}

std::string IpAddress::text() const {
    char buffer[INET6_ADDRSTRLEN];
    return ::inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes.data(), buffer, sizeof buffer);
}

bool IpAddress::is_of_one_host() const noexcept {
    const auto is_all = [this](std::uint8_t value) {
        return std::count(bytes.begin(), bytes.begin() + size, value) == size;
    };
    if (size == 4) return bytes[0] != 0 && bytes[0] >> 4 != 14 && !is_all(0xFF);
    return !is_all(0) && bytes[0] != 0xFF;
}

IpAddress with_last_bits(IpAddress address, unsigned bits, bool value) noexcept {
    for (unsigned bit = bits; bit < address.size * 8; ++bit) set_bit(address, bit, value);
    return address;
}

bool Subnet::holds(const IpAddress& address) const noexcept {
    return address.size == base.size && with_last_bits(address, bits, false) == base;
}

bool Subnet::overlaps(const Subnet& other) const noexcept {
    return bits <= other.bits ? holds(other.base) : other.holds(base);
}

std::string Subnet::text() const { return fmt::format("{}/{}", base.text(), bits); }

} // namespace kumi::base
