#pragma once

// The subcommands of `kumi`. Each adds itself to the command line and runs when it was chosen.

#include <CLI/CLI.hpp>

namespace kumi::tools {

/// Stands before a word of `kumi run` that CLI11 shall not look into: it takes "[a,b]" for a list of two. main() puts
/// it there, the run command takes it away again.
inline constexpr char verbatim_mark = '\1';

/// Each sets `exit_code` when its command ran.
void add_run_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);
void add_bench_command(CLI::App& app, int& exit_code);

} // namespace kumi::tools
