#include "kumi/job/job.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/base/text/fnv.hpp"
#include "kumi/base/text/number_text.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/engine/agree_on_handlers.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/future/progress_link.hpp"
#include "kumi/job/membership.hpp"
#include "kumi/job/opening.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace kumi {
namespace {

constexpr unsigned workers_max = 256;

/// KUMI_PROGRESS: on, off, or the core that the background thread is bound to. KUMI_WORKERS: how many functions run at
/// once.
Result<engine::ProgressOptions> progress_from_environment() {
    engine::ProgressOptions options;
    const char* const text = std::getenv("KUMI_PROGRESS");
    const std::string_view wanted = text != nullptr ? text : "on";
    if (wanted == "off") {
        options.in_background = false;
    } else if (wanted != "on") {
        const auto core = base::number_in<unsigned>(wanted);
        if (!core)
            return error(ErrorCode::misuse,
                         "KUMI_PROGRESS={}: say on, off, or the number of a core for the background thread", wanted);
        options.core = *core;
    }
    if (const char* const count = std::getenv("KUMI_WORKERS"); count != nullptr) {
        const auto workers = base::number_in<unsigned>(count);
        if (!workers || *workers == 0 || *workers > workers_max)
            return error(ErrorCode::misuse, "KUMI_WORKERS={}: say how many functions may run at once, 1 to {}", count,
                         workers_max);
        options.workers = *workers;
    }
    return options;
}

/// How long the background waits for the program's first call: a node that only computes answers from then on.
constexpr Duration hold_of_handlers = std::chrono::milliseconds(100);

/// KUMI_GROUPS, and what somebody has set beside it.
Result<group::Settings> settings_from_environment(const group::Settings& others) {
    const char* const text = std::getenv("KUMI_GROUPS");
    auto settings = group::parse_settings(text != nullptr ? text : "");
    if (!settings) return error(ErrorCode::misuse, "KUMI_GROUPS: {}", settings.error().text());
    if (!settings->costs) settings->costs = others.costs;
    if (!settings->way) settings->way = others.way;
    return settings;
}

/// Which nodes are near each other: hosts, and clusters of hosts. All nodes ask together.
Result<group::Topology> topology_of(engine::Dispatcher& dispatcher, pm::Meeting& meeting) {
    const std::vector<Node>& firsts = dispatcher.agreed().firsts;
    std::vector<Node> hosts = firsts;
    std::ranges::sort(hosts);
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    if (hosts.size() < 3) return group::find_topology(firsts, {});
    // The first node of each host tells by which network it reaches the other hosts, as runs of hosts with the same
    // network. Every node receives what all hosts send, so an entry for each pair of hosts would be too much.
    struct Run {
        std::uint32_t hosts;
        std::uint32_t carrier; // a digest of its name
    };
    std::vector<Run> mine;
    if (firsts[dispatcher.node()] == dispatcher.node())
        for (const Node host : hosts) {
            const auto carrier = static_cast<std::uint32_t>(base::fnv1a(dispatcher.channel().carrier(host)));
            // What a host reaches itself by means nothing: that entry extends the run before it.
            const bool goes_on = !mine.empty() && (mine.back().carrier == carrier || host == dispatcher.node());
            if (goes_on) ++mine.back().hosts;
            else mine.push_back({1, carrier});
        }
    const auto told = meeting.exchange(std::as_bytes(std::span(mine)));
    if (!told) return told.error();
    std::vector<std::vector<std::uint32_t>> carriers;
    for (const Node host : hosts) {
        std::vector<std::uint32_t>& row = carriers.emplace_back();
        Bytes left = (*told)[host];
        for (Run run{}; read_value(left, run) && run.hosts <= hosts.size() - row.size();
             left = left.subspan(sizeof run))
            row.insert(row.end(), run.hosts, run.carrier);
        if (row.size() != hosts.size() || !left.empty())
            return error(ErrorCode::misuse, "node {} runs another version of Kumi: run the same on all nodes", host);
        row[carriers.size() - 1] = row[carriers.size() > 1 ? 0 : 1]; // to itself
    }
    return group::find_topology(firsts, carriers);
}

/// What a message takes, as classes of networks go: on one host, where nodes may wait for a core, or between hosts.
group::Costs usual_costs(const engine::Dispatcher& dispatcher, unsigned nodes_on_host, unsigned cores) {
    constexpr auto usual = group::Origin::usual;
    const bool is_one_host = std::ranges::all_of(
        dispatcher.agreed().firsts, [&](Node first) { return first == dispatcher.agreed().firsts.front(); });
    if (!is_one_host) return {.overhead_us = 5, .latency_us = 20, .us_per_byte = 0.001, .origin = usual};
    // Where cores are few, whoever passes a message on keeps others from getting theirs: flat trees are best. Measured
    // with two of them, on which 11 members of 16 nodes had it after half the time.
    if (nodes_on_host > cores)
        return {.overhead_us = std::min(1.0, 0.05 * cores), .latency_us = 5, .us_per_byte = 0.0001, .origin = usual};
    return {.overhead_us = 0.3, .latency_us = 1.2, .us_per_byte = 0.0001, .origin = usual};
}

} // namespace

