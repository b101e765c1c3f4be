#pragma once

// The subcommands of `kumi`. Each adds itself to the command line and runs when it was chosen.

#include "kumi/base/text/number_text.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace kumi::tools {

/// Stands before a word of `kumi run` or `kumi lab` that CLI11 must not interpret: CLI11 takes "[a,b]" for a list of
/// two. main() puts the mark there, and those commands take it away again.
inline constexpr char verbatim_mark = '\1';

/// Accepts whole numbers in a range; for anything else says what to write.
inline auto whole_number(std::uint64_t least, std::uint64_t most, const char* what_to_write) {
    return [=](const std::string& text) -> std::string {
        const auto number = base::number_in<std::uint64_t>(text);
        return number && *number >= least && *number <= most ? "" : fmt::format("{}: write {}", text, what_to_write);
    };
}

/// Each sets `exit_code` when its command ran.
void add_run_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);
void add_map_command(CLI::App& app, int& exit_code);
void add_lab_command(CLI::App& app, int& exit_code);
void add_env_command(CLI::App& app, int& exit_code);
/// Adds `kumi bench` to `kumi --help`; become_bench() runs it.
void add_bench_command(CLI::App& app);
/// Replaces this process by kumi-bench, with the words after `kumi bench`. Returns an exit code only if that fails.
int become_bench(char** words);

} // namespace kumi::tools
