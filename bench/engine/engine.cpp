#include "engine.hpp"

#include "cases.hpp"
#include "contestants.hpp"

#include "../mpi.hpp"
#include "../own_labs.hpp"

#include "kumi/base/machine.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kumi::bench {
namespace {

constexpr std::chrono::seconds entry_seconds_max{30};
constexpr const char* peers_to_name[] = {"openmpi", "mpich", "oshmem"};

/// Those of whose rows one was asked for, with these rows.
std::vector<EngineCase> chosen_cases(const BenchOptions& options) {
    std::vector<EngineCase> cases = engine_cases();
    for (EngineCase& one : cases)
        std::erase_if(one.rows, [&](const RowKind& row) { return !is_asked_for(options, row.id); });
    std::erase_if(cases, [](const EngineCase& one) { return one.rows.empty(); });
    return cases;
}

std::vector<RowKind> all_rows(const std::vector<EngineCase>& cases) {
    std::vector<RowKind> rows;
    for (const EngineCase& one : cases) rows.insert(rows.end(), one.rows.begin(), one.rows.end());
    return rows;
}

class EngineBench {
public:
    explicit EngineBench(const BenchOptions& options)
        : options_(options), cases_(chosen_cases(options)), table_(all_rows(cases_), options.peers),
          stage_(table_, options.on_progress), labs_(options, table_) {
        options_.peers = peers_with_programs(options, table_);
        for (const EngineCase& one : cases_) note_cores(one);
    }

    Table run() {
        for (int round = 0; round < options_.rounds; ++round) {
            stage_.begin_round(round + 1, options_.rounds);
            for (const EngineCase& one : cases_) measure(one, round);
        }
        return std::move(table_);
    }

private:
    void note_cores(const EngineCase& one) {
        const unsigned cores = base::cores_allowed();
        if (static_cast<unsigned>(one.nodes) > cores)
            table_.note(fmt::format("engine.{}: {} nodes on {} cores{}", one.name(), one.nodes, cores,
                                    one.what == "barrier_hidden" ? ", so what they do meanwhile is sleep" : ""));
    }

    void measure(const EngineCase& one, int round) {
        const std::string file = lab_file(one);
        const OwnLab* const lab = file.empty() ? nullptr : labs_.of(file, one.name());
        if (!file.empty() && lab == nullptr) return;
        for (const Entry& entry : in_turn(contestants(options_, one, lab), round)) {
            const auto heard = stage_.run(entry, entry_seconds_max);
            if (heard)
                for (const auto& [id, value] : heard->results) table_.add(entry.who, id, value);
            else if (entry.who == "kumi") // of others what they did reach counts
                for (const RowKind& row : one.rows) table_.strike(entry.who, row.id);
        }
    }

    BenchOptions options_; // with the peers that are there
    std::vector<EngineCase> cases_;
    Table table_;
    Stage stage_;
    OwnLabs labs_;
};

} // namespace

Table run_engine_bench(const BenchOptions& options) { return EngineBench(options).run(); }

std::vector<std::string> engine_rows() {
    std::vector<std::string> names;
    for (const RowKind& row : all_rows(engine_cases())) names.push_back(row.id);
    return names;
}

std::span<const char* const> engine_peers() noexcept { return peers_to_name; }

} // namespace kumi::bench
