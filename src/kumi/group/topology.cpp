#include "kumi/group/topology.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace kumi::group {

Topology::Topology(std::vector<std::vector<std::uint32_t>> levels) {
    const std::vector<std::uint32_t>* last = nullptr;
    for (std::vector<std::uint32_t>& level : levels) {
        const bool is_one =
            level.empty() || std::ranges::all_of(level, [&](std::uint32_t domain) { return domain == level.front(); });
        if (is_one || (last != nullptr && *last == level)) continue; // tells nothing
        levels_.push_back(std::move(level));
        last = &levels_.back();
    }
    // Domains of one node each tell nothing either.
    std::erase_if(levels_, [](const std::vector<std::uint32_t>& level) {
        std::vector<std::uint32_t> sorted = level;
        std::ranges::sort(sorted);
        return std::ranges::adjacent_find(sorted) == sorted.end();
    });
}

namespace {

/// By host, the first host that it reaches, perhaps through others, without that network.
std::vector<std::uint32_t> parts_without(std::uint32_t network,
                                         const std::vector<std::vector<std::uint32_t>>& carriers) {
    const auto hosts = static_cast<std::uint32_t>(carriers.size());
    std::vector<std::uint32_t> part(hosts);
    for (std::uint32_t host = 0; host < hosts; ++host) part[host] = host;
    for (std::uint32_t a = 0; a < hosts; ++a)
        for (std::uint32_t b = a + 1; b < hosts; ++b)
            if (carriers[a][b] != network && part[a] != part[b])
                std::ranges::replace(part, std::max(part[a], part[b]), std::min(part[a], part[b]));
    return part;
}

} // namespace

Topology find_topology(const std::vector<Node>& firsts, const std::vector<std::vector<std::uint32_t>>& carriers) {
    std::vector<std::uint32_t> networks;
    for (const auto& row : carriers) networks.insert(networks.end(), row.begin(), row.end());
    std::ranges::sort(networks);
    networks.erase(std::unique(networks.begin(), networks.end()), networks.end());
    std::vector<std::uint32_t> hosts(firsts.begin(), firsts.end());
    std::ranges::sort(hosts);
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());

    // The network without which the hosts fall apart into the fewest clusters, at least two of them.
    std::vector<std::uint32_t> clusters;
    std::size_t fewest = carriers.size(); // hosts alone are no clusters
    for (const std::uint32_t network : networks) {
        auto parts = parts_without(network, carriers);
        auto distinct = parts;
        std::ranges::sort(distinct);
        const auto count = static_cast<std::size_t>(std::unique(distinct.begin(), distinct.end()) - distinct.begin());
        if (count < 2 || count >= fewest) continue;
        fewest = count;
        clusters = std::move(parts);
    }
    std::vector<std::vector<std::uint32_t>> levels;
    if (!clusters.empty()) {
        std::vector<std::uint32_t>& level = levels.emplace_back();
        for (const Node first : firsts)
            level.push_back(clusters[static_cast<std::size_t>(std::ranges::lower_bound(hosts, first) - hosts.begin())]);
    }
    levels.emplace_back(firsts.begin(), firsts.end());
    return Topology(std::move(levels));
}

namespace {

/// The members by their domains at one level, in the order of their first members.
struct Domains {
    std::vector<std::uint32_t> numbers;
    std::vector<Set> members;

    Domains(const Set& set, std::size_t level, const Topology& topology) {
        for (const Node node : set) members[index_of(topology.domain(level, node))].add(node);
    }

private:
    /// Neighbours in the set are often of one domain. Many domains are not looked through for each member: there would
    /// be members times domains to look at.
    std::size_t index_of(std::uint32_t domain) {
        constexpr std::size_t looked_through_max = 16;
        if (!numbers.empty() && numbers[last_] == domain) return last_;
        const bool is_large = numbers.size() > looked_through_max;
        if (is_large && indices_.empty())
            for (std::size_t i = 0; i < numbers.size(); ++i) indices_[numbers[i]] = i;
        last_ = is_large ? indices_.try_emplace(domain, numbers.size()).first->second
                         : static_cast<std::size_t>(std::ranges::find(numbers, domain) - numbers.begin());
        if (last_ == numbers.size()) {
            numbers.push_back(domain);
            members.emplace_back();
        }
        return last_;
    }

    std::size_t last_ = 0;
    std::unordered_map<std::uint32_t, std::size_t> indices_; // by domain, where there are many
};

} // namespace

std::vector<Child> children_of(const Set& part, Node self, const Topology& topology, const Pace& pace) {
    std::vector<Child> children;
    Set rest = part;
    rest.remove(self);
    for (std::size_t level = 0; level < topology.levels() && !rest.empty(); ++level) {
        Domains domains(rest, level, topology);
        Set near;
        if (const auto own = std::ranges::find(domains.numbers, topology.domain(level, self));
            own != domains.numbers.end()) {
            const auto index = own - domains.numbers.begin();
            near = std::move(domains.members[static_cast<std::size_t>(index)]);
            domains.members.erase(domains.members.begin() + index);
        }
        // Rank 0 is this node's own domain.
        for (const RankRange& run : group::children_of({0, static_cast<Node>(domains.members.size() + 1)}, pace)) {
            Set united;
            for (Node i = run.begin; i < run.end; ++i) united |= domains.members[i - 1];
            children.push_back({domains.members[run.begin - 1].first(), std::move(united)});
        }
        rest = std::move(near);
    }
    if (rest.empty()) return children;
    if (rest.size() == 1) { // no tree is needed for that
        const Node only = rest.first();
        children.push_back({only, std::move(rest)});
        return children;
    }
    const auto runs = group::children_of({0, rest.size() + 1}, pace);
    children.reserve(children.size() + runs.size());
    for (const RankRange& run : runs) {
        Set slice = rest.slice(run.begin - 1, run.end - 1);
        const Node first = slice.first();
        children.push_back({first, std::move(slice)});
    }
    return children;
}

std::vector<Circle> circles_of(const Set& set, Node root, Node self, const Topology& topology) {
    std::vector<Circle> circles;
    Set inside = set; // the domain of self, as far as it goes
    Node head = root; // the first of it
    for (std::size_t level = 0; level <= topology.levels(); ++level) {
        std::vector<Node> members{head};
        Set own;
        Node own_head = self;
        if (level == topology.levels()) {
            for (const Node node : inside)
                if (node != head) members.push_back(node);
        } else {
            for (Set& domain : Domains(inside, level, topology).members) {
                const Node first = domain.contains(head) ? head : domain.first();
                if (first != head) members.push_back(first);
                if (!domain.contains(self)) continue;
                own_head = first;
                own = std::move(domain);
            }
        }
        const auto found = std::ranges::find(members, self);
        if (found != members.end() && members.size() > 1)
            circles.push_back({members, static_cast<Node>(found - members.begin())});
        inside = std::move(own);
        head = own_head;
    }
    return circles;
}

} // namespace kumi::group
