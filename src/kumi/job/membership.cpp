#include "kumi/job/membership.hpp"

#include "kumi/job/opening.hpp"
#include "kumi/job/signals.hpp"

#include <atomic>
#include <csignal>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace kumi::job {
namespace {

/// A process is a node, and joins once; this is a fact about the process, hence its only global.
std::atomic<bool> process_has_joined{false};

std::vector<boot::TrafficEntry> traffic_of(const pm::Channel& channel) {
    std::vector<boot::TrafficEntry> entries;
    for (pm::Node to = 0; to < channel.nodes(); ++to) {
        const pm::Traffic sent = channel.sent(to);
        boot::put_text(entries.emplace_back(boot::TrafficEntry{to, {}, sent.messages, sent.bytes}).device,
                       channel.carrier(to));
    }
    return entries;
}

std::vector<boot::StatsEntry> stats_of(const pm::Channel& channel) {
    std::vector<boot::StatsEntry> entries;
    const auto add = [&](std::uint32_t peer, std::vector<pm::Counter> counters) {
        if (counters.size() > boot::stats_per_peer_max) counters.resize(boot::stats_per_peer_max);
        for (const pm::Counter& counter : counters) {
            boot::StatsEntry& entry = entries.emplace_back(boot::StatsEntry{peer, {}, {}, counter.value});
            boot::put_text(entry.device, channel.traits().device);
            boot::put_text(entry.name, counter.name);
        }
    };
    add(boot::whole_channel, channel.counters());
    for (pm::Node peer = 0; peer < channel.nodes(); ++peer) add(peer, channel.counters(peer));
    if (entries.empty()) add(boot::whole_channel, {{"", 0}}); // says which device it is that counts nothing
    return entries;
}

} // namespace

Membership::Membership(std::unique_ptr<boot::Session> session, std::unique_ptr<pm::Channel> channel)
    : session_(std::move(session)), channel_(std::move(channel)),
      patience_(pm::patience_for(standing().nodes_on_host, standing().cores_on_host)) {}

Result<Membership> Membership::join() {
    if (process_has_joined.exchange(true))
        return error(ErrorCode::misuse, "this process has joined already: a node is one process, and joins once");
    auto session = boot::open_session();
    if (!session) return session.error();
    auto channel = open_channel(**session);
    if (!channel) return (*session)->report_failure(channel.error()) ? channel.error().as_told() : channel.error();
    return Membership(*std::move(session), *std::move(channel));
}

Membership::~Membership() {
    if (!session_) return;
    if (standing().traffic_wanted) session_->report_traffic(traffic_of(*channel_));
    if (standing().stats_wanted) session_->report_stats(stats_of(*channel_));
    channel_.reset();
    session_->leave();
}

void Membership::explain_signals() {
    const std::string who = fmt::format("node {} on {}", standing().node, standing().host);
    print_backtrace_on_crash(who);
    if (!session_->has_questions() && standing().nodes == 1) return; // Ctrl-\ ends it, as any program
    print_waits_on_quit(who);
    session_->signal_questions(SIGQUIT);
}

Error Membership::give_up(const Error& why) { return session_->report_failure(why) ? why.as_told() : why; }

} // namespace kumi::job
