#include "commands.hpp"
#include "kumi/launch/remote/helper.hpp"
#include "version.hpp"

#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

/// Opens standard streams that are closed. The next file that is opened would get the number of such a stream, and text
/// for the user would go to that file.
void open_missing_streams() {
    while (true) {
        const int lowest_free = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        if (lowest_free < 0) return;
        if (lowest_free > STDERR_FILENO) return static_cast<void>(::close(lowest_free));
    }
}

/// The command line, with marks that keep CLI11 from changing the arguments of a program that is to be started.
std::vector<std::string> marked_words(int argc, char** argv) {
    std::vector<std::string> words(argv, argv + argc);
    const bool starts_program = argc > 1 && (words[1] == "run" || words[1] == "lab");
    for (std::string& word : words)
        if (starts_program && !word.empty() && (word.front() == '[' || word.front() == kumi::tools::verbatim_mark))
            word.insert(word.begin(), kumi::tools::verbatim_mark);
    if (argc > 2 && words[1] == "run" && words[2] == "-np") words[2] = "-n"; // as with mpirun
    return words;
}

/// CLI11's own answer to a wrong argument names the library's terms; this is one line that says what to do.
int complain(const CLI::App& app, const CLI::ParseError& wrong, const char* first_word) {
    const CLI::App* where = &app;
    std::string command = "kumi";
    while (!where->get_subcommands().empty()) {
        where = where->get_subcommands().front();
        command += " " + where->get_name();
    }
    if (where == &app) {
        std::fprintf(stderr, "kumi: %s: no such command or option; see kumi --help\n", first_word);
        return 2;
    }
    std::fprintf(stderr, "%s: %s; see %s --help\n", command.c_str(), wrong.what(), command.c_str());
    return 2;
}

} // namespace

int main(int argc, char** argv) {
    open_missing_streams();
    // Started on other hosts by kumi run, not by people: so help does not mention it.
    if (argc == 2 && std::string_view(argv[1]) == "host-helper")
        return kumi::launch::remote::help_kumi_run(kumi::tools::version);
    // Benchmarks are a program of their own, which reads the rest of the line.
    if (argc >= 2 && std::string_view(argv[1]) == "bench") return kumi::tools::become_bench(argv + 2);
    CLI::App app{"Kumi makes one cluster out of the machines and networks that you have.", "kumi"};
    app.set_version_flag("--version", fmt::format("kumi {}", kumi::tools::version));
    app.require_subcommand(1);
    app.footer("Start with: kumi run -n 4 ./program");
    int exit_code = 0;
    kumi::tools::add_run_command(app, exit_code);
    kumi::tools::add_map_command(app, exit_code);
    kumi::tools::add_lab_command(app, exit_code);
    kumi::tools::add_bench_command(app);
    kumi::tools::add_env_command(app, exit_code);
    kumi::tools::add_doctor_command(app, exit_code);
    try {
        const std::vector<std::string> words = marked_words(argc, argv);
        app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1)); // the last one first, without "kumi"
    } catch (const CLI::Success& asked) { // --help, --version
        return app.exit(asked);
    } catch (const CLI::ParseError& wrong) {
        if (argc < 2) return std::fprintf(stderr, "%s", app.help().c_str()), 2;
        return complain(app, wrong, argv[1]);
    }
    return exit_code;
}
