#pragma once

// The subcommands of `kumi`. Each adds itself to the command line and runs when it was chosen.

#include <CLI/CLI.hpp>

namespace kumi::tools {

/// Each sets `exit_code` when its command ran.
void add_run_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);
void add_bench_command(CLI::App& app, int& exit_code);

} // namespace kumi::tools
