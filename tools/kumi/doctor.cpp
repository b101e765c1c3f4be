#include "commands.hpp"

#include "checks.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

namespace kumi::tools {
namespace {

int run_doctor() {
    int wrong = 0;
    std::string_view group;
    for (const Finding& finding : examine_machine()) {
        if (finding.group != group) fmt::print("{}{}\n", group.empty() ? "" : "\n", group = finding.group);
        const char* mark = finding.state == State::good              ? "ok  "
                           : finding.state == State::could_be_better ? "note"
                                                                     : "BAD ";
        fmt::print("  {}  {:<18} {}\n", mark, finding.what, finding.found);
        if (!finding.remedy.empty()) fmt::print("        {:<18} -> {}\n", "", finding.remedy);
        wrong += finding.state == State::bad ? 1 : 0;
    }
    if (wrong == 0) fmt::print("\nKumi runs here.\n");
    else fmt::print("\nKumi does not run here as it is: see the lines marked BAD.\n");
    return wrong == 0 ? 0 : 1;
}

} // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
    CLI::App* command =
        app.add_subcommand("doctor", "tell what this machine offers, what is missing, and how to get it");
    command->footer("The exit code is 1 when something that Kumi cannot do without is missing.");
    command->callback([&exit_code] { exit_code = run_doctor(); });
}

} // namespace kumi::tools