void Job::Ending::operator()(job::Membership* membership) const noexcept {
    if (is_owner) delete membership;
}
void Job::Ending::operator()(group::Groups* groups) const noexcept {
    if (is_owner) delete groups;
}

Job::Job(std::unique_ptr<job::Membership> membership, std::unique_ptr<group::Groups> groups,
         std::unique_ptr<engine::Dispatcher> dispatcher)
    : membership_(membership.release(), Ending{true}), groups_(groups.release(), Ending{true}),
      engine_(std::move(dispatcher)) {
    lent_.reset(new Job(Lend{}, *this));
    engine_.dispatcher().context().set_job(lent_.get());
}
Job::Job(Lend, Job& owner) noexcept
    : membership_(owner.membership_.get(), Ending{false}), groups_(owner.groups_.get(), Ending{false}),
      engine_(owner.engine_.dispatcher()) {}
Job::Job(Job&&) noexcept = default;
Job::~Job() = default;

Job& Call::job() const noexcept {
    KUMI_ASSERT(dispatcher_.context().job() != nullptr); // an engine without a Job: engine()
    return *static_cast<Job*>(dispatcher_.context().job());
}

Result<Job> Job::join(Handlers&& handlers) {
    const auto progress = progress_from_environment();
    if (!progress) return progress.error();
    auto joined = job::Membership::join();
    if (!joined) return joined.error();
    return start(*std::move(joined), std::move(handlers), *progress, {.owns_process = true});
}

Result<Job> Job::adopt(std::unique_ptr<boot::Session> session, std::unique_ptr<pm::Channel> channel,
                       Handlers&& handlers, Adoption adoption) {
    auto progress = progress_from_environment();
    if (!progress) return progress.error();
    progress->in_background &= adoption.may_use_background;
    return start(job::Membership(std::move(session), std::move(channel)), std::move(handlers), *progress,
                 std::move(adoption));
}

Result<Job> Job::start(job::Membership&& joined, Handlers&& handlers, engine::ProgressOptions progress,
                       Adoption adoption) {
    auto membership = std::make_unique<job::Membership>(std::move(joined));
    boot::Session& session = membership->session();
    if (adoption.owns_process) progress.on_late = [&session](std::string_view what) { session.report_late(what); };
    const auto give_up = [&](const Error& why) { return membership->give_up(why); };
    auto settings = settings_from_environment(adoption.groups);
    if (!settings) return give_up(settings.error());
    auto dispatcher =
        engine::Dispatcher::open(membership->channel(), std::move(handlers), {membership->patience(), progress});
    if (!dispatcher) return give_up(dispatcher.error());
    job::SessionMeeting meeting(session);
    if (auto met = engine::agree_on_handlers(**dispatcher, meeting, session.standing().host); !met)
        return give_up(met.error());
    auto topology = adoption.topology ? *std::move(adoption.topology) : topology_of(**dispatcher, meeting);
    if (!topology) return give_up(topology.error());
    const group::Costs usual =
        usual_costs(**dispatcher, session.standing().nodes_on_host, session.standing().cores_on_host);
    // Messages between two that have a core tell nothing of what it takes to get one.
    const bool is_crowded = session.standing().nodes_on_host > session.standing().cores_on_host;
    if (!settings->costs && is_crowded) settings->costs = usual;
    auto groups = std::make_unique<group::Groups>(**dispatcher, *std::move(topology), *settings, usual);
    Job job(std::move(membership), std::move(groups), *std::move(dispatcher));
    if (adoption.owns_process) {
        job.engine_.dispatcher().progress().link()->unasked().fail_exit();
        job.membership_->explain_signals();
    }
    job.engine_.dispatcher().loop().start(hold_of_handlers);
    return job;
}

const std::string& Job::host() const noexcept { return membership_->standing().host; }

group::Group Job::host_group() {
    Set here{node()};
    for (Node other = 0; other < nodes(); ++other)
        if (engine_.dispatcher().agreed().share_host(node(), other)) here.add(other);
    return *groups_->group(here);
}

const pm::Channel& Job::channel() const noexcept { return membership_->channel(); }

void Job::on_message(std::function<void(Message&)> handler) {
    engine_.dispatcher().messages().set_plain_handler(std::move(handler));
}

Result<void> Job::send_pieces(Node to, std::span<const Bytes> pieces) {
    return engine_.dispatcher().messages().send_plain(to, pieces);
}

} // namespace kumi
