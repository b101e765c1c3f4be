#include "shmem/shmem.hpp"

#include "contestant/work.hpp"
#include "harness/jobs.hpp"
#include "harness/mpi.hpp"
#include "harness/stage.hpp"
#include "harness/words.hpp"

#include "kumi/pm/channel.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

constexpr std::chrono::seconds entry_seconds_max{10};

class ShmemBench {
public:
    explicit ShmemBench(const BenchOptions& options)
        : options_(options), table_(rows(), options.peers), stage_(table_, options.on_progress),
          peers_(peers_with_programs(options, table_)) {}

    Table run() {
        for (int round = 0; round < options_.rounds; ++round) {
            stage_.begin_round(round + 1, options_.rounds);
            std::vector<Entry> entries;
            for (const auto& more : {pair_entries(), ring_entries(), launch_entries(), idle_entries()})
                entries.insert(entries.end(), more.begin(), more.end());
            for (std::size_t i = 0; i < entries.size(); ++i) {
                stage_.begin_case(i, entries.size());
                measure(entries[i]);
            }
        }
        return std::move(table_);
    }

private:
    static std::vector<RowKind> rows() {
        std::vector<RowKind> rows;
        for (const std::size_t bytes : latency_sizes)
            rows.push_back({fmt::format("shmem.latency.{}", bytes), "ns", true,
                            fmt::format("{} bytes, one way, half a ping-pong{}", bytes,
                                        bytes == 8 ? "; limit: one cache line handed over bare" : "")});
        rows.push_back({"shmem.rate.8", "M/s", false, "8-byte messages, one way, as many as will go"});
        rows.push_back({"shmem.bandwidth.copy.1048576", "MB/s", false,
                        "1 MiB, one way, private memory to private memory; limit: memcpy"});
        rows.push_back({"shmem.bandwidth.pingpong.1048576", "MB/s", false,
                        fmt::format("the same to and fro, one at a time; by Kumi in pieces of {} KiB",
                                    pm::piece_bytes >> 10)});
        rows.push_back({"shmem.bandwidth.inplace.1048576", "MB/s", false,
                        "1 MiB produced, sent and consumed; in place where the peer allows it"});
        rows.push_back({"shmem.ring.16", "us", true,
                        "a token round 16 nodes, per hop; peers at their best waiting setting; limit: bare wake-ups"});
        rows.push_back({"shmem.launch.4", "ms", true, "4 nodes started, joined, left, ended"});
        rows.push_back({"shmem.idle", "%", true, "of a core, used by a node that waits"});
        return rows;
    }

    Entry kumi_entry(int nodes, const std::string& what) const {
        return {"kumi", what, job_here(options_, {"-n", std::to_string(nodes)}, {what})};
    }

    std::vector<Entry> pair_entries() const {
        std::vector<Entry> entries{kumi_entry(2, "pair"), {"limit", "pair", {options_.node_path, "node", "limit"}}};
        for (const std::string& peer : peers_) entries.push_back(mpi_here(options_, peer, 2, true, {"pair"}));
        return entries;
    }

    std::vector<Entry> ring_entries() const {
        std::vector<Entry> entries{kumi_entry(16, "ring")};
        for (const std::string& peer : peers_)
            for (Entry& entry : in_settings(mpi_here(options_, peer, 16, false, {"ring"}), waiting_settings(peer)))
                entries.push_back(std::move(entry));
        return entries;
    }

    std::vector<Entry> launch_entries() const {
        std::vector<Entry> entries{kumi_entry(4, "join")};
        for (const std::string& peer : peers_) entries.push_back(mpi_here(options_, peer, 4, false, {"join"}));
        return entries;
    }

    std::vector<Entry> idle_entries() const { return {kumi_entry(2, "idle")}; }

    void measure(const Entry& entry) {
        const auto heard = stage_.run(entry, entry_seconds_max);
        if (!heard) return;
        // this row is the time that the whole command takes
        if (entry.what == "join") table_.add(entry.who, "shmem.launch.4", heard->seconds * 1e3);
        for (const auto& [id, value] : heard->results) table_.add(entry.who, id, value);
    }

    const BenchOptions& options_;
    Table table_;
    Stage stage_;
    Words peers_;
};

} // namespace

Table run_shmem_bench(const BenchOptions& options) { return ShmemBench(options).run(); }

} // namespace kumi::bench
