#include "commands.hpp"

#include "kumi/launch/run.hpp"

#include <memory>

namespace kumi::tools {

void add_run_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("run", "start a parallel program and watch it until it ends");
    auto options = std::make_shared<launch::RunOptions>();
    auto words = std::make_shared<std::vector<std::string>>();
    auto seconds = std::make_shared<long>(options->join_max.count());

    command->add_option("-n,--nodes", options->nodes, "number of nodes (processes)")
        ->required()
        ->type_name("NODES")
        ->check(CLI::Range(1u, ~0u).description("").name(""));
    command->add_flag("-l,--label", options->label, "start each line of output with its node's number: [3] text");
    command->add_flag("--traffic", options->show_traffic, "at the end, draw who sent how much to whom, over what");
    command->add_flag("!--no-bind", options->bind,
                      "let the system move nodes between cores; otherwise each gets a core, where there are enough");
    command->add_flag("!--no-join", options->must_join, "the program is not a Kumi program and will not join");
    command->add_option("--join-timeout", *seconds, "seconds until all nodes must have joined; 0: no limit")
        ->type_name("SECONDS")
        ->check(CLI::NonNegativeNumber.description("").name(""))
        ->capture_default_str();
    command->add_option("-x,--env", options->environment_added, "set NAME=VALUE for every node; may be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false)
        ->check([](const std::string& text) {
            return text.find('=') != std::string::npos && text.front() != '=' ? "" : "-x " + text + ": write NAME=VALUE";
        });
    command->add_option("program", *words, "the program and its arguments; -- before it if it starts with a dash")
        ->required()
        ->type_name("PROGRAM [ARGUMENTS...]");
    command->positionals_at_end();
    command->prefix_command();
    command->footer("Standard input goes to node 0. Signals are passed on to all nodes. The exit code is that of the first\n"
                    "node that failed, or 128 + the signal that killed it.\n\n"
                    "Example: kumi run -n 4 ./program input.txt");
    command->callback([=, &exit_code] {
        options->join_max = std::chrono::seconds(*seconds);
        options->program = words->front();
        options->arguments.assign(words->begin() + 1, words->end());
        const auto rest = command->remaining();
        options->arguments.insert(options->arguments.end(), rest.begin(), rest.end());
        exit_code = launch::run(*options);
    });
}

} // namespace kumi::tools
