#include "kumi/device/composite/assembly.hpp"

#include <algorithm>
#include <optional>

namespace kumi::device::composite {
Result<void> Assembly::open_sleep_sets() {
    parts_.resize(nodes_);
    ways_to_.assign(nodes_, std::vector<Ways>(nodes_));
    while (sleeps_.size() < nodes_) {
        auto sleep = SleepSet::open();
        if (!sleep) return sleep.error();
        sleeps_.push_back(*std::move(sleep));
    }
    return {};
}

Result<void> Assembly::add(const std::vector<Node>& members,
                           base::FunctionRef<Result<Ends>(std::span<pm::Waker* const>)> open, const std::string& name) {
    if (sleeps_.empty())
        if (auto opened = open_sleep_sets(); !opened) return opened;
    std::vector<WakeSocket::Name> names;
    for (const Node member : members) names.push_back(sleeps_[member]->socket().name());
    std::vector<std::unique_ptr<SocketWaker>> wakers;
    std::vector<pm::Waker*> given;
    for (const Node member : members) {
        wakers.push_back(std::make_unique<SocketWaker>(sleeps_[member]->socket()));
        wakers.back()->set_names(names);
        given.push_back(wakers.back().get());
    }
    auto ends = open(given);
    if (!ends) return ends.error();
    for (std::size_t i = 0; i < members.size(); ++i) {
        const Node node = members[i];
        for (const Node other : members) {
            Ways& ways = ways_to_[node][other];
            ways.insert(ways.begin(), {.part = static_cast<std::uint32_t>(parts_[node].size())});
        }
        parts_[node].push_back({std::move(wakers[i]), std::move((*ends)[i]), members, name, count_});
    }
    ++count_;
    return {};
}

void Assembly::add_relay(Node from, Node via, Node to) {
    ways_to_[from][to].push_back({.is_relayed = true, .path = {via}});
}

/// Relays that were named only tell the first node of each path.
void Assembly::complete_paths() {
    for (Node from = 0; from < nodes_; ++from)
        for (Node to = 0; to < nodes_; ++to) {
            if (ways_to_[from][to].empty() || !ways_to_[from][to].back().is_relayed) continue;
            Path& path = ways_to_[from][to].back().path;
            while (path.size() < nodes_ && ways_to_[path.back()][to].front().is_relayed)
                path.push_back(ways_to_[path.back()][to].front().path.front());
        }
}

/// By node, those whose messages it passes on.
std::vector<std::vector<Node>> Assembly::served() const {
    std::vector<std::vector<Node>> served(nodes_);
    for (Node from = 0; from < nodes_; ++from)
        for (Node to = 0; to < nodes_; ++to)
            if (const auto& way = ways_to_[from][to].front(); way.is_relayed)
                for (const Node via : way.path)
                    if (std::ranges::find(served[via], from) == served[via].end()) served[via].push_back(from);
    return served;
}

Result<Assembly::Ends> Assembly::finish(const StripeOptions& stripes) {
    Ends made;
    for (Node node = 0; node < nodes_; ++node)
        for (Node to = 0; to < nodes_; ++to)
            if (ways_to_.empty() || ways_to_[node][to].empty())
                return error("nodes {} and {} have no channel", node, to);
    if (!ways_to_.empty()) complete_paths();
    for (Node node = 0; std::vector<Node>& sources : served()) {
        made.push_back(std::make_unique<CompositeChannel>(
            node, std::move(parts_[node]), ways_to_[node], std::move(sleeps_[node]),
            CompositeChannel::Options{.stripes = stripes, .served = std::move(sources)}));
        ++node;
    }
    return made;
}

} // namespace kumi::device::composite
