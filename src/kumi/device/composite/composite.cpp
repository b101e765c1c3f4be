#include "kumi/device/composite/composite.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/base/log.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/device/composite/channel.hpp"
#include "kumi/device/composite/opening/gauge.hpp"
#include "kumi/device/composite/opening/measure.hpp"
#include "kumi/device/composite/opening/probe.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <numeric>

namespace kumi::device::composite {
namespace {

/// The nodes of one channel among all that meet.
class PartMeeting final : public pm::Meeting {
public:
    PartMeeting(pm::Meeting& all, const std::vector<Node>& members) : all_(all), members_(members) {}

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        auto told = all_.exchange(mine);
        if (!told) return told.error();
        std::vector<std::vector<std::byte>> ours;
        for (const Node member : members_) ours.push_back(std::move((*told)[member]));
        return ours;
    }
    Result<base::Descriptor> share(base::Descriptor mine) override { return all_.share(std::move(mine)); }

private:
    pm::Meeting& all_;
    const std::vector<Node>& members_;
};

/// What this node sleeps on, and the sockets by which nodes wake each other.
struct Wakes {
    std::unique_ptr<SleepSet> own;
    std::vector<WakeSocket::Name> names; // by node
};

Result<Wakes> exchange_wakes(const pm::Opening& opening) {
    auto sleep = SleepSet::open();
    if (!sleep) return sleep.error();
    Wakes wakes{*std::move(sleep), std::vector<WakeSocket::Name>(opening.nodes)};
    const auto told = opening.meeting.exchange(bytes_of(wakes.own->socket().name()));
    if (!told) return told.error();
    for (Node node = 0; node < opening.nodes; ++node) {
        WakeSocket::Name& name = wakes.names[node];
        const bool is_sound = read_value((*told)[node], name) && name.bytes <= name.text.size();
        if (!is_sound) return error("node {} opens another device: are all nodes of one version?", node);
    }
    return wakes;
}

Result<Part> open_part(Plan& plan, std::uint32_t network, const Wakes& wakes, const pm::Opening& opening) {
    if (plan.device == nullptr) {
        if (auto done = opening.meeting.exchange({}); !done) return done.error(); // the others meet
        return Part{};
    }
    const auto place = std::find(plan.members.begin(), plan.members.end(), opening.self);
    KUMI_ASSERT(place != plan.members.end());
    std::vector<WakeSocket::Name> names;
    for (const Node member : plan.members) names.push_back(wakes.names[member]);
    auto waker = std::make_unique<SocketWaker>(wakes.own->socket());
    waker->set_names(std::move(names));
    PartMeeting meeting(opening.meeting, plan.members);
    auto channel = plan.device->open({.self = static_cast<Node>(place - plan.members.begin()),
                                      .nodes = static_cast<Node>(plan.members.size()),
                                      .cores_on_host = opening.cores_on_host,
                                      .meeting = meeting,
                                      .keys = opening.keys,
                                      .network = plan.name,
                                      .waker = waker.get(),
                                      .has_alternatives = true});
    if (!channel) return channel.error();
    return Part{std::move(waker), *std::move(channel), plan.members, plan.name, network};
}

/// "node 3", "nodes 3, 4", "nodes 3, 4, ... and 5 more".
std::string some_of(const std::vector<Node>& nodes) {
    constexpr std::size_t shown_max = 8;
    const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), shown_max));
    std::string text = fmt::format("node{} {}", nodes.size() == 1 ? "" : "s", fmt::join(nodes.begin(), end, ", "));
    if (nodes.size() > shown_max) text += fmt::format(" and {} more", nodes.size() - shown_max);
    return text;
}

/// Gives up the peers of a channel that do not answer, unless they are tried again later: closing it would wait for
/// them.
void give_up_silent(const Probed& probed, Node self, base::FunctionRef<bool(Node)> is_tried_again) {
    if (probed.part == nullptr) return;
    const std::vector<Node>& members = probed.part->members;
    for (std::size_t member = 0; member < members.size(); ++member) {
        const Node node = members[member];
        if (node != self && !probed.works.test(node) && !is_tried_again(node))
            probed.part->channel->give_up(static_cast<Node>(member));
    }
}

} // namespace

