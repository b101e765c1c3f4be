// kumi-bench, the program that `kumi bench` starts. It is a program of its own, so that the command can be built
// without the benchmarks.

#include "composite/composite.hpp"
#include "composite/node.hpp"
#include "engine/engine.hpp"
#include "engine/node.hpp"
#include "group/group.hpp"
#include "group/node.hpp"
#include "harness/places.hpp"
#include "harness/progress.hpp"
#include "mpi/mpi.hpp"
#include "patterns/node.hpp"
#include "patterns/patterns.hpp"
#include "scale/scale.hpp"
#include "shmem/node.hpp"
#include "shmem/shmem.hpp"
#include "simulated/simulated.hpp"
#include "sizes/sizes.hpp"
#include "udp/node.hpp"
#include "udp/udp.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <unistd.h>

namespace kumi::bench {
namespace {

constexpr std::array shmem_peers{"openmpi", "mpich"};

/// A case of `kumi bench`, and the peers that it can be measured against.
struct BenchCase {
    const char* name;
    std::span<const char* const> peers;
    Table (*run)(const BenchOptions&);
    std::vector<std::string> (*rows)(); // null: the case is always measured whole
};
const std::array bench_cases{BenchCase{"shmem", shmem_peers, run_shmem_bench, nullptr},
                             BenchCase{"udp", udp_peers(), run_udp_bench, udp_rows},
                             BenchCase{"composite", composite_peers(), run_composite_bench, composite_rows},
                             BenchCase{"engine", engine_peers(), run_engine_bench, engine_rows},
                             BenchCase{"group", group_peers(), run_group_bench, group_rows},
                             BenchCase{"sizes", sizes_peers(), run_sizes_bench, sizes_rows},
                             BenchCase{"patterns", patterns_peers(), run_patterns_bench, patterns_rows},
                             BenchCase{"mpi", mpi_peers(), run_mpi_bench, mpi_rows},
                             BenchCase{"scale", {}, run_scale_bench, scale_rows},
                             BenchCase{"simulated", simulated_peers(), run_simulated_bench, simulated_rows}};

std::string case_names() {
    std::vector<std::string_view> names;
    for (const BenchCase& one : bench_cases) names.emplace_back(one.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

const BenchCase* find_case(const std::string& name) {
    const auto found =
        std::find_if(bench_cases.begin(), bench_cases.end(), [&](const BenchCase& one) { return one.name == name; });
    return found == bench_cases.end() ? nullptr : &*found;
}

struct Choices {
    std::string bench;
    std::vector<std::string> against;
    std::vector<std::string> rows;
    std::string json_path;
    std::string figures_folder;
    std::string cluster_file;
    int rounds = 7;
    std::uint64_t seed = std::random_device()();
    bool check = false;
};

int complain(const std::string& text) { return std::fprintf(stderr, "kumi bench: %s\n", text.c_str()), 1; }

/// The first peer of `against` that the case does not have; null if it has all.
const std::string* unknown_peer(const BenchCase& one, const std::vector<std::string>& against) {
    for (const std::string& peer : against)
        if (std::find(one.peers.begin(), one.peers.end(), peer) == one.peers.end()) return &peer;
    return nullptr;
}

/// What is wrong with the rows that `--rows` names; empty if nothing is.
std::string wrong_rows(const BenchCase& one, const std::vector<std::string>& starts) {
    if (starts.empty()) return "";
    if (one.rows == nullptr) return fmt::format("{} is measured as a whole", one.name);
    const std::vector<std::string> rows = one.rows();
    for (const std::string& start : starts)
        if (std::none_of(rows.begin(), rows.end(), [&](const std::string& row) { return row.starts_with(start); }))
            return fmt::format("{} has no row {}; there are: {}", one.name, start, fmt::join(rows, ", "));
    return "";
}

int run_bench(const Choices& choices) {
    const BenchCase& chosen = *find_case(choices.bench);
    if (const std::string* peer = unknown_peer(chosen, choices.against))
        return complain(fmt::format("--against: {} has no peer {}; there are: {}", chosen.name, *peer,
                                    fmt::join(chosen.peers, ", "))),
               2;
    if (const std::string wrong = wrong_rows(chosen, choices.rows); !wrong.empty())
        return complain("--rows: " + wrong), 2;
    std::ofstream json;
    if (!choices.json_path.empty()) { // checked now, not after minutes of work
        json.open(choices.json_path);
        if (!json) return complain(fmt::format("--json {}: cannot be written", choices.json_path));
    }
    if (std::error_code wrong; !choices.figures_folder.empty() &&
                               !std::filesystem::is_directory(choices.figures_folder) &&
                               !std::filesystem::create_directories(choices.figures_folder, wrong))
        return complain(fmt::format("--figures {}: {}", choices.figures_folder, wrong.message()));
    const Places places;
    ProgressLine progress(chosen.name, STDERR_FILENO, ::isatty(STDERR_FILENO) != 0, now());
    BenchOptions options{
        .peers = choices.against,
        .rows = choices.rows,
        .rounds = choices.rounds,
        .kumi_path = places.kumi,
        .node_path = places.own,
        .peers_folder = places.peers_folder,
        .labs_folder = places.labs_folder,
        .figures_folder = choices.figures_folder,
        .cluster_file = choices.cluster_file.empty() ? "" : std::filesystem::absolute(choices.cluster_file).string(),
        .seed = choices.seed,
        .on_progress = [&](const Step& step) { progress.show(step, now()); }};
    const Table table = chosen.run(options);
    progress.clear();
    fmt::print("{}", table.text());
    if (json.is_open() && !(json << table.json() << std::flush))
        return complain(fmt::format("--json {}: cannot be written", choices.json_path));
    if (!choices.check) return 0;
    int missed = 0;
    const auto report = table.check(places.goals, missed);
    if (!report) return complain(report.error().text());
    fmt::print("\n{}", *report);
    return missed == 0 ? 0 : 1;
}

std::string peers_help() {
    std::string text = "peers to measure beside Kumi";
    for (const BenchCase& one : bench_cases)
        if (!one.peers.empty()) text += fmt::format("; {}: {}", one.name, fmt::join(one.peers, ", "));
    return text;
}

/// Runs one node of a benchmark. `words`: the case, and what the node does there.
int run_node(std::span<const std::string> words) {
    if (words.empty()) return complain("node: which benchmark, and what?"), 2;
    if (words.front() == "udp") return udp_node(words.subspan(1));
    if (words.front() == "composite") return composite_node(words.subspan(1));
    if (words.front() == "engine") return engine_node(words.subspan(1));
    if (words.front() == "group") return group_node(words.subspan(1));
    if (words.front() == "sizes") return sizes_node(words.subspan(1));
    if (words.front() == "patterns") return patterns_node(words.subspan(1));
    if (words.front() == "scale") return scale_node(words.subspan(1));
    return shmem_node(words.front());
}

void add_options(CLI::App& app, Choices& choices) {
    app.add_option("case", choices.bench, fmt::format("what to measure: {}", case_names()))
        ->required()
        ->type_name("CASE")
        ->check([](const std::string& name) {
            return find_case(name) != nullptr ? "" : fmt::format("no case {}; there are: {}", name, case_names());
        });
    app.add_option("--against", choices.against, peers_help())->delimiter(',')->type_name("PEER,...");
    app.add_option("--rows", choices.rows,
                   "all but shmem: only the rows whose names begin so, as udp.latency does; composite.soak and "
                   "composite.steady are measured only so")
        ->delimiter(',')
        ->type_name("ROW,...");
    app.add_option("--rounds", choices.rounds, "how often each is measured")
        ->type_name("COUNT")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--cluster", choices.cluster_file,
                   "composite.soak, composite.steady: the hosts and networks that they have faults of, made in a lab")
        ->type_name("FILE")
        ->check(CLI::ExistingFile);
    app.add_option("--seed", choices.seed,
                   "composite.soak, composite.steady: of their faults, as an earlier run tells it")
        ->type_name("NUMBER");
    app.add_option("--figures", choices.figures_folder,
                   "sizes, patterns, scale, simulated: also draw what they measure, as files in a folder")
        ->type_name("FOLDER");
    app.add_option("--json", choices.json_path, "also write the rows to a file")->type_name("FILE");
    app.add_flag("--check", choices.check, "hold the rows against the goals; exit code 1 when one is missed");
    app.footer("Times alone say little on a shared machine: look at the ratios.");
}

} // namespace
} // namespace kumi::bench

int main(int argc, char** argv) {
    using namespace kumi::bench;
    // The words of a node are not parsed as options.
    if (argc > 1 && std::string_view(argv[1]) == "node")
        return run_node(std::vector<std::string>(argv + 2, argv + argc));
    Choices choices;
    CLI::App app{"Measures Kumi beside its peers and the machine's limit, in one run.", "kumi bench"};
    add_options(app, choices);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) { // --help
        return app.exit(asked);
    } catch (const CLI::ParseError& wrong) {
        std::fprintf(stderr, "kumi bench: %s; see kumi bench --help\n", wrong.what());
        return 2;
    }
    return run_bench(choices);
}
