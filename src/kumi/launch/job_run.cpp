#include "kumi/launch/job_run.hpp"

#include "kumi/launch/host/processes/limits.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <utility>

namespace kumi::launch {
namespace {

using namespace std::chrono_literals;

/// Between asking nodes to end because another failed, and killing them: the job is gone within a second.
constexpr auto failure_grace = 400ms;
/// The same after the user's own request: programs may have something to save.
constexpr auto request_grace = 5s;
/// For other hosts to tell that nodes which were killed have ended.
constexpr auto abandon_grace = 2s;
/// For output that is still in a pipe when its node has ended.
constexpr auto output_grace = 200ms;
/// For nodes to print what they wait for, before a job that takes too long ends.
constexpr auto waits_grace = 500ms;
/// For a reader that takes no output, when the user has asked for the end.
constexpr auto reader_grace = 1s;

/// Joining nodes give up after this time. The JobRun notices earlier that a node is missing; this is for nodes whose
/// JobRun has been stopped.
std::uint32_t answer_seconds_max(std::chrono::seconds join_max) {
    return join_max.count() == 0 ? 0u : static_cast<std::uint32_t>(join_max.count()) + 30;
}

} // namespace

// ---- starting

Result<std::unique_ptr<JobRun>> JobRun::make(JobOptions options, JobListener& listener) {
    auto plan = plan_job(options);
    if (!plan) return plan.error();
    auto fits = plan->is_here() ? host::check_limits(options.nodes) : host::check_host_limits(plan->parts.size());
    if (!fits) return fits.error();
    const auto keys = base::make_job_keys();
    if (!keys) return keys.error();
    return std::unique_ptr<JobRun>(new JobRun(std::move(options), *std::move(plan), *keys, listener));
}

JobRun::JobRun(JobOptions options, Plan plan, const base::JobKeys& keys, JobListener& listener)
    : options_(std::move(options)), plan_(std::move(plan)), listener_(listener),
      rendezvous_({.parts = plan_.parts,
                   .traffic_wanted = options_.report_traffic,
                   .stats_wanted = options_.report_stats,
                   .answer_seconds_max = answer_seconds_max(options_.join_max),
                   .keys = keys}),
      nodes_(options_.nodes), hosts_(options_, plan_, *this) {}

Result<void> JobRun::start(base::Descriptor input) {
    if (auto started = hosts_.start(std::move(input)); !started) return started;
    if (!hosts_.have_started() && options_.start_max.count() != 0) start_deadline_ = now() + options_.start_max;
    if (options_.run_max.count() != 0) run_deadline_ = now() + options_.run_max;
    return {};
}

void JobRun::on_started(std::uint32_t node, pid_t pid) {
    nodes_[node] = {.pid = pid, .running = true, .ended = false, .out_open = true, .err_open = true};
    ++running_count_;
    listener_.on_node_started(node, pid);
}

void JobRun::on_host_started(std::uint32_t host, std::uint32_t cores) {
    rendezvous_.set_cores(host, cores);
    if (!hosts_.have_started()) return;
    start_deadline_ = never;
    if (options_.must_join && options_.join_max.count() != 0) join_deadline_ = now() + options_.join_max;
}

// ---- events

Instant JobRun::deadline() const {
    Instant next = std::min({kill_deadline_, abandon_deadline_, output_deadline(), hosts_.deadline()});
    if (!has_failed_) next = std::min({next, start_deadline_, join_deadline_, run_deadline_});
    return next;
}

void JobRun::turn() {
    hosts_.turn();
    on_deadlines();
    if (!is_over_ && hosts_.have_ended()) drain();
}

void JobRun::on_deadlines() {
    const Instant time = now();
    if (time >= kill_deadline_) {
        hosts_.signal(SIGKILL);
        kill_deadline_ = never;
        abandon_deadline_ = time + abandon_grace;
    }
    if (time >= abandon_deadline_) {
        hosts_.abandon();
        abandon_deadline_ = never;
    }
    if (has_failed_) return;
    if (time >= start_deadline_) on_start_deadline();
    if (time >= join_deadline_) on_join_deadline();
    if (time >= run_deadline_) on_run_deadline();
}

void JobRun::on_start_deadline() {
    constexpr std::size_t named_max = 8;
    std::string names;
    std::size_t count = 0;
    for (std::size_t part = 0; part < plan_.parts.size(); ++part)
        if (!hosts_.has_started(part) && ++count <= named_max)
            names += (count == 1 ? "" : ", ") + plan_.parts[part].host;
    if (count > named_max) names += fmt::format(" and {} more", count - named_max);
    fail(1, fmt::format("host{} {} did not answer within {} s: up and reachable, without a password, by {}? "
                        "--start-timeout waits longer",
                        count == 1 ? "" : "s", names, options_.start_max.count(),
                        options_.rsh.empty() ? "ssh" : options_.rsh));
}

void JobRun::on_join_deadline() {
    join_deadline_ = never;
    if (rendezvous_.joined_count() == nodes_.size()) return;
    const bool nobody = rendezvous_.joined_count() == 0;
    const bool only_one = rendezvous_.joined_count() + 1 == nodes_.size();
    fail(1, nobody ? fmt::format("{} did not join the job within {} s: it called neither kumi::Job::join() nor "
                                 "MPI_Init; --no-join runs programs that will not, --join-timeout waits longer",
                                 options_.program, options_.join_max.count())
                   : fmt::format("node{} {} did not join within {} s; --join-timeout waits longer", only_one ? "" : "s",
                                 rendezvous_.missing(), options_.join_max.count()));
}

void JobRun::on_run_deadline() {
    run_deadline_ = never;
    if (hosts_.have_ended()) return;
    if (options_.must_join && !std::exchange(has_asked_at_deadline_, true)) {
        run_deadline_ = now() + waits_grace;
        return ask_for_waits();
    }
    constexpr int exit_code = 124; // as timeout(1) has it
    fail(exit_code, fmt::format("the job has not ended within {} s (--timeout)", options_.run_max.count()));
}

// ---- what nodes wait for

void JobRun::ask_for_waits(std::optional<std::uint32_t> but) {
    const auto frame = std::make_shared<const std::vector<std::byte>>(boot::encode(boot::Kind::report, {}));
    std::optional<std::uint32_t> silent;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
        if (node == but || !nodes_[node].running || rendezvous_.has_left(node)) continue;
        if (rendezvous_.is_of_kumi(node)) hosts_.send(node, frame);
        else if (rendezvous_.is_in_mpi(node) && !silent) silent = node;
    }
    if (silent)
        listener_.on_warning(fmt::format("MPI does not say what its processes wait for; a debugger shows it: gdb -p {} "
                                         "is node {} on {}",
                                         nodes_[*silent].pid, *silent,
                                         plan_.parts[part_of(plan_.parts, *silent)].host));
    if (rendezvous_.joined_count() != nodes_.size())
        listener_.on_warning(fmt::format("not joined yet: node {}", rendezvous_.missing()));
}