Result<std::unique_ptr<pm::Channel>> CompositeDevice::open(const pm::Opening& opening) {
    auto wakes = exchange_wakes(opening);
    if (!wakes) return wakes.error();
    std::vector<Part> parts;
    for (Plan& plan : plans_) {
        auto part = open_part(plan, static_cast<std::uint32_t>(parts.size()), *wakes, opening);
        if (!part) return part.error();
        parts.push_back(*std::move(part));
    }
    // Whatever may fail here, before the probe: what that sends to peers that do not answer is waited for when a
    // channel closes.
    const auto is_open = [](const Part& part) { return part.channel != nullptr; };
    if (const auto networks = static_cast<std::size_t>(std::ranges::count_if(parts, is_open));
        networks > CompositeChannel::parts_max)
        return error("composite: this host has {} networks, and {} are possible: name those to use in a cluster file",
                     networks, CompositeChannel::parts_max);
    std::vector<Probed> probed;
    for (Part& part : parts) probed.push_back({part.channel != nullptr ? &part : nullptr, base::Bitmap(opening.nodes)});
    std::vector<std::vector<Node>> members;
    for (const Plan& plan : plans_) members.push_back(plan.members);
    const auto silent = probe(probed, members, opening.self, opening.meeting, patience_);
    if (!silent) return silent.error();
    const Relays relays = find_relays_ ? find_relays_(*silent) : Relays{std::vector<Path>(opening.nodes), {}};
    const auto plans_to = choose(parts, probed, relays.paths, opening);
    for (std::uint32_t plan = 0; plan < plans_.size(); ++plan)
        give_up_silent(probed[plan], opening.self, [&](Node to) {
            return plans_to && std::ranges::count((*plans_to)[to], plan, &Chosen::plan) != 0;
        });
    if (!plans_to) return plans_to.error();

    std::vector<std::uint32_t> part_of_plan;
    std::uint32_t count = 0;
    for (const Part& part : parts) part_of_plan.push_back(part.channel != nullptr ? count++ : 0);
    std::erase_if(parts, [](const Part& part) { return part.channel == nullptr; });
    std::vector<std::vector<ChosenWay>> ways_to(opening.nodes);
    for (Node to = 0; to < opening.nodes; ++to) {
        for (const auto& [plan, works] : (*plans_to)[to])
            ways_to[to].push_back({.part = part_of_plan[plan], .is_silent = !works});
        const bool has_others = find_relays_ != nullptr && opening.nodes > 2 && to != opening.self;
        if (has_others) ways_to[to].push_back({.is_relayed = true, .path = relays.paths[to]});
    }
    return std::unique_ptr<pm::Channel>(std::make_unique<CompositeChannel>(
        opening.self, std::move(parts), ways_to, std::move(wakes->own),
        CompositeChannel::Options{.stripes = has_stripes_ ? StripeOptions{} : StripeOptions::none(),
                                  .served = relays.served,
                                  .names = names_,
                                  .silence_max = silence_max_}));
}

/// Finds the places of plans that are measured: from here on all plans are in order, the best first.
Result<void> CompositeDevice::arrange(std::vector<Part>& parts, std::vector<Probed>& probed,
                                      const pm::Opening& opening) {
    std::vector<bool> wanted;
    std::vector<std::size_t> places; // of those
    for (std::size_t i = 0; i < plans_.size(); ++i) {
        wanted.push_back(plans_[i].is_measured && plans_[i].members.size() > 1);
        if (wanted[i]) places.push_back(i);
    }
    if (places.size() < 2) return {};
    // Longer than a probe: these ways work, if badly, and what is under way has to come to an end.
    const auto rates = measure(probed, wanted, opening.self, opening.nodes, opening.meeting, 10 * patience_);
    if (!rates) return rates.error();
    std::vector<double> wanted_rates;
    for (const std::size_t place : places) wanted_rates.push_back((*rates)[place]);
    const auto ranking = best_first(wanted_rates);
    std::vector<std::size_t> order(plans_.size()); // which plan comes where
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::string> said;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t plan = order[places[i]] = places[ranking[i]];
        said.push_back(fmt::format("{} {}/s", plans_[plan].name,
                                   base::readable_bytes(static_cast<std::uint64_t>((*rates)[plan]))));
    }
    if (opening.self == 0) base::log_debug("networks by what they carried, the best first: {}", fmt::join(said, ", "));

    std::vector<Plan> plans;
    std::vector<Part> new_parts;
    std::vector<Probed> new_probed;
    for (const std::size_t from : order) {
        plans.push_back(std::move(plans_[from]));
        new_parts.push_back(std::move(parts[from]));
        new_probed.push_back(std::move(probed[from]));
    }
    plans_ = std::move(plans);
    parts = std::move(new_parts);
    probed = std::move(new_probed);
    for (std::size_t i = 0; i < parts.size(); ++i) probed[i].part = parts[i].channel != nullptr ? &parts[i] : nullptr;
    joins_ = [joins = std::move(joins_), order](std::size_t plan, Node to) { return joins(order[plan], to); };
    return {};
}

/// For each destination the plans that work, and those that may work later, the best first. What should work and does
/// not is said.
Result<std::vector<std::vector<CompositeDevice::Chosen>>> CompositeDevice::choose(std::vector<Part>& parts,
                                                                                  std::vector<Probed>& probed,
                                                                                  const std::vector<Path>& paths,
                                                                                  const pm::Opening& opening) {
    if (auto arranged = arrange(parts, probed, opening); !arranged) return arranged.error();
    std::vector<std::vector<Chosen>> plans_to(opening.nodes);
    std::vector<Node> unreached;
    std::vector<std::vector<Node>> silent(plans_.size()); // by plan, where it would be the best
    for (Node to = 0; to < opening.nodes; ++to) {
        bool is_reached = false, may_fail = true;
        for (std::uint32_t plan = 0; plan < plans_.size(); ++plan) {
            if (probed[plan].part == nullptr || !joins_(plan, to)) continue;
            const bool works = to == opening.self || probed[plan].works.test(to);
            const bool has_ways = probed[plan].part->channel->ways() != nullptr;
            if (!works && !is_reached) silent[plan].push_back(to);
            if (works || has_ways) plans_to[to].push_back({plan, works});
            is_reached = is_reached || works;
            may_fail = may_fail && (has_ways || !works);
        }
        // what cannot fail needs no others
        if (!may_fail) std::erase_if(plans_to[to], [](const Chosen& one) { return !one.works; });
        if (!is_reached && paths[to].empty()) unreached.push_back(to);
    }
    const double seconds = std::chrono::duration<double>(patience_).count();
    for (std::size_t i = 0; i < plans_.size(); ++i)
        if (!silent[i].empty())
            base::log_warning(
                "{}: no answer within {} s between node {} and {}; they use the next way, if there is one",
                plans_[i].name, seconds, opening.self, some_of(silent[i]));
    if (!unreached.empty())
        return error("node {} reaches {} by no network, of those that should join them; see kumi map", opening.self,
                     some_of(unreached));
    return plans_to;
}

} // namespace kumi::device::composite
