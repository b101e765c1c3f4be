#include "simulated/simulated.hpp"

#include "harness/chart.hpp"
#include "harness/command.hpp"

#include "kumi/group/plan/tree.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace kumi::bench {
namespace {

constexpr std::chrono::seconds simulation_seconds_max{1800};
constexpr const char* peers_to_name[] = {"mpich", "tree", "create", "paper", "doubling"};
constexpr int figure_members[] = {8, 16, 32, 64, 128, 256};

struct Cell {
    std::string what; // "multicast", or "call"
    std::string machine;
    std::size_t bytes;
    int members;
    bool has_all_peers; // false: MPICH only

    std::string id() const { return fmt::format("simulated.{}.{}.{}.{}", what, machine, bytes, members); }
    RowKind row() const {
        if (what == "call")
            return {id(), "us", true,
                    fmt::format("until a master that is no member may go on, {} bytes to {} nodes", bytes, members)};
        return {id(), "us", true,
                fmt::format("{} bytes to {} nodes of {}, until the last of them has all", bytes, members, machine)};
    }
    /// The limit of networks with one port per node: the time of the latencies alone, plus that of the bytes alone.
    double limit_us() const {
        return group::time_of(static_cast<group::Node>(members), {.gap = 0.2, .hop = 1.2}) +
               static_cast<double>(bytes) * 1e-4;
    }
};

std::vector<Cell> all_cells() {
    std::vector<Cell> cells;
    for (const std::size_t bytes : {std::size_t{1024}, std::size_t{8192}, std::size_t{81920}, std::size_t{8388608}})
        for (const int members : figure_members) cells.push_back({"multicast", "xc30", bytes, members, true});
    for (const int members : {24, 100, 200}) cells.push_back({"multicast", "xc30", 81920, members, true});
    for (const int members : {2, 16, 256}) cells.push_back({"call", "xc30", 1024, members, false});
    for (const std::size_t bytes : {1024u, 8192u, 81920u, 1048576u})
        cells.push_back({"multicast", "thin", bytes, 1024, false});
    for (const std::size_t bytes : {1024u, 8192u, 81920u}) cells.push_back({"multicast", "large", bytes, 4096, false});
    return cells;
}

/// One contestant in one cell.
struct Run {
    const Cell* cell;
    std::string who;

    std::vector<std::string> words(const BenchOptions& options) const {
        const std::string does = who != "kumi"          ? (who == "mpich" ? "bcast" : who)
                                 : cell->what == "call" ? "call"
                                                        : "kumi";
        return {options.peers_folder + "/kumi-bench-simulated", does, cell->machine, std::to_string(cell->bytes),
                std::to_string(cell->members)};
    }
};

std::vector<Run> runs_of(const BenchOptions& options, const std::vector<Cell>& cells) {
    std::vector<Run> runs;
    for (const Cell& cell : cells) {
        runs.push_back({&cell, "kumi"});
        for (const std::string& peer : options.peers)
            if (cell.what == "multicast" && (cell.has_all_peers || peer == "mpich")) runs.push_back({&cell, peer});
    }
    return runs;
}

/// Runs simulations, as many at a time as there are cores, and keeps results by contestant and cell.
class Results {
public:
    Results(const BenchOptions& options, const std::vector<Run>& runs, Table& table)
        : options_(options), runs_(runs), table_(table) {
        std::vector<std::future<void>> workers;
        for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
            workers.push_back(std::async(std::launch::async, [this] { work(); }));
        for (auto& worker : workers) worker.get();
    }

    Curve curve(const std::string& who, const std::string& name, const std::vector<Cell>& cells,
                std::size_t bytes) const {
        Curve curve{name, {}};
        for (const Cell& cell : cells) {
            if (!cell.has_all_peers || cell.bytes != bytes ||
                std::ranges::find(figure_members, cell.members) == std::end(figure_members))
                continue;
            const auto found = microseconds_.find({who, cell.id()});
            if (found != microseconds_.end()) curve.points.emplace_back(cell.members, found->second);
        }
        return curve;
    }

private:
    void work() {
        for (std::unique_lock lock(mutex_); next_ < runs_.size();) {
            const Run& run = runs_[next_++];
            options_.on_progress({fmt::format("{} of {}: {}, {}", next_, runs_.size(), run.cell->id(), run.who), 1, 1,
                                  static_cast<double>(next_ - 1) / static_cast<double>(runs_.size())});
            lock.unlock();
            const auto heard = run_contestant(run.words(options_), {}, simulation_seconds_max);
            lock.lock();
            if (!heard) table_.note(fmt::format("{}, {}: {}", run.who, run.cell->id(), heard.error().text()));
            else if (heard->results.empty())
                table_.note(fmt::format("{}, {}: the simulation told nothing", run.who, run.cell->id()));
            else
                table_.add(run.who, run.cell->id(),
                           microseconds_[{run.who, run.cell->id()}] = heard->results.begin()->second);
        }
    }

