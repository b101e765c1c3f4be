#include "mpi/mpi.hpp"

#include "harness/mpi.hpp"
#include "harness/stage.hpp"
#include "harness/words.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace kumi::bench {
namespace {

constexpr std::array<const char*, 2> peers{"openmpi", "mpich"};
constexpr int launch_nodes[] = {4, 16};
constexpr std::chrono::seconds entry_seconds_max{30};

std::string launch_row(const std::string& peer, int nodes) { return fmt::format("mpi.launch.{}.{}", peer, nodes); }

/// What the same program of Open MPI finds over Kumi, and over Open MPI's own networks.
struct Ground {
    const char* name; // of rows: "mpi.here.latency.8"
    const char* text;
    std::vector<std::string> kumi; // variables
    std::vector<std::string> native;
};
const std::array<Ground, 2> grounds{
    Ground{"here", "on one host", {}, {}},
    Ground{"udp",
           "over the loopback network; native: TCP",
           {"KUMI_DEVICE=udp"},
           {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=lo"}}};

struct Measure {
    const char* id; // as the program prints it, behind "shmem."
    const char* unit;
    bool lower_is_better;
    const char* text;
};
constexpr Measure measures[] = {
    {"latency.8", "ns", true, "8 bytes, one way, half a ping-pong"},
    {"latency.1024", "ns", true, "1 KiB, one way"},
    {"latency.8192", "ns", true, "8 KiB, one way"},
    {"latency.65536", "ns", true, "64 KiB, one way"},
    {"rate.8", "M/s", false, "8-byte messages, one way, as many as will go"},
    {"bandwidth.copy.1048576", "MB/s", false, "1 MiB, one way"},
    {"bandwidth.pingpong.1048576", "MB/s", false, "1 MiB to and fro, one at a time"},
};

std::string pair_row(const Ground& ground, std::string_view measure) {
    return fmt::format("mpi.{}.{}", ground.name, measure);
}

std::vector<RowKind> rows(const BenchOptions& options) {
    std::vector<RowKind> all;
    for (const char* const peer : peers)
        for (const int nodes : launch_nodes)
            if (const std::string id = launch_row(peer, nodes); is_asked_for(options, id))
                all.push_back(
                    {id, "ms", true,
                     fmt::format("{} processes of {} started, in MPI_Init, in MPI_Finalize, ended", nodes, peer)});
    for (const Ground& ground : grounds)
        for (const Measure& measure : measures)
            if (const std::string id = pair_row(ground, measure.id); is_asked_for(options, id))
                all.push_back({id, measure.unit, measure.lower_is_better,
                               fmt::format("{}; two processes of Open MPI {}", measure.text, ground.text)});
    return all;
}

/// A program of a peer as its own launcher starts it, and as `kumi run` does, which binds nothing then either.
std::vector<Entry> launches(const BenchOptions& options, const std::string& peer, int nodes) {
    const Entry theirs = mpi_here(options, peer, nodes, false, {"join"});
    Entry ours = theirs;
    ours.who = "kumi";
    ours.words = {options.kumi_path, "run", "-n", std::to_string(nodes), "--no-bind"};
    append(ours.words, {fmt::format("{}/kumi-bench-{}", options.peers_folder, peer), "join"});
    return {ours, theirs};
}

/// A program of Open MPI over Kumi, and over its own networks.
std::vector<Entry> pairs(const BenchOptions& options, const Ground& ground) {
    Entry native = mpi_here(options, "openmpi", 2, true, {"pair"});
    Entry kumi = native;
    kumi.who = "kumi";
    kumi.words = {options.kumi_path, "run", "-n", "2", "--mpi", "kumi"};
    append(kumi.words, {options.peers_folder + "/kumi-bench-openmpi", "pair"});
    append(kumi.environment, ground.kumi);
    append(native.environment, ground.native);
    return {kumi, native};
}

} // namespace

std::span<const char* const> mpi_peers() { return peers; }

std::vector<std::string> mpi_rows() {
    std::vector<std::string> names;
    for (const RowKind& row : rows({})) names.push_back(row.id);
    return names;
}

Table run_mpi_bench(const BenchOptions& options) {
    Table table(rows(options), options.peers);
    const Words present = peers_with_programs(options, table);
    if (present.empty()) table.note("nothing to measure: name an MPI, as --against openmpi,mpich");
    Stage stage(table, options.on_progress);
    for (int round = 0; round < options.rounds; ++round) {
        stage.begin_round(round + 1, options.rounds);
        struct Run {
            std::string row;                // of a launch
            const Ground* ground = nullptr; // of pairs
            Entry entry;
        };
        std::vector<Run> runs;
        for (const std::string& peer : present)
            for (const int nodes : launch_nodes)
                if (const std::string row = launch_row(peer, nodes); is_asked_for(options, row))
                    for (Entry& entry : in_turn(launches(options, peer, nodes), round))
                        runs.push_back({row, nullptr, std::move(entry)});
        for (const Ground& ground : grounds) {
            const bool is_wanted = std::ranges::any_of(
                measures, [&](const Measure& one) { return is_asked_for(options, pair_row(ground, one.id)); });
            if (is_wanted && std::ranges::find(present, "openmpi") != present.end())
                for (Entry& entry : in_turn(pairs(options, ground), round))
                    runs.push_back({"", &ground, std::move(entry)});
        }
        for (std::size_t i = 0; i < runs.size(); ++i) {
            stage.begin_case(i, runs.size());
            const auto heard = stage.run(runs[i].entry, entry_seconds_max);
            if (!heard) continue;
            const std::string& who = runs[i].entry.who;
            // The row of a launch is the time that the whole command takes.
            if (runs[i].ground == nullptr) table.add(who, runs[i].row, heard->seconds * 1e3);
            else
                for (const auto& [id, value] : heard->results)
                    for (const Measure& measure : measures)
                        if (id == fmt::format("shmem.{}", measure.id))
                            table.add(who, pair_row(*runs[i].ground, measure.id), value);
        }
    }
    return table;
}

} // namespace kumi::bench
