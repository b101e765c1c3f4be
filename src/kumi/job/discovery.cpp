#include "kumi/job/discovery.hpp"

#include "kumi/base/interfaces.hpp"
#include "kumi/boot/foreign/shared_page.hpp"
#include "kumi/cluster/survey.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace kumi::job {
namespace {

using boot::PageMark;

/// A host with more addresses tells the first ones.
constexpr std::size_t interfaces_max = 256;

/// What a node tells. In slot 0 so many interfaces follow, then the host's name.
struct ReportHead {
    PageMark host; // the same on all nodes that map the page of slot 0; zeros: this node cannot go on
    std::uint32_t slot;
    std::uint32_t interfaces;
};

struct InterfaceBody {
    char name[16]; // zero-padded
    std::array<std::uint8_t, 16> address;
    std::uint32_t address_bytes; // 4 or 16
    std::uint32_t bits;
    std::uint32_t leads_out;
};
static_assert(sizeof(InterfaceBody) == 44);

/// Slot 0 hands a page to the other nodes of its host, which read there what names it.
Result<PageMark> find_host(boot::Session& session) {
    if (session.standing().slot != 0) {
        const auto page = session.share_on_host({});
        if (!page) return page.error();
        return boot::read_shared_page(*page);
    }
    auto mark = boot::make_page_mark();
    if (!mark) return mark;
    auto page = boot::make_shared_page(*mark);
    if (!page) return page.error();
    if (auto given = session.share_on_host(*std::move(page)); !given) return given.error();
    return mark;
}

std::vector<std::byte> encode(const PageMark& host, const std::vector<base::Interface>& interfaces,
                              const boot::Standing& standing) {
    const std::size_t count = std::min(interfaces.size(), interfaces_max);
    const ReportHead head{host, standing.slot, static_cast<std::uint32_t>(count)};
    const std::string_view name = standing.slot == 0 ? std::string_view(standing.host) : std::string_view();
    std::vector<std::byte> report(sizeof head + count * sizeof(InterfaceBody) + name.size());
    std::byte* at = report.data();
    const auto append = [&](Bytes bytes) { copy_bytes(at, bytes), at += bytes.size(); };
    append(bytes_of(head));
    for (const base::Interface& one : std::span(interfaces).first(count)) {
        InterfaceBody body{{}, one.address.bytes, one.address.size, one.bits, one.leads_out};
        boot::put_text(body.name, one.name);
        append(bytes_of(body));
    }
    append(bytes_of(name));
    return report;
}

/// The interfaces and the name; false when they make no sense.
bool decode(Bytes report, cluster::HostReport& host) {
    ReportHead head{};
    if (!read_value(report, head) || head.interfaces > interfaces_max) return false;
    report = report.subspan(sizeof head);
    for (std::uint32_t i = 0; i < head.interfaces; ++i) {
        InterfaceBody body{};
        if (!read_value(report, body) || (body.address_bytes != 4 && body.address_bytes != 16) ||
            body.bits > 8 * body.address_bytes)
            return false;
        report = report.subspan(sizeof body);
        host.interfaces.push_back({std::string(boot::text_in(body.name)),
                                   {body.address, body.address_bytes},
                                   body.bits,
                                   body.leads_out != 0});
    }
    host.name = text_of(report);
    return true;
}

/// Seats the nodes, and finds what the hosts tell.
Result<cluster::Placement> seat(const std::vector<std::vector<std::byte>>& told,
                                std::vector<cluster::HostReport>& hosts) {
    std::map<PageMark, cluster::HostIndex> known;
    cluster::Placement placement;
    for (std::size_t node = 0; node < told.size(); ++node) {
        ReportHead head{};
        if (!read_value(told[node], head))
            return error("node {} does not look around: are all nodes of one version?", node);
        if (head.host == PageMark{}) return error("node {} cannot go on, and says why", node);
        const auto [entry, is_new] = known.emplace(head.host, static_cast<cluster::HostIndex>(hosts.size()));
        if (is_new && !decode(told[node], hosts.emplace_back(cluster::HostReport{{}, 0, {}})))
            return error("node {} tells nothing of its host: are all nodes of one version?", node);
        if (head.slot != hosts[entry->second].slots++)
            return error("node {} has slot {}, which is not the next of its host", node, head.slot);
        placement.push_back({entry->second, head.slot});
    }
    return placement;
}

} // namespace

Result<Surroundings> look_around(boot::Session& session) {
    // Who fails says so to the others, which shall not wait for it.
    const auto host = find_host(session);
    const auto interfaces = session.standing().slot == 0 ? base::running_interfaces() : std::vector<base::Interface>{};
    const bool is_good = host && interfaces;
    const auto told =
        session.exchange(is_good ? encode(*host, *interfaces, session.standing()) : encode({}, {}, session.standing()));
    if (!host) return host.error();
    if (!interfaces) return interfaces.error();
    if (!told) return told.error();
    std::vector<cluster::HostReport> hosts;
    auto placement = seat(*told, hosts);
    if (!placement) return placement.error();
    auto cluster = cluster::survey(hosts);
    if (!cluster) return cluster.error();
    return Surroundings{*std::move(cluster), *std::move(placement)};
}

} // namespace kumi::job