/// Only the first deadline is told: those that pass later are often its consequence.
void JobRun::on_late(std::uint32_t node, std::string_view what) {
    if (std::exchange(has_been_late_, true) || has_failed_) return;
    listener_.on_warning(fmt::format("a deadline has passed on {}: {}; the others:", describe(node), what));
    ask_for_waits(node);
}

// ---- events of hosts

void JobRun::on_frame(std::uint32_t node, boot::Frame frame) {
    if (frame.kind == boot::Kind::late) return on_late(node, text_of(frame.body));
    if (frame.kind == boot::Kind::mpi_aborted) return on_abort(node, frame.body);
    const std::size_t joined = rendezvous_.joined_count();
    for (const Reply& reply : rendezvous_.on_frame(node, std::move(frame))) hosts_.send(reply.node, reply.frame);
    if (const auto& reason = rendezvous_.failure(node))
        fail(1, fmt::format("{} cannot go on: {}", describe(node), *reason));
    if (rendezvous_.joined_count() != joined) check_missing();
}

/// As MPI_Abort has it: all processes end, with the code that one of them gives.
void JobRun::on_abort(std::uint32_t node, Bytes body) {
    const auto abort = host::decode_abort(body);
    if (!abort) return;
    const int code = (abort->code & 0xff) == 0 ? 1 : abort->code & 0xff;
    if (abort->text.empty()) fail(code, fmt::format("{} called MPI_Abort with code {}", describe(node), abort->code));
    else fail(code, fmt::format("{}: {}", describe(node), abort->text));
}

void JobRun::on_output(std::uint32_t node, host::Stream stream, std::string_view text) {
    bool& open = stream == host::Stream::out ? nodes_[node].out_open : nodes_[node].err_open;
    if (!open) return;
    open = !text.empty();
    listener_.on_output(node, stream, text);
}

void JobRun::on_host_lost(std::uint32_t host, const std::string& why) {
    const Part& part = plan_.parts[host];
    for (std::uint32_t node = part.first; node < part.first + part.count; ++node) forget_node(nodes_[node]);
    fail(1, why);
}