    const BenchOptions& options_;
    const std::vector<Run>& runs_;
    Table& table_;
    std::mutex mutex_;
    std::size_t next_ = 0;
    std::map<std::pair<std::string, std::string>, double> microseconds_;
};

/// Draws one figure for each size. Those of 80 KB and 8 MB are in the paper, too.
void draw_figures(const std::string& folder, const std::vector<Cell>& cells, const Results& results, Table& table) {
    struct Figure {
        std::size_t bytes;
        const char* file;
        const char* title;
    };
    constexpr Figure figures[] = {{1024, "multicast_1KB.svg", "1 KB, simulated XC30"},
                                  {8192, "multicast_8KB.svg", "8 KB, simulated XC30"},
                                  {81920, "figure9_80KB.svg", "80 KB, simulated XC30 (the paper's figure 9)"},
                                  {8388608, "figure8_8MB.svg", "8 MB, simulated XC30 (the paper's figure 8)"}};
    for (const Figure& figure : figures) {
        std::vector<Curve> curves{results.curve("kumi", "Kumi", cells, figure.bytes),
                                  results.curve("mpich", "MPI_Bcast (MPICH)", cells, figure.bytes),
                                  results.curve("tree", "MPI_Bcast (tree only)", cells, figure.bytes),
                                  results.curve("create", "create_group + MPI_Bcast", cells, figure.bytes),
                                  results.curve("paper", "the paper's algorithm", cells, figure.bytes),
                                  results.curve("doubling", "the same with doubling", cells, figure.bytes)};
        std::erase_if(curves, [](const Curve& curve) { return curve.points.empty(); });
        if (curves.empty()) continue;
        draw(folder, figure.file, chart(figure.title, "members", "us until the last member has it", curves), table);
    }
}

/// "0.35 to 0.59": the smallest and the largest quotient of two curves. Nothing if not both have all points.
std::optional<std::string> quotients(const Curve& dividend, const Curve& divisor) {
    if (dividend.points.size() != std::size(figure_members) || divisor.points.size() != dividend.points.size())
        return {};
    std::vector<double> values;
    for (std::size_t i = 0; i < dividend.points.size(); ++i)
        values.push_back(dividend.points[i].second / divisor.points[i].second);
    const auto [least, most] = std::ranges::minmax(values);
    return fmt::format("{:.2f} to {:.2f}", least, most);
}

/// Says which part of the paper's results comes from the MPI_Bcast that the paper compares its algorithm with.
void explain_paper(const std::vector<Cell>& cells, const Results& results, Table& table) {
    struct Figure {
        std::size_t bytes;
        const char* size;
    };
    for (const Figure& figure : {Figure{81920, "80 KB"}, Figure{8388608, "8 MB"}}) {
        const auto curve = [&](const char* who) { return results.curve(who, "", cells, figure.bytes); };
        const auto of_tree = quotients(curve("paper"), curve("tree"));
        const auto of_mpich = quotients(curve("paper"), curve("mpich"));
        const auto doubling = quotients(curve("doubling"), curve("mpich"));
        if (!of_tree || !of_mpich || !doubling) continue;
        table.note(fmt::format("{}: the paper's algorithm takes {} times as long as an MPI_Bcast that has only a tree, "
                               "and {} times as long as MPICH's, which scatters such messages, too; with doubling it "
                               "takes {} times as long as MPICH's",
                               figure.size, *of_tree, *of_mpich, *doubling));
    }
}

} // namespace

Table run_simulated_bench(const BenchOptions& options) {
    std::vector<Cell> cells = all_cells();
    std::erase_if(cells, [&](const Cell& cell) { return !is_asked_for(options, cell.id()); });
    std::vector<RowKind> rows;
    for (const Cell& cell : cells) rows.push_back(cell.row());
    Table table(std::move(rows), options.peers);
    for (const Cell& cell : cells)
        if (cell.what == "multicast") table.add("limit", cell.id(), cell.limit_us());
    const std::vector<Run> runs = runs_of(options, cells);
    const Results results(options, runs, table);
    explain_paper(cells, results, table);
    if (!options.figures_folder.empty()) draw_figures(options.figures_folder, cells, results, table);
    return table;
}

std::vector<std::string> simulated_rows() {
    std::vector<std::string> names;
    for (const Cell& cell : all_cells()) names.push_back(cell.id());
    return names;
}

std::span<const char* const> simulated_peers() noexcept { return peers_to_name; }

} // namespace kumi::bench
