#include "kumi/launch/job_hosts.hpp"

#include "kumi/base/system/keys.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/launch/host/processes/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <unistd.h>

namespace kumi::launch {
namespace {

using host::Source;
using remote::JobOrder;
using remote::RemoteHost;

/// The working folder, by the name that the user knows, because other hosts may know the folder by that name, too.
std::string own_folder() {
    std::error_code wrong;
    const char* const named = std::getenv("PWD");
    if (named != nullptr && named[0] == '/' && std::filesystem::equivalent(named, ".", wrong)) return named;
    return std::filesystem::current_path(wrong);
}

/// The variables that nodes on other hosts get, over what those hosts have of their own.
std::vector<std::string> environment_for_hosts(const std::vector<std::string>& added) {
    std::vector<std::string> variables = host::without_other_launchers(host::own_environment());
    std::erase_if(variables, [](const std::string& variable) { return host::is_of_host(host::name_of(variable)); });
    return host::with(std::move(variables), added);
}

/// A name that no other job has. Where the system gives no random numbers, one that no job of this host has now.
std::string new_job_name() {
    std::uint64_t number = 0;
    if (!base::fill_with_random(std::as_writable_bytes(std::span(&number, 1)), "naming the job"))
        number = static_cast<std::uint64_t>(::getpid());
    return fmt::format("kumi-{:016x}", number);
}

} // namespace

JobHosts::JobHosts(const JobOptions& options, const Plan& plan, remote::RemoteListener& listener)
    : options_(options), plan_(plan), job_name_(options.must_join ? new_job_name() : ""), listener_(listener) {}

JobHosts::~JobHosts() { children_.reset(); }

// ---- starting

Result<void> JobHosts::start(base::Descriptor input) {
    auto children = host::Children::open(options_.owns_process ? host::Orphans::ours : host::Orphans::marked);
    if (!children) return children.error();
    children_.emplace(*std::move(children));
    auto poller = host::Poller::open();
    if (!poller) return poller.error();
    poller_.emplace(*std::move(poller));
    return plan_.is_here() ? start_here(std::move(input)) : start_elsewhere();
}

Result<void> JobHosts::start_here(base::Descriptor input) {
    auto program = host::find_program(options_.program);
    if (!program) return program.error();
    std::optional<host::JobMap> mpi;
    if (!job_name_.empty()) mpi = host::JobMap{job_name_, plan_.parts, 0, options_.mpi_over_kumi};
    here_.emplace(host::NodesOptions{.first = 0,
                                     .count = options_.nodes,
                                     .nodes = options_.nodes,
                                     .program = *std::move(program),
                                     .arguments = options_.arguments,
                                     .environment = host::with(host::own_environment(), options_.environment_added),
                                     .bind = options_.bind,
                                     .terminal = options_.terminal,
                                     .input = std::move(input),
                                     .cluster = {},
                                     .mpi = std::move(mpi)},
                  *poller_, *children_, listener_);
    if (auto started = here_->start(); !started) return started;
    listener_.on_host_started(0, base::cores_allowed());
    return {};
}

Result<void> JobHosts::start_elsewhere() {
    const auto agent = remote::find_agent(options_.rsh, options_.start_max);
    if (!agent) return agent.error();
    JobOrder order{.nodes = options_.nodes,
                   .bind = options_.bind,
                   .folder = own_folder(),
                   .program = options_.program,
                   .arguments = options_.arguments,
                   .environment = environment_for_hosts(options_.environment_added),
                   .cluster_text = plan_.cluster_text,
                   .job_name = job_name_,
                   .parts = {},
                   .mpi_over_kumi = options_.mpi_over_kumi};
    if (!job_name_.empty()) order.parts = plan_.parts;
    if (options_.terminal) {
        order.is_terminal = true;
        order.rows = options_.terminal->ws_row;
        order.columns = options_.terminal->ws_col;
    }
    for (std::uint32_t part = 0; part < plan_.parts.size(); ++part) {
        RemoteHost& remote = remotes_.emplace_back(order_for(part, *agent, order), *poller_, *children_, listener_);
        if (auto started = remote.start(); !started) return started;
    }
    return {};
}

remote::RemoteOptions JobHosts::order_for(std::uint32_t part, const remote::Agent& agent,
                                          const remote::JobOrder& order) const {
    std::error_code wrong;
    const Part& mine = plan_.parts[part];
    remote::RemoteOptions there{
        .index = part,
        .name = mine.host,
        .helper = {.program = agent.program, .arguments = agent.words, .environment = host::own_environment()},
        .agent = agent.text,
        .kumi_path = std::filesystem::read_symlink("/proc/self/exe", wrong),
        .version = options_.version,
        .order = order};
    there.order.first = mine.first;
    there.order.count = mine.count;
    if (names_this_host(mine.host, base::host_name())) { // needs no agent
        there.agent = "its helper";
        there.helper.program = there.kumi_path;
        there.helper.arguments = {"host-helper"};
    } else {
        for (std::string& word : remote::words_for(mine.host, there.kumi_path))
            there.helper.arguments.push_back(std::move(word));
    }
    return there;
}

bool JobHosts::have_started() const {
    return here_ ||
           std::all_of(remotes_.begin(), remotes_.end(), [](const RemoteHost& remote) { return remote.has_started(); });
}

// ---- events

Instant JobHosts::deadline() const {
    Instant next = never;
    for (const RemoteHost& remote : remotes_) next = std::min(next, remote.deadline());
    return next;
}

void JobHosts::turn() {
    for (const host::Event& event : poller_->wait(now())) on_event(event);
    const Instant time = now();
    for (RemoteHost& remote : remotes_) remote.on_deadline(time);
}

void JobHosts::on_event(const host::Event& event) {
    switch (event.source) {
    case Source::boot:
    case Source::out:
    case Source::err:
    case Source::pmi:
    case Source::pmix: return here_->on_event(event.source, event.index);
    case Source::link:
    case Source::link_errors: return remotes_[event.index].on_event(event.source, event.index);
    default: return;
    }
}

void JobHosts::on_child_end(pid_t pid, int status) {
    if (!children_ || !children_->on_end(pid)) return;
    if (here_) here_->on_child_end(pid, status);
    for (RemoteHost& remote : remotes_) remote.on_child_end(pid, status);
}

// ---- orders

void JobHosts::send(std::uint32_t node, const host::SharedFrame& frame) {
    if (here_) here_->send(node, frame);
    else if (node != host::every_node) remotes_[part_of(plan_.parts, node)].send(node, frame);
    else
        for (RemoteHost& remote : remotes_) remote.send(node, frame);
}

void JobHosts::send_input(Bytes bytes) {
    if (!remotes_.empty()) remotes_[0].send_input(bytes);
}

void JobHosts::signal(int number) {
    if (here_) here_->signal(number);
    for (RemoteHost& remote : remotes_) remote.signal(number);
}

void JobHosts::hold_output(bool hold) {
    if (here_) here_->hold_output(hold);
    for (RemoteHost& remote : remotes_) remote.hold_output(hold);
}

void JobHosts::abandon() {
    for (RemoteHost& remote : remotes_) remote.abandon();
}

// ---- the end

bool JobHosts::have_ended() const {
    if (here_) return here_->is_over();
    return std::all_of(remotes_.begin(), remotes_.end(), [](const RemoteHost& remote) { return remote.is_over(); });
}

void JobHosts::read_rest() {
    if (here_) here_->read_rest();
}

} // namespace kumi::launch
