#include "engine/engine.hpp"

#include "engine/cases.hpp"
#include "engine/contestants.hpp"

namespace kumi::bench {
namespace {

constexpr const char* peers_to_name[] = {"openmpi", "mpich", "oshmem"};

const char* crowded(const JobCase& one) {
    return one.what == "barrier_hidden" ? ", so what they do meanwhile is sleep" : "";
}

} // namespace

Table run_engine_bench(const BenchOptions& options) {
    return run_job_bench(options, {"engine", engine_cases(), engine_lab_file, engine_contestants, crowded});
}

std::vector<std::string> engine_rows() { return row_names(engine_cases()); }

std::span<const char* const> engine_peers() noexcept { return peers_to_name; }

} // namespace kumi::bench
