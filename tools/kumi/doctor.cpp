#include "commands.hpp"
namespace kumi::tools { void add_doctor_command(CLI::App& app, int&) { app.add_subcommand("doctor", "x"); } }