void JobRun::on_clock_difference(std::uint32_t host, std::int64_t nanoseconds) {
    listener_.on_warning(
        fmt::format("the clock of {} is {:.1f} s {} this host's; set them by the same time server, times of files and "
                    "logs will not fit",
                    plan_.parts[host].host, std::abs(static_cast<double>(nanoseconds)) / 1e9,
                    nanoseconds > 0 ? "ahead of" : "behind"));
}

void JobRun::on_input_taken(std::uint32_t bytes) { listener_.on_input_taken(bytes); }

// ---- ends of nodes

void JobRun::forget_node(NodeState& node) {
    if (node.running) --running_count_;
    node.running = false;
}

void JobRun::on_end(std::uint32_t node, int status) {
    forget_node(nodes_[node]);
    nodes_[node].ended = true;
    listener_.on_node_ended(node, status);
    if (has_failed_) return;
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        fail(128 + signal, fmt::format("{} was killed by signal {} ({}){}", describe(node), signal, ::strsignal(signal),
                                       WCOREDUMP(status) ? ", core dumped" : ""));
    } else if (WEXITSTATUS(status) != 0) {
        fail(WEXITSTATUS(status), fmt::format("{} exited with code {}", describe(node), WEXITSTATUS(status)));
    } else if (rendezvous_.is_in_mpi(node)) {
        fail(1, fmt::format("{} exited with code 0 without calling MPI_Finalize", describe(node)));
    } else if (rendezvous_.has_joined(node) && !rendezvous_.has_left(node)) {
        fail(1, fmt::format("{} exited with code 0 without leaving the job: let main() return, so that kumi::Job ends "
                            "before the process does",
                            describe(node)));
    }
    check_missing();
}

/// A node that has ended without joining is missed as soon as another has joined.
void JobRun::check_missing() {
    if (has_failed_ || rendezvous_.joined_count() == 0) return;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
        if (nodes_[node].ended && !rendezvous_.has_joined(node))
            return fail(1,
                        fmt::format("{} exited before it joined the job, and the others wait for it", describe(node)));
}

std::string JobRun::describe(std::uint32_t node) const {
    return fmt::format("node {} on {} (pid {})", node, plan_.parts[part_of(plan_.parts, node)].host, nodes_[node].pid);
}

// ---- the end of the job

bool JobRun::end(int signal) {
    const bool decides = !has_failed_;
    if (decides) end_ = {128 + signal, fmt::format("ended by signal {} ({})", signal, ::strsignal(signal))};
    has_failed_ = true;
    end_requested_ = true;
    is_cut_ = is_cut_ || is_draining_;
    if (kill_deadline_ != never) { // the second request: now
        signal = SIGKILL;
        abandon_deadline_ = now() + abandon_grace;
    }
    kill_deadline_ = now() + request_grace;
    hosts_.signal(signal);
    return decides;
}

void JobRun::fail(int code, const std::string& what) {
    if (has_failed_) return;
    has_failed_ = true;
    end_ = {code, what};
    listener_.on_failure(what, running_count_);
    hosts_.signal(SIGTERM);
    hosts_.signal(SIGCONT); // a stopped node cannot end
    kill_deadline_ = now() + failure_grace;
}

void JobRun::hold_output(bool hold) {
    if (hold == is_held_) return;
    is_held_ = hold;
    held_since_ = now();
    if (is_draining_) output_deadline_ = now() + output_grace; // the reader's time is not the nodes'
    hosts_.hold_output(hold);
}

Instant JobRun::output_deadline() const {
    if (!is_draining_ || is_over_) return never;
    if (is_cut_) return Instant{};
    if (!is_held_) return output_deadline_;
    return end_requested_ ? held_since_ + reader_grace : never;
}

/// Reads what the nodes printed before they ended. Helpers on other hosts have done so there.
void JobRun::drain() {
    if (!is_draining_) {
        is_draining_ = true;
        hosts_.kill_leftovers(); // they may hold pipes open
        held_since_ = now();
        output_deadline_ = now() + output_grace;
    }
    if (!hosts_.is_output_open() || now() >= output_deadline()) conclude();
}

void JobRun::conclude() {
    hosts_.read_rest(); // this process may have stood still for longer than any grace
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
        for (const host::Stream stream : {host::Stream::out, host::Stream::err}) on_output(node, stream, "");
    if (options_.must_join && rendezvous_.joined_count() == 0)
        fail(1,
             fmt::format("{} ended without joining the job: it called neither kumi::Job::join() nor MPI_Init; "
                         "--no-join runs programs that will not",
                         options_.program));
    is_over_ = true;
}

} // namespace kumi::launch
