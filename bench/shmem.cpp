#include "shmem.hpp"

#include "stage.hpp"
#include "work.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

using Words = std::vector<std::string>;

constexpr std::chrono::seconds entry_seconds_max{10};

/// How each MPI is told to start `nodes` processes, bound to cores where they fit.
Words mpi_words(const std::string& peer, int nodes, bool bound) {
    const std::string count = std::to_string(nodes);
    if (peer == "openmpi") return {"mpirun.openmpi", "-n", count, "--oversubscribe", "--bind-to", bound ? "core" : "none"};
    Words words{"mpiexec.mpich", "-n", count};
    if (bound) words.insert(words.end(), {"-bind-to", "core"});
    return words;
}

/// Every setting with which a peer may wait when there are more processes than cores: its best counts.
std::vector<Words> waiting_settings(const std::string& peer) {
    if (peer == "openmpi") return {{}, {"OMPI_MCA_mpi_yield_when_idle=1"}};
    return {{}, {"MPIR_CVAR_POLLS_BEFORE_YIELD=1"}};
}

class ShmemBench {
public:
    explicit ShmemBench(const BenchOptions& options)
        : options_(options), table_(rows(), options.peers),
          stage_(table_, options.on_progress) {}

    Table run() {
        for (int round = 0; round < options_.rounds; ++round) {
            stage_.begin_round(round + 1, options_.rounds);
            for (const auto& entries : {pair_entries(), ring_entries(), launch_entries(), idle_entries()})
                for (const Entry& entry : entries) measure(entry);
        }
        keep_best_settings();
        return std::move(table_);
    }

private:
    static std::vector<RowKind> rows() {
        std::vector<RowKind> rows;
        for (const std::size_t bytes : latency_sizes)
            rows.push_back({fmt::format("shmem.latency.{}", bytes), "ns", true,
                            fmt::format("{} bytes, one way, half a ping-pong{}", bytes, bytes == 8 ? "; limit: one cache line handed over bare" : "")});
        rows.push_back({"shmem.rate.8", "M/s", false, "8-byte messages, one way, as many as will go"});
        rows.push_back({"shmem.bandwidth.copy.1048576", "MB/s", false, "1 MiB, one way, private memory to private memory; limit: memcpy"});
        rows.push_back({"shmem.bandwidth.pingpong.1048576", "MB/s", false, "the same to and fro, one at a time"});
        rows.push_back({"shmem.bandwidth.inplace.1048576", "MB/s", false, "1 MiB produced, sent and consumed; in place where the peer allows it"});
        rows.push_back({"shmem.ring.16", "us", true, "a token round 16 nodes, per hop; peers at their best waiting setting; limit: bare wake-ups"});
        rows.push_back({"shmem.launch.4", "ms", true, "4 nodes started, joined, left, ended"});
        rows.push_back({"shmem.idle", "%", true, "of a core, used by a node that waits"});
        return rows;
    }

    Words node_words(int nodes, const std::string& what) const {
        return {options_.own_path, "run", "-n", std::to_string(nodes), "--", options_.own_path, "bench-node", what};
    }

    /// Peers with their programs; one without is noted once.
    std::vector<std::string> peers_present() {
        std::vector<std::string> present;
        for (const std::string& peer : options_.peers) {
            if (::access(peer_program(peer).c_str(), X_OK) == 0) present.push_back(peer);
            else table_.note(fmt::format("{}: not measured, its programs were not built; install it and build again (make bench does)", peer));
        }
        return present;
    }
    std::string peer_program(const std::string& peer) const { return options_.peers_folder + "/kumi-bench-" + peer; }

    Entry kumi_entry(int nodes, const std::string& what) const { return {"kumi", what, node_words(nodes, what)}; }
    Entry peer_entry(const std::string& peer, int nodes, bool bound, const std::string& what) const {
        Entry entry{peer, what, mpi_words(peer, nodes, bound), {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}};
        entry.words.insert(entry.words.end(), {peer_program(peer), what});
        return entry;
    }

    std::vector<Entry> pair_entries() {
        std::vector<Entry> entries{kumi_entry(2, "pair"), {"limit", "pair", {options_.own_path, "bench-node", "limit"}}};
        for (const std::string& peer : peers_present()) entries.push_back(peer_entry(peer, 2, true, "pair"));
        return entries;
    }

    std::vector<Entry> ring_entries() {
        std::vector<Entry> entries{kumi_entry(16, "ring")};
        for (const std::string& peer : peers_present()) {
            int number = 0;
            for (const Words& setting : waiting_settings(peer)) {
                Entry entry = peer_entry(peer, 16, false, "ring");
                entry.environment.insert(entry.environment.end(), setting.begin(), setting.end());
                entry.who = fmt::format("{}#{}", peer, number++);
                entries.push_back(std::move(entry));
            }
        }
        return entries;
    }

    std::vector<Entry> launch_entries() {
        std::vector<Entry> entries{kumi_entry(4, "join")};
        for (const std::string& peer : peers_present()) entries.push_back(peer_entry(peer, 4, false, "join"));
        return entries;
    }

    std::vector<Entry> idle_entries() { return {kumi_entry(2, "idle")}; }

    void measure(const Entry& entry) {
        const auto heard = stage_.run(entry, entry_seconds_max);
        if (!heard) return;
        if (entry.what == "join") table_.add(entry.who, "shmem.launch.4", heard->seconds * 1e3); // the row is how long it takes
        for (const auto& [id, value] : heard->results) {
            if (entry.who.find('#') == std::string::npos) table_.add(entry.who, id, value);
            else settings_[entry.who].push_back(value);
        }
    }

    void keep_best_settings() {
        for (const std::string& peer : options_.peers) {
            const std::vector<double>* best = nullptr;
            const auto middle = [](std::vector<double> values) {
                std::sort(values.begin(), values.end());
                return values[values.size() / 2];
            };
            for (const auto& [who, values] : settings_)
                if (who.starts_with(peer + "#") && (best == nullptr || middle(values) < middle(*best))) best = &values;
            if (best != nullptr)
                for (const double value : *best) table_.add(peer, "shmem.ring.16", value);
        }
    }

    const BenchOptions& options_;
    Table table_;
    Stage stage_;
    std::map<std::string, std::vector<double>> settings_; // ring results by peer#setting
};

} // namespace

Table run_shmem_bench(const BenchOptions& options) { return ShmemBench(options).run(); }

} // namespace kumi::bench
