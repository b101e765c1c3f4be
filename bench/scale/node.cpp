#include "contestant/measure.hpp"
#include "contestant/work.hpp"
#include "scale/hollow_channel.hpp"
#include "scale/scale.hpp"

#include "kumi/base/text/number_text.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/group/topology.hpp"
#include "kumi/kumi.hpp"

#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <malloc.h>
#include <memory>
#include <string>
#include <unistd.h>

namespace kumi::bench {
namespace {

void report_of(const char* metric, pm::Node nodes, double value) {
    report(fmt::format("scale.{}.{}", metric, nodes).c_str(), value);
}

// ---- one node, and others that do not exist

std::size_t heap_bytes() {
    const auto heap = ::mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

/// Which nodes pass a multicast on: computed for one node of each level of the tree, as each of them does.
double seconds_of_plan(pm::Node nodes) {
    constexpr pm::Node nodes_per_host = 4;
    std::vector<std::uint32_t> hosts;
    for (pm::Node node = 0; node < nodes; ++node) hosts.push_back(node / nodes_per_host * nodes_per_host);
    const group::Topology topology({std::move(hosts)});
    const group::Set all = group::Set::range(0, nodes);
    std::size_t children = 0;
    const double seconds =
        seconds_per_call([&] { children += group::children_of(all, 0, topology, {}).size(); }, engine_window);
    return children == 0 ? 0 : seconds / nodes;
}

int alone_node(pm::Node nodes) {
    Job job = must(Job::join()); // kumi run wants its nodes to join
    HollowChannel channel(nodes);
    const std::size_t before = heap_bytes();
    Handlers handlers;
    const auto ping = handlers.add("ping", [](Call&, std::uint64_t) {});
    auto opened = engine::Dispatcher::open(channel, std::move(handlers),
                                           {.patience = {}, .progress = {.in_background = false, .core = {}}});
    engine::Engine engine(must(std::move(opened)));
    report_of("memory", nodes, static_cast<double>(heap_bytes() - before) / nodes);

    const double sleep = seconds_per_call(
        [&] {
            const std::uint64_t end = channel.sleeps() + 1;
            engine.wait_until([&] { return channel.sleeps() >= end; });
        },
        engine_window);
    report_of("sleep", nodes, sleep * 1e9);
    pm::Node to = 0;
    const double sync = seconds_per_call(
        [&] {
            to = to % (nodes - 1) + 1;
            must(engine.send(to, ping, std::uint64_t{5}));
            must(engine.sync());
        },
        engine_window);
    report_of("sync", nodes, sync * 1e9);
    report_of("plan", nodes, seconds_of_plan(nodes) * 1e9);
    return 0;
}

// ---- processes

/// Since this process was started.
double age_seconds() {
    std::ifstream file("/proc/self/stat");
    std::string text;
    std::getline(file, text);
    text.erase(0, text.rfind(')') + 2); // the name may have blanks
    unsigned long long ticks = 0;
    for (std::size_t field = 3, at = 0; at != std::string::npos;
         ++field, at = text.find(' ', at), at += at != text.npos)
        if (field == 22) {
            ticks = std::stoull(text.substr(at));
            break;
        }
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 -
           static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Memory of this process alone.
double private_kilobytes() {
    std::ifstream file("/proc/self/smaps_rollup");
    double sum = 0;
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("Private_")) sum += std::stod(line.substr(line.find(':') + 1));
    return sum;
}

int together_node() {
    Job job = must(Job::join());
    must(job.barrier());
    const double age = age_seconds();
    const pm::Node nodes = job.nodes();
    if (job.node() == 0) report_of("start", nodes, age * 1e3 / nodes);
    const double kilobytes = must(job.world().allreduce(private_kilobytes(), group::sum)) / nodes;
    if (job.node() == 0) report_of("resident", nodes, kilobytes);
    constexpr int barriers = 100;
    const double seconds = seconds_each(barriers, [&] { must(job.barrier()); });
    if (job.node() == 0) report_of("barrier", nodes, seconds * 1e6 / nodes);
    return 0;
}

} // namespace

int scale_node(std::span<const std::string> words) {
    if (words.size() == 2 && words[0] == "together") return together_node();
    const auto nodes = words.size() == 2 && words[0] == "alone" ? base::number_in<pm::Node>(words[1]) : std::nullopt;
    if (!nodes || *nodes < 2) return fail(error("kumi-bench node scale: alone or together, and how many nodes"));
    return alone_node(*nodes);
}

} // namespace kumi::bench
