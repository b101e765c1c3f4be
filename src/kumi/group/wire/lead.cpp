#include "kumi/group/wire/lead.hpp"

#include "kumi/group/groups.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <utility>

namespace kumi::group {

bool needs_lead(const Set& set, const std::vector<Before>& before, const Set& members) {
    if (set.size() > 1 || !members.empty()) return true;
    return std::ranges::any_of(before, [&](const Before& other) { return other.members.contains(set.first()); });
}

void append_lead(std::vector<std::byte>& message, const Set& set, const std::vector<Before>& before,
                 const Set& members) {
    const std::size_t begin = message.size();
    set.encode(message);
    const std::size_t count_at = message.size();
    std::uint32_t count = 0;
    append(message, bytes_of(count));
    for (const Before& other : before) {
        const Set concerned = other.members & set;
        if (concerned.empty()) continue;
        ++count;
        append(message, bytes_of(other.sequence));
        concerned.encode(message);
    }
    copy_bytes(message.data() + count_at, bytes_of(count));
    members.encode(message);
    message.resize(begin + (message.size() - begin + 7) / 8 * 8);
}

std::vector<std::byte> lead_of(const Set& set, const std::vector<Before>& before, const Set& members) {
    std::vector<std::byte> lead;
    append_lead(lead, set, before, members);
    return lead;
}

std::optional<Lead> read_lead(Bytes bytes, Node nodes) {
    const bool is_whole = bytes.size() % 8 == 0;
    auto set = Set::decode(bytes, nodes);
    std::uint32_t count = 0;
    if (!is_whole || !set || !take(bytes, count) || count > Groups::under_way_max) return {};
    Lead lead{*std::move(set), {}, {}};
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint64_t sequence = 0;
        if (!take(bytes, sequence)) return {};
        auto members = Set::decode(bytes, nodes);
        if (!members) return {};
        lead.before.push_back({sequence, *std::move(members)});
    }
    auto members = Set::decode(bytes, nodes);
    if (!members) return {};
    lead.members = *std::move(members);
    if (bytes.size() >= 8) return {};
    return lead;
}

} // namespace kumi::group
