#include "kumi/job/pm_job.hpp"

#include "kumi/base/machine.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/job/opening.hpp"

#include <atomic>
#include <vector>

namespace kumi {
namespace {

/// A process is a node, and joins once; this is a fact about the process, hence its only global.
std::atomic<bool> process_has_joined{false};

std::vector<boot::TrafficEntry> traffic_of(const pm::Channel& channel) {
    std::vector<boot::TrafficEntry> entries;
    for (Node to = 0; to < channel.nodes(); ++to) {
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
    for (Node peer = 0; peer < channel.nodes(); ++peer) add(peer, channel.counters(peer));
    if (entries.empty()) add(boot::whole_channel, {{"", 0}}); // says which device it is that counts nothing
    return entries;
}

} // namespace

struct PmJob::State {
    std::unique_ptr<boot::Session> session;
    std::unique_ptr<pm::Channel> channel;
    pm::Patience patience;
    std::function<void(Message&)> on_message;
    std::vector<KeptMessage> early; // arrived before there was a handler
    bool in_handler = false;

    void operator()(Message& message) {
        if (!on_message) return early.push_back(message.keep());
        in_handler = true;
        on_message(message);
        in_handler = false;
    }
};

PmJob::PmJob(std::unique_ptr<boot::Session> session, std::unique_ptr<pm::Channel> channel)
    : state_(std::make_unique<State>()) {
    state_->patience = pm::patience_for(session->standing().nodes_on_host, session->standing().cores_on_host);
    state_->session = std::move(session);
    state_->channel = std::move(channel);
}
PmJob::PmJob(PmJob&&) noexcept = default;

Result<PmJob> PmJob::join() {
    if (process_has_joined.exchange(true))
        return error("this process has joined already: a node is one process, and joins once");
    auto session = boot::open_session();
    if (!session) return session.error();
    auto channel = job::open_channel(**session);
    if (!channel) return (*session)->report_failure(channel.error()) ? channel.error().as_told() : channel.error();
    return PmJob(*std::move(session), *std::move(channel));
}

PmJob::~PmJob() {
    if (!state_) return;
    const boot::Standing& standing = state_->session->standing();
    if (standing.traffic_wanted) state_->session->report_traffic(traffic_of(channel()));
    if (standing.stats_wanted) state_->session->report_stats(stats_of(channel()));
    state_->early.clear();
    state_->channel.reset();
    state_->session->leave();
}

Node PmJob::node() const noexcept { return state_->session->standing().node; }
Node PmJob::nodes() const noexcept { return state_->session->standing().nodes; }
const std::string& PmJob::host() const noexcept { return state_->session->standing().host; }
boot::Session& PmJob::session() noexcept { return *state_->session; }
pm::Channel& PmJob::channel() noexcept { return *state_->channel; }
pm::Handler PmJob::handler() noexcept { return *state_; }
pm::Patience PmJob::patience() const noexcept { return state_->patience; }

void PmJob::on_message(std::function<void(Message&)> handler) {
    state_->on_message = std::move(handler);
    for (KeptMessage& kept : std::exchange(state_->early, {})) {
        Message message(kept.source(), kept.bytes());
        (*state_)(message);
    }
}

void PmJob::flush() noexcept { channel().flush(); }

std::size_t PmJob::poll() { return channel().poll(handler(), pm::all_messages); }

Result<void> PmJob::check(Node to, std::size_t bytes) const {
    KUMI_ASSERT(!state_->in_handler); // inside a handler: channel().try_send()
    if (to >= nodes()) return error("sending to node {}: this job has nodes 0 to {}", to, nodes() - 1);
    const std::size_t bytes_max = state_->channel->traits().message_bytes_max;
    if (bytes > bytes_max)
        return error("sending {} to node {}: the largest message here is {}; send it in parts{}",
                     base::readable_bytes(bytes), to, base::readable_bytes(bytes_max),
                     state_->channel->traits().device == "shmem" ? ", or raise KUMI_SHMEM_MEMORY" : "");
    return {};
}

Result<void> PmJob::wait_for_room(Node to) {
    if (channel().lost(to)) return error("sending to node {}: it has left, or is lost", to);
    if (poll() != 0) return {};
    // Full, and nothing comes: let the receiver run.
    if (patience().spin_max > Duration{0}) pm::relax();
    else if (channel().arm()) channel().sleep(never);
    return {};
}

} // namespace kumi
