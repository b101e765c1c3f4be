#include "commands.hpp"
namespace kumi::tools { void add_bench_command(CLI::App& app, int&) { app.add_subcommand("bench", "x"); } }
