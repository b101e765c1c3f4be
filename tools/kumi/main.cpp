#include "commands.hpp"
#include "version.hpp"

#include <cstdio>
#include <fmt/format.h>

namespace {

/// CLI11's own answer to a wrong argument names the library's terms; this is one line that says what to do.
int complain(const CLI::App& app, const CLI::ParseError& wrong) {
    const CLI::App* where = &app;
    while (!where->get_subcommands().empty()) where = where->get_subcommands().front();
    std::string command = where == &app ? "kumi" : fmt::format("kumi {}", where->get_name());
    std::fprintf(stderr, "%s: %s; see %s --help\n", command.c_str(), wrong.what(), command.c_str());
    return 2;
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"Kumi makes one cluster out of the machines and networks that you have.", "kumi"};
    app.set_version_flag("--version", fmt::format("kumi {}", kumi::tools::version));
    app.require_subcommand(1);
    app.footer("Start with: kumi run -n 4 ./program");
    int exit_code = 0;
    kumi::tools::add_run_command(app, exit_code);
    kumi::tools::add_bench_command(app, exit_code);
    kumi::tools::add_doctor_command(app, exit_code);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) { // --help, --version
        return app.exit(asked);
    } catch (const CLI::ParseError& wrong) {
        if (argc < 2) return std::fprintf(stderr, "%s", app.help().c_str()), 2;
        return complain(app, wrong);
    }
    return exit_code;
}
