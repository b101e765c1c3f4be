#include "kumi/lab/subnet.hpp"

#include <algorithm>
#include <arpa/inet.h>

namespace kumi::lab {
namespace {

constexpr unsigned ipv4_bits_min = 8;
constexpr unsigned ipv6_bits_min = 16;

void set_bit(IpAddress& address, unsigned bit, bool value) {
    const auto mask = static_cast<std::uint8_t>(0x80 >> bit % 8);
    auto& byte = address.bytes[bit / 8];
    byte = static_cast<std::uint8_t>(value ? byte | mask : byte & ~mask);
}

IpAddress with_last_bits(IpAddress address, unsigned bits, bool value) {
    for (unsigned bit = bits; bit < address.size * 8; ++bit) set_bit(address, bit, value);
    return address;
}

IpAddress one_less(IpAddress address) {
    for (unsigned i = address.size; i-- > 0;)
        if (address.bytes[i]-- != 0) break; // a zero borrows from the byte before
    return address;
}

/// Every one of them is in it, none is the address of the subnet or of all its hosts, and one more fits.
bool fits(const Subnet& subnet, const std::vector<IpAddress>& members) {
    const IpAddress all_hosts = with_last_bits(subnet.base, subnet.bits, true);
    for (const IpAddress& member : members)
        if (!subnet.holds(member) || member == subnet.base || (member.size == 4 && member == all_hosts)) return false;
    const unsigned host_bits = subnet.base.size * 8 - subnet.bits;
    return host_bits >= 32 || members.size() + 3 <= (std::uint64_t{1} << host_bits);
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

bool Subnet::holds(const IpAddress& address) const noexcept {
    return address.size == base.size && with_last_bits(address, bits, false) == base;
}

bool Subnet::overlaps(const Subnet& other) const noexcept { return bits <= other.bits ? holds(other.base) : other.holds(base); }

std::string Subnet::text() const { return fmt::format("{}/{}", base.text(), bits); }

Result<Subnet> subnet_of(const std::vector<IpAddress>& members) {
    KUMI_ASSERT(!members.empty());
    const IpAddress& first = members.front();
    for (const IpAddress& member : members)
        if (member.size != first.size)
            return error("{} and {} do not understand each other; use IPv4 or IPv6", first.text(), member.text());
    std::vector<IpAddress> sorted = members;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        return error("the address {} is there twice", twice->text());
    const unsigned least = first.size == 4 ? ipv4_bits_min : ipv6_bits_min;
    for (unsigned bits = first.size == 4 ? 24 : 64; bits >= least; --bits) {
        const Subnet subnet{with_last_bits(first, bits, false), bits};
        if (fits(subnet, members)) return subnet;
    }
    return error("{} to {} are in no common subnet; give its hosts addresses that are closer together",
                 sorted.front().text(), sorted.back().text());
}

IpAddress highest_free(const Subnet& subnet, const std::vector<IpAddress>& members) {
    const unsigned bits = subnet.base.size == 4 ? subnet.bits : 112;
    IpAddress candidate = one_less(with_last_bits(subnet.base, bits, true));
    while (std::find(members.begin(), members.end(), candidate) != members.end()) candidate = one_less(candidate);
    return candidate;
}

} // namespace kumi::lab
