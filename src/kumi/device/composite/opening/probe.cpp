#include "kumi/device/composite/opening/probe.hpp"

#include <algorithm>
#include <thread>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// After so long the nodes tell each other how far they are.
constexpr Duration probe_time = 50ms;
constexpr Duration nap_time = 100us;

/// One channel while it is tried.
struct Trial {
    Part* part;
    Node self; // there
    std::size_t told = 0; // members that were sent to so far
    base::Bitmap heard;   // by node

    bool is_complete() const { return part == nullptr || heard.count() + 1 == part->members.size(); }
};

void turn(Trial& trial) {
    if (trial.part == nullptr) return;
    pm::Channel& channel = *trial.part->channel;
    const std::uint64_t hello = 0;
    for (; trial.told < trial.part->members.size(); ++trial.told)
        // once more at the next turn
        if (trial.told != trial.self && !channel.try_send(static_cast<Node>(trial.told), bytes_of(hello))) break;
    channel.poll([&](pm::Message& message) { trial.heard.set(trial.part->members[message.source()]); },
                 pm::all_messages);
}

bool is_complete(const std::vector<Trial>& trials) {
    return std::all_of(trials.begin(), trials.end(), [](const Trial& trial) { return trial.is_complete(); });
}

/// Whether this node heard all, then the nodes that it heard, channel by channel.
std::vector<std::byte> encode(const std::vector<Trial>& trials, Node nodes) {
    std::vector<std::byte> bytes(1 + trials.size() * ((nodes + 7) / 8));
    bytes[0] = std::byte{is_complete(trials)};
    for (std::size_t i = 0; i < trials.size(); ++i)
        for (Node node = 0; node < nodes; ++node)
            if (trials[i].heard.test(node)) bytes[1 + i * ((nodes + 7) / 8) + node / 8] |= std::byte{1} << (node % 8);
    return bytes;
}

bool says_heard(const std::vector<std::byte>& report, std::size_t channel, Node node, Node nodes) {
    return (report[1 + channel * ((nodes + 7) / 8) + node / 8] >> (node % 8) & std::byte{1}) != std::byte{0};
}

} // namespace

Result<std::vector<Silent>> probe(std::vector<Probed>& channels, const std::vector<std::vector<Node>>& members,
                                  Node self, pm::Meeting& meeting, Duration patience) {
    const auto nodes = static_cast<Node>(channels.empty() ? 0 : channels.front().works.size());
    std::vector<Silent> silent;
    std::vector<Trial> trials;
    for (const Probed& channel : channels) {
        Trial& trial = trials.emplace_back(Trial{.part = channel.part, .self = 0, .heard = base::Bitmap(nodes)});
        if (channel.part != nullptr) trial.self = channel.part->channel->self();
    }
    // Rounds are counted, not timed, and all see the same reports: so all stop after the same one.
    const auto rounds = std::max<std::int64_t>(1, patience / probe_time);
    for (std::int64_t round = 0; round < rounds; ++round) {
        const Instant deadline = now() + probe_time;
        do { // at least once: what was lost before is sent again by this, and so are the acknowledgements of others
            for (Trial& trial : trials) turn(trial);
            if (!is_complete(trials)) std::this_thread::sleep_for(nap_time);
        } while (!is_complete(trials) && now() < deadline);
        for (Trial& trial : trials) turn(trial);
        const auto reports = meeting.exchange(encode(trials, nodes));
        if (!reports) return reports.error();
        bool all_complete = true;
        silent.clear();
        for (Node node = 0; node < nodes; ++node) {
            const std::vector<std::byte>& report = (*reports)[node];
            if (report.size() != 1 + trials.size() * ((nodes + 7) / 8))
                return error("node {} opens another set of networks: is its cluster file the same?", node);
            all_complete = all_complete && report[0] != std::byte{0};
            for (std::size_t i = 0; i < trials.size(); ++i)
                if (trials[i].heard.test(node) && says_heard(report, i, self, nodes)) channels[i].works.set(node);
        }
        for (std::size_t i = 0; i < trials.size(); ++i)
            for (const Node one : members[i])
                for (const Node other : members[i]) {
                    if (one >= other) continue;
                    const bool works =
                        says_heard((*reports)[one], i, other, nodes) && says_heard((*reports)[other], i, one, nodes);
                    if (!works) silent.push_back({i, one, other});
                }
        if (all_complete) break;
    }
    return silent;
}

} // namespace kumi::device::composite
