#include "commands.hpp"

#include "shmem.hpp"
#include "shmem_node.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <unistd.h>

namespace kumi::tools {
namespace {

constexpr std::array peers_known{"openmpi", "mpich"};

struct Choices {
    std::string bench;
    std::vector<std::string> against;
    std::string json_path;
    int rounds = 7;
    bool check = false;
};

int complain(const std::string& text) { return std::fprintf(stderr, "kumi bench: %s\n", text.c_str()), 1; }

/// Shows what is going on, on a terminal only, and takes it away again.
void show_progress(const std::string& text) {
    if (::isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

int run_bench(const Choices& choices) {
    std::ofstream json;
    if (!choices.json_path.empty()) { // before minutes of work, not after
        json.open(choices.json_path);
        if (!json) return complain(fmt::format("--json {}: cannot be written", choices.json_path));
    }
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path prefix = own.parent_path().parent_path();
    bench::BenchOptions options{.peers = choices.against,
                                .rounds = choices.rounds,
                                .own_path = own,
                                .peers_folder = prefix / "libexec/kumi",
                                .on_progress = show_progress};
    const bench::Table table = bench::run_shmem_bench(options);
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

} // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("bench", "measure Kumi beside its peers and the machine's limit, in one run");
    auto choices = std::make_shared<Choices>();
    command->add_option("case", choices->bench, "what to measure: shmem")->required()->type_name("CASE")->check([](const std::string& name) {
        return name == "shmem" ? "" : fmt::format("no case {}; there is: shmem", name);
    });
    command->add_option("--against", choices->against, "peers to measure beside Kumi: openmpi, mpich")
        ->delimiter(',')
        ->type_name("PEER,...")
        ->check([](const std::string& peer) {
            const bool known = std::find(peers_known.begin(), peers_known.end(), peer) != peers_known.end();
            return known ? "" : fmt::format("no peer {}; there are: {}", peer, fmt::join(peers_known, ", "));
        });
    command->add_option("--rounds", choices->rounds, "how often each is measured")->type_name("COUNT")->check(CLI::Range(1, 1000))->capture_default_str();
    command->add_option("--json", choices->json_path, "also write the rows to a file")->type_name("FILE");
    command->add_flag("--check", choices->check, "hold the rows against the goals; exit code 1 when one is missed");
    command->footer("Times alone say little on a shared machine: look at the ratios.");
    command->callback([=, &exit_code] { exit_code = run_bench(*choices); });

    // What the nodes of a benchmark run.
    CLI::App* node = app.add_subcommand("bench-node", "")->group("");
    auto what = std::make_shared<std::string>();
    node->add_option("what", *what)->required();
    node->callback([=, &exit_code] { exit_code = bench::shmem_node(*what); });
}

} // namespace kumi::tools
