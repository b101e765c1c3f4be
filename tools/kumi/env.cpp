#include "commands.hpp"

#include "kumi/launch/host/pmi/over_kumi.hpp"

#include <cstdio>
#include <fmt/format.h>

namespace kumi::tools {
namespace {

int print_mpi() {
    const auto variables = launch::host::variables_for_mpi_over_kumi();
    if (!variables) {
        std::fprintf(stderr, "kumi env: %s\n", variables.error().text().c_str());
        return 1;
    }
    for (const std::string& variable : *variables) {
        const std::size_t equals = variable.find('=');
        std::string value;
        for (const char c : variable.substr(equals + 1)) value += c == '\'' ? std::string("'\\''") : std::string(1, c);
        fmt::print("export {}='{}'\n", variable.substr(0, equals), value);
    }
    return 0;
}

} // namespace

void add_env_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("env", "print variables for the shell, by which other programs use Kumi");
    command->require_subcommand(1);
    CLI::App* mpi = command->add_subcommand("mpi", "programs of Open MPI under mpirun or srun talk over Kumi");
    mpi->footer("Example: eval \"$(kumi env mpi)\"; mpirun -n 4 ./mpi_program\n\n"
                "kumi run --mpi kumi sets the same by itself. docs/mpi.md says what works.");
    mpi->callback([&exit_code] { exit_code = print_mpi(); });
}

} // namespace kumi::tools
