#include "kumi/job/discovery.hpp"

#include "kumi/base/net/interfaces.hpp"
#include "kumi/boot/foreign/shared_page.hpp"
#include "kumi/cluster/survey.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace kumi::job {
namespace {

using boot::PageId;

/// A host with more addresses reports only the first ones.
constexpr std::size_t interfaces_max = 256;

/// What a node reports. From slot 0 it is followed by the interfaces and the host's name.
struct ReportHead {
    PageId host; // equal on all nodes that can map the page of slot 0; zeros: this node cannot go on
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

/// Finds the id of this node's host: slot 0 shares a page with the other nodes of the host, which read the id there.
Result<PageId> find_host(boot::Session& session) {
    if (session.standing().slot != 0) {
        const auto page = session.share_on_host({});
        if (!page) return page.error();
        return boot::read_shared_page(*page);
    }
    auto id = boot::make_page_id();
    if (!id) return id;
    auto page = boot::make_shared_page(*id);
    if (!page) return page.error();
    if (auto given = session.share_on_host(*std::move(page)); !given) return given.error();
    return id;
}

std::vector<std::byte> encode(const PageId& host, const std::vector<base::Interface>& interfaces,
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

/// Reads the interfaces and the name. False if they are not valid.
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

/// Derives the placement and the host reports from the reports of all nodes.
Result<cluster::Placement> place_nodes(const std::vector<std::vector<std::byte>>& reports,
                                std::vector<cluster::HostReport>& hosts) {
    std::map<PageId, cluster::HostIndex> known;
    cluster::Placement placement;
    for (std::size_t node = 0; node < reports.size(); ++node) {
        ReportHead head{};
        if (!read_value(reports[node], head))
            return error("node {} sent no report: do all nodes have one version of Kumi?", node);
        if (head.host == PageId{}) return error("node {} cannot go on; its own message says why", node);
        const auto [entry, is_new] = known.emplace(head.host, static_cast<cluster::HostIndex>(hosts.size()));
        if (is_new && !decode(reports[node], hosts.emplace_back(cluster::HostReport{{}, 0, {}})))
            return error("the report of node {} is not valid: do all nodes have one version of Kumi?", node);
        if (head.slot != hosts[entry->second].slots++)
            return error("node {} has slot {}, which is not the next one on its host", node, head.slot);
        placement.push_back({entry->second, head.slot});
    }
    return placement;
}

} // namespace

Result<PlacedCluster> discover_cluster(boot::Session& session) {
    // A node that fails tells the others, so that they do not wait for it.
    const auto host = find_host(session);
    const auto interfaces = session.standing().slot == 0 ? base::running_interfaces() : std::vector<base::Interface>{};
    const bool is_good = host && interfaces;
    const auto reports =
        session.exchange(is_good ? encode(*host, *interfaces, session.standing()) : encode({}, {}, session.standing()));
    if (!host) return host.error();
    if (!interfaces) return interfaces.error();
    if (!reports) return reports.error();
    std::vector<cluster::HostReport> hosts;
    auto placement = place_nodes(*reports, hosts);
    if (!placement) return placement.error();
    auto cluster = cluster::survey(hosts);
    if (!cluster) return cluster.error();
    return PlacedCluster{*std::move(cluster), *std::move(placement)};
}

} // namespace kumi::job
