#include "commands.hpp"

#include "composite.hpp"
#include "composite_node.hpp"
#include "shmem.hpp"
#include "shmem_node.hpp"
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
};
const std::array bench_cases{BenchCase{"shmem", shmem_peers, bench::run_shmem_bench},
                             BenchCase{"udp", bench::udp_peers(), bench::run_udp_bench},
                             BenchCase{"composite", {}, bench::run_composite_bench}};

const BenchCase* find_case(const std::string& name) {
    const auto found = std::find_if(bench_cases.begin(), bench_cases.end(), [&](const BenchCase& one) { return one.name == name; });
    return found == bench_cases.end() ? nullptr : &*found;
}

struct Choices {
    std::string bench;
    std::vector<std::string> against;
    std::vector<std::string> rows;
    std::string json_path;
    int rounds = 7;
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

int run_bench(const Choices& choices) {
    const BenchCase& chosen = *find_case(choices.bench);
    if (const std::string* peer = unknown_peer(chosen, choices.against))
        return complain(fmt::format("--against: {} has no peer {}; there are: {}", chosen.name, *peer, fmt::join(chosen.peers, ", "))), 2;
    if (!choices.rows.empty() && choices.bench != "udp") return complain(fmt::format("--rows: {} is measured as a whole", choices.bench)), 2;
    std::ofstream json;
    if (!choices.json_path.empty()) { // before minutes of work, not after
        json.open(choices.json_path);
        if (!json) return complain(fmt::format("--json {}: cannot be written", choices.json_path));
    }
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path prefix = own.parent_path().parent_path();
    bench::BenchOptions options{.peers = choices.against,
                                .rows = choices.rows,
                                .rounds = choices.rounds,
                                .own_path = own,
                                .peers_folder = prefix / "libexec/kumi",
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
    command->add_option("case", choices->bench, "what to measure: shmem, udp, composite")->required()->type_name("CASE")->check([](const std::string& name) {
        return find_case(name) != nullptr ? "" : fmt::format("no case {}; there are: shmem, udp, composite", name);
    });
    command->add_option("--against", choices->against, peers_help())->delimiter(',')->type_name("PEER,...");
    command->add_option("--rows", choices->rows, "udp: only the rows whose names begin so, as udp.latency does")->delimiter(',')->type_name("ROW,...");
    command->add_option("--rounds", choices->rounds, "how often each is measured")->type_name("COUNT")->check(CLI::Range(1, 1000))->capture_default_str();
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
        else exit_code = bench::shmem_node(all.front());
    });
}

} // namespace kumi::tools
