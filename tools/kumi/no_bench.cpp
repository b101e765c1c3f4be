// The command of a build without benchmarks (KUMI_BENCH=OFF): the sanitizers', whose figures would say nothing.
#include "commands.hpp"

namespace kumi::tools {

void add_bench_command(CLI::App&, int&) {}

} // namespace kumi::tools
