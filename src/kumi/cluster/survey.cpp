#include "kumi/cluster/survey.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace kumi::cluster {
namespace {

using base::Interface;
using base::IpAddress;

/// The hosts on a network, and the interface by which each is on it.
using Members = std::map<HostIndex, const Interface*>;

/// IPv4 first, then by address.
struct InOrder {
    bool operator()(const base::Subnet& a, const base::Subnet& b) const noexcept {
        return std::tie(a.base.size, a.base, a.bits) < std::tie(b.base.size, b.base, b.bits);
    }
};

using Subnets = std::map<base::Subnet, Members, InOrder>;

struct Found {
    std::string name;
    Members members;
    bool is_routed = false;
};

class Surveyor {
public:
    explicit Surveyor(const std::vector<HostReport>& reports)
        : reports_(reports), joined_(reports.size() * reports.size()) {
        for (const HostReport& report : reports_) {
            std::set<IpAddress> own;
            for (const Interface& interface : report.interfaces) own.insert(interface.address);
            for (const IpAddress& address : own) ++hosts_with_[address];
        }
    }

    Result<Cluster> run() {
        for (auto& [subnet, members] : find_subnets())
            if (members.size() > 1 && !is_wire_of_another(members)) add({subnet.text(), members});
        for (const unsigned size : {4u, 16u}) add_routed(size);
        if (auto whole = check(); !whole) return whole.error();
        return make_cluster();
    }

private:
    bool is_usable(const Interface& interface) const { return hosts_with_.at(interface.address) == 1; }

    Subnets find_subnets() const {
        Subnets subnets;
        for (HostIndex host = 0; host < reports_.size(); ++host)
            for (const Interface& interface : reports_[host].interfaces)
                if (is_usable(interface)) subnets[interface.subnet()].emplace(host, &interface);
        return subnets;
    }

    bool is_wire_of_another(const Members& members) const {
        return std::any_of(found_.begin(), found_.end(), [&](const Found& other) {
            return std::all_of(members.begin(), members.end(), [&](const auto& member) {
                const auto there = other.members.find(member.first);
                return there != other.members.end() && there->second->name == member.second->name;
            });
        });
    }

    void add(Found network) {
        for (const auto& [one, interface] : network.members)
            for (const auto& [other, its] : network.members) joined_[one * reports_.size() + other] = true;
        found_.push_back(std::move(network));
    }

    bool is_joined(HostIndex one, HostIndex other) const {
        return one == other || joined_[one * reports_.size() + other];
    }

    /// Adds the network through routers, with only the hosts that need it.
    void add_routed(unsigned size) {
        Members all;
        for (HostIndex host = 0; host < reports_.size(); ++host)
            for (const Interface& interface : reports_[host].interfaces)
                if (interface.leads_out && interface.address.size == size && is_usable(interface))
                    all.emplace(host, &interface);
        Members members;
        for (const auto& [one, interface] : all)
            for (const auto& [other, its] : all)
                if (!is_joined(one, other)) members.emplace(one, interface);
        if (!members.empty()) add({size == 4 ? "routed-ipv4" : "routed-ipv6", std::move(members), true});
    }

    /// Checks that all hosts can be reached from host 0, if only through others.
    Result<void> check() const {
        std::vector<bool> is_reached(reports_.size());
        std::vector<HostIndex> reached{0};
        is_reached[0] = true;
        for (std::size_t next = 0; next < reached.size(); ++next)
            for (HostIndex host = 0; host < reports_.size(); ++host)
                if (!is_reached[host] && is_joined(reached[next], host)) {
                    is_reached[host] = true;
                    reached.push_back(host);
                }
        const auto apart = std::find(is_reached.begin(), is_reached.end(), false);
        if (apart == is_reached.end()) return {};
        const auto addresses = [](const HostReport& report) {
            std::vector<std::string> texts;
            for (const Interface& interface : report.interfaces) texts.push_back(interface.text());
            return fmt::format("{} has {}", report.name,
                               texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")));
        };
        const HostReport& other = reports_[static_cast<std::size_t>(apart - is_reached.begin())];
        return error("hosts {} and {} have no addresses in one subnet: {}, and {}; set KUMI_CLUSTER to a file that "
                     "describes their networks",
                     reports_[0].name, other.name, addresses(reports_[0]), addresses(other));
    }

    Cluster make_cluster() const {
        Cluster cluster;
        for (const HostReport& report : reports_)
            cluster.hosts.push_back({report.name, report.slots, std::vector<std::string>(found_.size())});
        for (NetworkIndex network = 0; network < found_.size(); ++network) {
            const Found& found = found_[network];
            Network& made = cluster.networks.emplace_back();
            made.name = found.name;
            made.letter = found.is_routed ? 'R' : static_cast<char>('A' + network % 16); // S is shared memory
            made.is_measured = !found.is_routed;
            for (const auto& [host, interface] : found.members)
                cluster.hosts[host].addresses[network] = interface->address.text();
        }
        return cluster;
    }

    const std::vector<HostReport>& reports_;
    std::map<IpAddress, std::size_t> hosts_with_;
    std::vector<Found> found_;
    std::vector<bool> joined_; // by two hosts: they share a network
};

} // namespace

Result<Cluster> survey(const std::vector<HostReport>& reports) {
    KUMI_ASSERT(!reports.empty());
    return Surveyor(reports).run();
}

} // namespace kumi::cluster
