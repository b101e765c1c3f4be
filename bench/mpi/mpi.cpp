#include "mpi/mpi.hpp"

#include "harness/mpi.hpp"
#include "harness/stage.hpp"
#include "harness/words.hpp"

#include <array>
#include <fmt/format.h>

namespace kumi::bench {
namespace {

constexpr std::array<const char*, 2> peers{"openmpi", "mpich"};
constexpr int launch_nodes[] = {4, 16};
constexpr std::chrono::seconds entry_seconds_max{30};

std::string launch_row(const std::string& peer, int nodes) { return fmt::format("mpi.launch.{}.{}", peer, nodes); }

std::vector<RowKind> rows(const BenchOptions& options) {
    std::vector<RowKind> all;
    for (const char* const peer : peers)
        for (const int nodes : launch_nodes)
            if (const std::string id = launch_row(peer, nodes); is_asked_for(options, id))
                all.push_back({id, "ms", true,
                               fmt::format("{} processes of {} started, in MPI_Init, in MPI_Finalize, ended", nodes,
                                           peer)});
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
        std::vector<std::pair<std::string, Entry>> entries;
        for (const std::string& peer : present)
            for (const int nodes : launch_nodes)
                if (const std::string row = launch_row(peer, nodes); is_asked_for(options, row))
                    for (Entry& entry : in_turn(launches(options, peer, nodes), round))
                        entries.emplace_back(row, std::move(entry));
        for (std::size_t i = 0; i < entries.size(); ++i) {
            stage.begin_case(i, entries.size());
            const auto& [row, entry] = entries[i];
            // The row is the time that the whole command takes.
            if (const auto heard = stage.run(entry, entry_seconds_max)) table.add(entry.who, row, heard->seconds * 1e3);
        }
    }
    return table;
}

} // namespace kumi::bench
