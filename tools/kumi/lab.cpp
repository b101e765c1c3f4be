#include "commands.hpp"

#include "kumi/lab/client.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace kumi::tools {
namespace {

struct LabOptions {
    lab::UpOptions up{.name = "lab", .cluster_file = "", .shared = {}};
    std::string host;               // of exec
    std::vector<std::string> words; // of exec its command; of other subcommands all words
};
using Shared = std::shared_ptr<LabOptions>;

int up(const LabOptions& options) {
    const auto done = lab::up(options.up);
    if (!done) return fail(done.error());
    std::fputs(done->c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : fail(system_error(errno, "writing to standard output"));
}

int down(const LabOptions& options) {
    const auto done = lab::down(options.up.name);
    return done ? 0 : fail(done.error());
}

int exec(LabOptions& options) {
    options.words.insert(options.words.begin(), options.host);
    for (std::string& word : options.words)
        if (word.starts_with(verbatim_mark)) word.erase(0, 1);
    return lab::exec(options.up.name, options.words);
}

/// A subcommand that the lab's keeper carries out.
CLI::App* add_request(CLI::App& lab, const Shared& options, int& exit_code, const char* verb, const char* what) {
    CLI::App* command = lab.add_subcommand(verb, what);
    command->fallthrough();
    command->footer("");
    command->callback([options, verb, &exit_code] { exit_code = lab::ask(options->up.name, verb, options->words); });
    return command;
}

/// Its next word.
void add_word(CLI::App* command, const Shared& options, const char* name, const char* what) {
    command
        ->add_option_function<std::string>(
            name, [options](const std::string& word) { options->words.push_back(word); }, what)
        ->required()
        ->type_name("");
}

void add_faults(CLI::App& lab, const Shared& options, int& exit_code) {
    CLI::App* link =
        add_request(lab, options, exit_code, "link", "pull the cable of a host out of a network, or put it back");
    CLI::App* mute =
        add_request(lab, options, exit_code, "mute", "let the network ignore a host, which cannot see that");
    CLI::App* loss = add_request(lab, options, exit_code, "loss", "lose so many packets of a hundred");
    CLI::App* rate =
        add_request(lab, options, exit_code, "rate", "limit what each cable of a network carries, each way");
    for (CLI::App* command : {link, mute}) add_word(command, options, "HOST", "whose cable");
    for (CLI::App* command : {link, mute, loss, rate}) add_word(command, options, "NETWORK", "of the cluster file");
    add_word(link, options, "STATE", "down or up");
    add_word(mute, options, "STATE", "on or off");
    add_word(loss, options, "PERCENT", "0 to 100; 0: none");
    add_word(rate, options, "RATE", "as in 100mbit; none: no limit");
    link->footer("Example: kumi lab link b2 lan down");
    mute->footer("Example: kumi lab mute b2 lan on");
    loss->footer("Example: kumi lab loss lan 0.5");
    rate->footer("Example: kumi lab rate lan 10mbit");
}

} // namespace

void add_lab_command(CLI::App& app, int& exit_code) {
    CLI::App* lab =
        app.add_subcommand("lab", "make the hosts and networks of a cluster file on this machine, to try and test");
    const auto options = std::make_shared<LabOptions>();
    lab->require_subcommand(1);
    lab->add_option("--name", options->up.name, "which lab, if there are several")
        ->type_name("NAME")
        ->take_last()
        ->envname("KUMI_LAB")
        ->capture_default_str();

    CLI::App* up_command = lab->add_subcommand("up", "make it, and return when every host is ready");
    up_command->fallthrough();
    up_command->add_option("FILE", options->up.cluster_file, "the cluster file")->required()->type_name("");
    up_command
        ->add_option("--share", options->up.shared, "a folder in /tmp that all hosts shall see, as they see this one")
        ->type_name("FOLDER")
        ->allow_extra_args(false);
    up_command->footer("Example: kumi lab up lab/figure3.toml");
    up_command->callback([options, &exit_code] { exit_code = up(*options); });

    CLI::App* exec_command = lab->add_subcommand("exec", "run a command on a host, as ssh would");
    exec_command->fallthrough();
    exec_command->add_option("HOST", options->host, "where")->required()->type_name("");
    exec_command
        ->add_option("COMMAND", options->words, "the command and its arguments; -- before it if it starts with a dash")
        ->required()
        ->type_name("[ARGUMENTS...]");
    exec_command->positionals_at_end(); // what follows the host is the command's, dashes or not
    exec_command->footer(
        "Input, output, signals, environment and exit code are passed on, and the folder where the host has it;\n"
        "255: it could not be run there. A single word with blanks in it is given to a shell.\n\n"
        "Example: kumi lab exec a0 ip -brief address");
    exec_command->callback([options, &exit_code] { exit_code = exec(*options); });

    add_faults(*lab, options, exit_code);
    add_request(*lab, options, exit_code, "status", "show hosts, addresses, and what was done to the networks");
    CLI::App* down_command = lab->add_subcommand("down", "end it, and return when nothing is left");
    down_command->fallthrough();
    down_command->footer("");
    down_command->callback([options, &exit_code] { exit_code = down(*options); });

    lab->footer(
        "Each host has its own name, processes, networks, /tmp, /run and /dev/shm; other files are this machine's.\n"
        "A host \"front\" is added, on all networks, to start jobs from. It takes no root, where the system allows\n"
        "user namespaces, and leaves nothing on the machine, killed or not.\n\n"
        "Example:\n"
        "  kumi lab up lab/figure3.toml\n"
        "  kumi lab exec a0 ip -brief address\n"
        "  kumi lab link b2 lan down\n"
        "  kumi lab down");
}

} // namespace kumi::tools
