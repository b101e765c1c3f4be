#include "kumi/job/membership.hpp"

#include "kumi/job/opening.hpp"
#include "kumi/job/signals.hpp"
#include "kumi/pm/census_channel.hpp"

#include <atomic>
#include <csignal>
#include <fmt/format.h>
#include <sys/resource.h>
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

/// Two entries for each class of sizes that has messages: how many, and the nanoseconds that sending them took. The
/// names end with the largest size of the class.
void add_census(std::vector<boot::StatsEntry>& entries, const pm::CensusChannel& channel) {
    for (const pm::CensusChannel::Carrier& carrier : channel.census())
        for (std::size_t i = 0; i < carrier.classes.size(); ++i) {
            const pm::CensusChannel::Class& mine = carrier.classes[i];
            if (mine.messages == 0) continue;
            const auto add = [&](const char* start, std::uint64_t value) {
                boot::StatsEntry& entry = entries.emplace_back(boot::StatsEntry{boot::whole_channel, {}, {}, value});
                boot::put_text(entry.device, carrier.name);
                boot::put_text(entry.name, fmt::format("{}{}", start, pm::CensusChannel::class_bytes[i]));
            };
            add(boot::size_messages, mine.messages);
            add(boot::size_nanoseconds, static_cast<std::uint64_t>(mine.taken.count()));
        }
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
    rusage used{};
    if (::getrusage(RUSAGE_SELF, &used) == 0) {
        const auto microseconds = [](const timeval& time) {
            return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec);
        };
        boot::StatsEntry& entry = entries.emplace_back(
            boot::StatsEntry{boot::whole_channel, {}, {}, microseconds(used.ru_utime) + microseconds(used.ru_stime)});
        boot::put_text(entry.device, "process");
        boot::put_text(entry.name, "processor_us");
    }
    return entries;
}

} // namespace

Membership::Membership(std::unique_ptr<boot::Session> session, std::unique_ptr<pm::Channel> channel)
    : session_(std::move(session)), channel_(std::move(channel)),
      patience_(pm::patience_for(standing().nodes_on_host, standing().cores_on_host)) {
    if (!standing().stats_wanted) return;
    auto counting = std::make_unique<pm::CensusChannel>(std::move(channel_));
    census_ = counting.get();
    channel_ = std::move(counting);
}

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
    if (standing().stats_wanted) {
        std::vector<boot::StatsEntry> entries = stats_of(*channel_);
        if (census_ != nullptr) add_census(entries, *census_);
        session_->report_stats(entries);
    }
    channel_.reset();
    session_->leave();
}

void Membership::explain_signals() {
    const std::string who = fmt::format("node {} on {}", standing().node, standing().host);
    print_backtrace_on_crash(who);
    if (!session_->has_questions() && standing().nodes == 1) return; // Ctrl-\ ends it, as any program
    // A program that handles SIGQUIT itself is not sent it because another node is late.
    if (print_waits_on_quit(who)) session_->signal_questions(SIGQUIT);
}

Error Membership::give_up(const Error& why) { return session_->report_failure(why) ? why.as_told() : why; }

} // namespace kumi::job
