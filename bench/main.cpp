#include "commands.hpp"

#include "composite.hpp"
#include "composite_node.hpp"
#include "engine/engine.hpp"
#include "engine/node.hpp"
#include "group/group.hpp"
#include "group/node.hpp"
#include "shmem.hpp"
#include "shmem_node.hpp"
#include "simulated/simulated.hpp"
#include "udp.hpp"
#include "udp_node.hpp"

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

namespace kumi::tools {
namespace {

constexpr std::array shmem_peers{"openmpi", "mpich"};

/// What can be measured, and beside whom.
struct BenchCase {
    const char* name;
    std::span<const char* const> peers;
    bench::Table (*run)(const bench::BenchOptions&);
    std::vector<std::string> (*rows)(); // null: it is measured as a whole
};
const std::array bench_cases{BenchCase{"shmem", shmem_peers, bench::run_shmem_bench, nullptr},
                             BenchCase{"udp", bench::udp_peers(), bench::run_udp_bench, bench::udp_rows},
                             BenchCase{"composite", bench::composite_peers(), bench::run_composite_bench, bench::composite_rows},
                             BenchCase{"engine", bench::engine_peers(), bench::run_engine_bench, bench::engine_rows},
                             BenchCase{"group", bench::group_peers(), bench::run_group_bench, bench::group_rows},
                             BenchCase{"simulated", bench::simulated_peers(), bench::run_simulated_bench, bench::simulated_rows}};

std::string case_names() {
    std::vector<std::string_view> names;
    for (const BenchCase& one : bench_cases) names.emplace_back(one.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

const BenchCase* find_case(const std::string& name) {
    const auto found = std::find_if(bench_cases.begin(), bench_cases.end(), [&](const BenchCase& one) { return one.name == name; });
    return found == bench_cases.end() ? nullptr : &*found;
}

struct Choices {
    std::string bench;
    std::vector<std::string> against;
    std::vector<std::string> rows;
    std::string json_path;
    std::string figures_folder;
    int rounds = 7;
    std::uint64_t seed = std::random_device()();
    bool check = false;
};

int complain(const std::string& text) { return std::fprintf(stderr, "kumi bench: %s\n", text.c_str()), 1; }

/// Shows what is going on, on a terminal only, and takes it away again.
void show_progress(const std::string& text) {
    if (::isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

/// A peer that the case does not know.
const std::string* unknown_peer(const BenchCase& one, const std::vector<std::string>& against) {
    for (const std::string& peer : against)
        if (std::find(one.peers.begin(), one.peers.end(), peer) == one.peers.end()) return &peer;
    return nullptr;
}

/// What is wrong with the rows that were named; empty if nothing is.
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
        return complain(fmt::format("--against: {} has no peer {}; there are: {}", chosen.name, *peer, fmt::join(chosen.peers, ", "))), 2;
    if (const std::string wrong = wrong_rows(chosen, choices.rows); !wrong.empty()) return complain("--rows: " + wrong), 2;
    std::ofstream json;
    if (!choices.json_path.empty()) { // before minutes of work, not after
        json.open(choices.json_path);
        if (!json) return complain(fmt::format("--json {}: cannot be written", choices.json_path));
    }
    if (std::error_code wrong; !choices.figures_folder.empty() && !std::filesystem::is_directory(choices.figures_folder) &&
                               !std::filesystem::create_directories(choices.figures_folder, wrong))
        return complain(fmt::format("--figures {}: {}", choices.figures_folder, wrong.message()));
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path prefix = own.parent_path().parent_path();
    bench::BenchOptions options{.peers = choices.against,
                                .rows = choices.rows,
                                .rounds = choices.rounds,
                                .own_path = own,
                                .peers_folder = prefix / "libexec/kumi",
                                .labs_folder = prefix / "share/kumi/labs",
                                .figures_folder = choices.figures_folder,
                                .seed = choices.seed,
                                .on_progress = show_progress};
    const bench::Table table = chosen.run(options);
    show_progress("");
    fmt::print("{}", table.text());
    if (json.is_open() && !(json << table.json() << std::flush)) return complain(fmt::format("--json {}: cannot be written", choices.json_path));
    if (!choices.check) return 0;
    int missed = 0;
    const auto report = table.check(prefix / "share/kumi/goals.toml", missed);
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

} // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("bench", "measure Kumi beside its peers and the machine's limit, in one run");
    auto choices = std::make_shared<Choices>();
    command->add_option("case", choices->bench, fmt::format("what to measure: {}", case_names()))->required()->type_name("CASE")->check([](const std::string& name) {
        return find_case(name) != nullptr ? "" : fmt::format("no case {}; there are: {}", name, case_names());
    });
    command->add_option("--against", choices->against, peers_help())->delimiter(',')->type_name("PEER,...");
    command->add_option("--rows", choices->rows, "all but shmem: only the rows whose names begin so, as udp.latency does; composite.soak is measured only so")->delimiter(',')->type_name("ROW,...");
    command->add_option("--rounds", choices->rounds, "how often each is measured")->type_name("COUNT")->check(CLI::Range(1, 1000))->capture_default_str();
    command->add_option("--seed", choices->seed, "composite.soak: of its faults, as an earlier run tells it")->type_name("NUMBER");
    command->add_option("--figures", choices->figures_folder, "simulated: also draw what it measures, as files in a folder")->type_name("FOLDER");
    command->add_option("--json", choices->json_path, "also write the rows to a file")->type_name("FILE");
    command->add_flag("--check", choices->check, "hold the rows against the goals; exit code 1 when one is missed");
    command->footer("Times alone say little on a shared machine: look at the ratios.");
    command->callback([=, &exit_code] { exit_code = run_bench(*choices); });

    // What the nodes of a benchmark run.
    CLI::App* node = app.add_subcommand("bench-node", "")->group("");
    auto words = std::make_shared<std::vector<std::string>>();
    node->add_option("what", *words)->required();
    node->callback([=, &exit_code] {
        const std::span<const std::string> all(*words);
        if (all.front() == "udp") exit_code = bench::udp_node(all.subspan(1));
        else if (all.front() == "composite") exit_code = bench::composite_node(all.subspan(1));
        else if (all.front() == "engine") exit_code = bench::engine_node(all.subspan(1));
        else if (all.front() == "group") exit_code = bench::group_node(all.subspan(1));
        else exit_code = bench::shmem_node(all.front());
    });
}

} // namespace kumi::tools
