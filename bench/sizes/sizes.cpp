#include "sizes/sizes.hpp"

#include "contestant/work.hpp"
#include "harness/chart.hpp"
#include "harness/job_bench.hpp"
#include "harness/mpi.hpp"
#include "harness/words.hpp"

#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kumi::bench {
namespace {

constexpr const char* peers_to_name[] = {"openmpi", "mpich"};
constexpr const char* two_hosts = "two_hosts.toml";
constexpr const char* places[] = {"shmem", "udp"};

struct Metric {
    const char* name;
    const char* unit;
    bool is_less_better;
    const char* what;
    const char* axis;
};
constexpr Metric metrics[] = {
    {"latency", "us", true, "one way, half a ping-pong, private memory to private memory", "Latency, us one way"},
    {"bandwidth", "MB/s", false, "one way, private memory to private memory", "Bandwidth, MB/s"}};

std::string title_of(const std::string& place) {
    return fmt::format("Messages between two nodes {}", place == "shmem" ? "on one host" : "on two hosts (veth)");
}

std::string row_id(const Metric& metric, const std::string& place, std::size_t bytes) {
    return fmt::format("sizes.{}.{}.{}", metric.name, place, bytes);
}

std::vector<JobCase> cases() {
    std::vector<JobCase> all;
    for (const char* place : places)
        for (const Metric& metric : metrics) {
            JobCase one{metric.name, place, 2, {}};
            for (const std::size_t bytes : all_sizes)
                one.rows.push_back({row_id(metric, place, bytes), metric.unit, metric.is_less_better,
                                    fmt::format("{}, {}", base::readable_bytes(bytes), metric.what)});
            all.push_back(std::move(one));
        }
    return all;
}

std::string lab_file(const JobCase& one) { return one.place == "udp" ? two_hosts : ""; }

std::vector<Entry> contestants(const BenchOptions& options, const JobCase& one, const OwnLab* lab) {
    const Words words{"sizes", one.what, one.place};
    std::vector<Entry> entries{job_entry(options, one, lab, lab_file(one), words)};
    for (const std::string& peer : options.peers)
        entries.push_back(lab == nullptr ? mpi_here(options, peer, 2, true, words)
                                         : mpi_in_lab(options, *lab, peer, {"d0,d1", "2", "", words}, false));
    return entries;
}

/// What the NICAM paper says of its network, as a line through these numbers: 20 us one way, 105 MB/s.
Curve nicam(const Metric& metric) {
    constexpr double start_us = 20, bytes_per_us = 105;
    Curve curve{"NICAM, 1999", {}};
    for (const std::size_t size : all_sizes) {
        const auto bytes = static_cast<double>(size);
        const double us = start_us + bytes / bytes_per_us;
        curve.points.emplace_back(bytes, metric.is_less_better ? us : bytes / us);
    }
    return curve;
}

std::vector<Curve> curves(const Table& table, const BenchOptions& options, const Metric& metric, const char* place) {
    Words who{"kumi"};
    append(who, options.peers);
    std::vector<std::pair<double, std::string>> rows;
    for (const std::size_t bytes : all_sizes)
        rows.emplace_back(static_cast<double>(bytes), row_id(metric, place, bytes));
    std::vector<Curve> all;
    for (const std::string& one : who) {
        Curve curve = measured_curve(table, one, one == "kumi" ? "Kumi" : one, rows);
        if (!curve.points.empty()) all.push_back(std::move(curve));
    }
    return all;
}

void draw_curves(const BenchOptions& options, const Metric& metric, const char* place, std::vector<Curve> all,
                 Table& table) {
    if (std::string_view(place) == "udp") all.push_back(nicam(metric));
    draw(options.figures_folder, fmt::format("{}-{}.svg", metric.name, place),
         chart(title_of(place), "bytes of a message", metric.axis, all), table);
}

} // namespace

double half_bandwidth_bytes(const std::vector<std::pair<double, double>>& points) {
    double half = 0;
    for (const auto& point : points) half = std::max(half, point.second / 2);
    const auto reached = std::ranges::find_if(points, [&](const auto& point) { return point.second >= half; });
    if (reached == points.begin()) return reached->first;
    const auto before = reached - 1;
    const double part = std::log(half / before->second) / std::log(reached->second / before->second);
    return before->first * std::pow(reached->first / before->first, part);
}

Table run_sizes_bench(const BenchOptions& options) {
    Table table = run_job_bench(options, {"sizes", cases(), lab_file, contestants});
    for (const char* place : places)
        for (const Metric& metric : metrics) {
            const std::vector<Curve> all = curves(table, options, metric, place);
            if (all.empty()) continue;
            if (!metric.is_less_better)
                for (const Curve& curve : all)
                    table.note(fmt::format(
                        "{} {}: half of its greatest bandwidth with messages of {}", curve.name, place,
                        base::readable_bytes(static_cast<std::size_t>(half_bandwidth_bytes(curve.points)))));
            if (!options.figures_folder.empty()) draw_curves(options, metric, place, all, table);
        }
    return table;
}

std::vector<std::string> sizes_rows() { return row_names(cases()); }

std::span<const char* const> sizes_peers() noexcept { return peers_to_name; }

} // namespace kumi::bench
