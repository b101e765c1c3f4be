#include "scale/scale.hpp"

#include "harness/chart.hpp"
#include "harness/job_bench.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

constexpr int alone_nodes[] = {4, 16, 64, 256, 1024, 4096};
constexpr int together_nodes[] = {2, 8, 32, 128, 512};

struct Metric {
    const char* name;
    const char* unit;
    const char* what;
};
constexpr Metric of_alone[] = {
    {"sleep", "ns", "a thread that waits, from one sleep to the next"},
    {"sync", "ns", "a put to one node and a sync() for it"},
    {"plan", "ns", "which nodes pass a multicast to all nodes on, four on each host; for each member"},
    {"memory", "B", "of an engine, for each node of its job"},
};
constexpr Metric of_together[] = {
    {"start", "ms", "until all nodes have joined, for each node"},
    {"barrier", "us", "a barrier of all nodes, for each node"},
    {"resident", "KB", "memory of a node that no other shares"},
};

std::string row_id(const Metric& metric, int nodes) { return fmt::format("scale.{}.{}", metric.name, nodes); }

JobCase case_of(const char* what, std::span<const Metric> metrics, int nodes, int processes) {
    JobCase made{what, std::to_string(nodes), processes, {}};
    for (const Metric& metric : metrics)
        made.rows.push_back(
            {row_id(metric, nodes), metric.unit, true,
             fmt::format("{}; {} nodes{}", metric.what, nodes, processes == 1 ? ", of which one exists" : "")});
    return made;
}

std::vector<JobCase> cases() {
    std::vector<JobCase> all;
    for (const int nodes : alone_nodes) all.push_back(case_of("alone", of_alone, nodes, 1));
    for (const int nodes : together_nodes) all.push_back(case_of("together", of_together, nodes, nodes));
    return all;
}

std::string no_lab(const JobCase&) { return ""; }

std::vector<Entry> contestants(const BenchOptions& options, const JobCase& one, const OwnLab* lab) {
    return {job_entry(options, one, lab, "", {"scale", one.what, one.place})};
}

std::vector<Curve> curves(const Table& table, std::span<const Metric> metrics, std::span<const int> sizes) {
    std::vector<Curve> all;
    for (const Metric& metric : metrics) {
        std::vector<std::pair<double, std::string>> rows;
        for (const int nodes : sizes) rows.emplace_back(nodes, row_id(metric, nodes));
        Curve curve = measured_curve(table, "kumi", fmt::format("{}, {}", metric.name, metric.unit), rows);
        if (!curve.points.empty()) all.push_back(std::move(curve));
    }
    return all;
}

void draw_curves(const std::string& folder, const std::string& file, const std::string& title,
                 const std::vector<Curve>& curves, Table& table) {
    if (curves.empty()) return;
    draw(folder, file, chart(title, "nodes of the job", "see the curves' names", curves), table);
}

} // namespace

Table run_scale_bench(const BenchOptions& options) {
    Table table = run_job_bench(options, {"scale", cases(), no_lab, contestants});
    if (options.figures_folder.empty()) return table;
    draw_curves(options.figures_folder, "scale-alone.svg", "What calls cost as the job grows",
                curves(table, of_alone, alone_nodes), table);
    draw_curves(options.figures_folder, "scale-together.svg", "Processes on one machine, for each node",
                curves(table, of_together, together_nodes), table);
    return table;
}

std::vector<std::string> scale_rows() { return row_names(cases()); }

} // namespace kumi::bench
