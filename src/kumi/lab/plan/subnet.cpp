#include "kumi/lab/plan/subnet.hpp"

#include <algorithm>

namespace kumi::lab {
namespace {

constexpr unsigned ipv4_bits_min = 8;
constexpr unsigned ipv6_bits_min = 16;

IpAddress one_less(IpAddress address) {
    for (unsigned i = address.size; i-- > 0;)
        if (address.bytes[i]-- != 0) break; // a zero borrows from the byte before
    return address;
}

/// Every one of them is in it, none is the address of the subnet or of all its hosts, and one more fits.
bool fits(const Subnet& subnet, const std::vector<IpAddress>& members) {
    const IpAddress all_hosts = base::with_last_bits(subnet.base, subnet.bits, true);
    for (const IpAddress& member : members)
        if (!subnet.holds(member) || member == subnet.base || (member.size == 4 && member == all_hosts)) return false;
    const unsigned host_bits = subnet.base.size * 8 - subnet.bits;
    return host_bits >= 32 || members.size() + 3 <= (std::uint64_t{1} << host_bits);
}

} // namespace

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
        const Subnet subnet{base::with_last_bits(first, bits, false), bits};
        if (fits(subnet, members)) return subnet;
    }
    return error("{} to {} are in no common subnet; give its hosts addresses that are closer together",
                 sorted.front().text(), sorted.back().text());
}

IpAddress highest_free(const Subnet& subnet, const std::vector<IpAddress>& members) {
    const unsigned bits = subnet.base.size == 4 ? subnet.bits : 112;
    IpAddress candidate = one_less(base::with_last_bits(subnet.base, bits, true));
    while (std::find(members.begin(), members.end(), candidate) != members.end()) candidate = one_less(candidate);
    return candidate;
}

} // namespace kumi::lab
