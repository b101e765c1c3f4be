#include "composite.hpp"

#include "stage.hpp"

namespace kumi::bench {
namespace {

constexpr std::chrono::seconds entry_seconds_max{10};

const std::vector<RowKind>& rows() {
    static const std::vector<RowKind> all{
        {"composite.latency.8.shmem", "ns", true, "8 bytes, one way, through memory, by a composite that has a network too; limit: shared memory alone"},
        {"composite.latency.64.udp", "ns", true, "64 bytes, one way, over loopback, by a composite that has shared memory too; limit: UDP alone"},
        {"composite.poll.64", "ns", true, "a poll that finds nothing, with 64 nodes; limit: with 2"}};
    return all;
}

} // namespace

Table run_composite_bench(const BenchOptions& options) {
    Table table(rows(), {});
    Stage stage(table, options.on_progress);
    for (int round = 0; round < options.rounds; ++round) {
        stage.begin_round(round + 1, options.rounds);
        for (const RowKind& row : rows())
            for (const char* who : {"kumi", "limit"}) {
                const std::string what = row.id.substr(row.id.find('.') + 1);
                const auto heard = stage.run({who, what, {options.own_path, "bench-node", "composite", what, who}}, entry_seconds_max);
                if (!heard) continue;
                for (const auto& [id, value] : heard->results) table.add(who, id, value);
            }
    }
    return table;
}

} // namespace kumi::bench
