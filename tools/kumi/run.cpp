#include "commands.hpp"
#include "kumi/launch/job_run.hpp"
#include "kumi/launch/run.hpp"
#include "report/stats_table.hpp"
#include "report/traffic_map.hpp"
#include "version.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <string>

namespace kumi::tools {
namespace {

constexpr std::uint64_t seconds_max = 1'000'000'000; // as good as no limit, and no sum with it overflows

/// What --traffic and --stats print at the end of a job.
std::string draw_reports(const launch::JobOptions& options, const launch::JobRun& job) {
    const bool succeeded = job.how_it_ended().exit_code == 0;
    std::string text;
    if (options.report_traffic && succeeded) text += draw_traffic(job.traffic());
    // When the job failed, what nodes counted may tell why; unless no node had time to report it.
    const auto& stats = job.stats();
    const bool reported =
        std::any_of(stats.begin(), stats.end(), [](const auto& report) { return report.has_value(); });
    if (options.report_stats && (reported || succeeded)) text += draw_stats(stats);
    return text;
}

} // namespace

void add_run_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("run", "start a parallel program and watch it until it ends");
    auto run = std::make_shared<launch::RunOptions>();
    const std::shared_ptr<launch::JobOptions> options(run, &run->job);
    auto words = std::make_shared<std::vector<std::string>>();
    auto seconds = std::make_shared<long>(options->join_max.count());
    auto start_seconds = std::make_shared<long>(options->start_max.count());
    auto run_seconds = std::make_shared<long>(options->run_max.count());

    command->add_option("-n,--nodes", options->nodes, "number of nodes (processes)")
        ->required()
        ->type_name("NODES")
        ->take_last()
        ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max(), "how many, 1 or more"));
    command
        ->add_option("--hosts", options->hosts,
                     "run nodes on these hosts, as in a,b:2,c[0-3]:4: how many each takes, or one")
        ->type_name("HOSTS")
        ->take_last();
    command
        ->add_option("--cluster", options->cluster_file,
                     "run nodes on the hosts of this file, or those of them that --hosts names")
        ->type_name("FILE")
        ->take_last();
    command->add_option("--place", options->place, "place nodes so: pack, spread, or K-per-host; pack unless told")
        ->type_name("HOW")
        ->take_last();
    command
        ->add_option("--rsh", options->rsh,
                     "the command that reaches other hosts: takes a host and a command; ssh unless told")
        ->type_name("COMMAND")
        ->take_last()
        ->envname("KUMI_RSH");
    command->add_option("--start-timeout", *start_seconds, "seconds until all hosts must have answered; 0: no limit")
        ->type_name("SECONDS")
        ->take_last()
        ->check(whole_number(0, seconds_max, "how many seconds, or 0 for no limit"))
        ->capture_default_str();
    command->add_flag("-l,--label", run->label, "start each line of output with its node's number: [3] text");
    command->add_flag("--traffic", options->report_traffic, "at the end, draw who sent how much to whom, over what");
    command->add_flag("--stats", options->report_stats, "at the end, show what the nodes counted on each device");
    command->add_flag_callback(
        "--no-bind", [options] { options->bind = false; },
        "let the system move nodes between cores; otherwise each gets a core, where enough are free");
    command->add_flag_callback(
        "--no-join", [options] { options->must_join = false; },
        "the program uses neither Kumi nor MPI, and will not join");
    command
        ->add_option_function<std::string>(
            "--mpi", [options](const std::string& what) { options->mpi_over_kumi = what == "kumi"; },
            "what programs of Open MPI talk over: native, their own networks, unless told; or kumi, see docs/mpi.md")
        ->type_name("WHAT")
        ->take_last()
        ->check(CLI::IsMember({"native", "kumi"}));
    command->add_option("--join-timeout", *seconds, "seconds until all nodes must have joined; 0: no limit")
        ->type_name("SECONDS")
        ->take_last()
        ->check(whole_number(0, seconds_max, "how many seconds, or 0 for no limit"))
        ->capture_default_str();
    command
        ->add_option("--timeout", *run_seconds,
                     "seconds until the job must have ended: then each node prints what it waits for, and the job ends "
                     "with exit code 124; 0: no limit")
        ->type_name("SECONDS")
        ->take_last()
        ->check(whole_number(0, seconds_max, "how many seconds, or 0 for no limit"))
        ->capture_default_str();
    command->add_option("-x,--env", options->environment_added, "set NAME=VALUE for every node; may be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false)
        ->check([](const std::string& text) {
            return text.find('=') != std::string::npos && text.front() != '=' ? "" : text + ": write NAME=VALUE";
        });
    command->add_option("program", *words, "the program and its arguments; -- before it if it starts with a dash")
        ->required()
        ->type_name("PROGRAM [ARGUMENTS...]");
    command->positionals_at_end(); // what follows the program is the program's, dashes or not
    command->footer(
        "Standard input goes to node 0. Signals are passed on to all nodes. The exit code is that of the first\n"
        "node that failed, or 128 + the signal that killed it. Ctrl-\\ (SIGQUIT) ends nothing: each node prints\n"
        "what it waits for.\n\n"
        "On several hosts Kumi is installed at the same place, and so is the program; ssh must not ask for a\n"
        "password. Nodes find the working folder, the environment (but for what is about a host, as HOSTNAME,\n"
        "TMPDIR and KUMI_UDP_ADDRESS are: -x sets it everywhere) and the cluster file, which need not be there.\n"
        "With KUMI_CLUSTER=FILE --hosts names some of that file's hosts.\n\n"
        "Environment, for every node:\n"
        "  KUMI_SHMEM_MEMORY=320M     shared memory for messages on this host; more allows larger messages\n"
        "  KUMI_SHMEM_EXPOSED=16G     addresses that a node may expose to the others\n"
        "  KUMI_SHMEM_FENCING=writer  who pays when receivers sleep: reader or writer\n"
        "  KUMI_DEVICE=udp            over UDP instead of shared memory\n"
        "  KUMI_UDP_ADDRESS=10.0.0.1  this node's address, numeric; 127.0.0.1 unless told\n"
        "  KUMI_UDP_PORT=0            its port; 0 for any\n"
        "  KUMI_UDP_ENCRYPT=yes       encrypt with a key that only this job's nodes have\n"
        "  KUMI_UDP_CHECK=yes         a checksum of 32 bits over long messages too, which UDP protects by 16\n"
        "  KUMI_UDP_BUFFER=4M         wanted of the socket, for receiving\n"
        "  KUMI_SILENCE=60            seconds until a node that answers by no network is lost; 0: never\n"
        "  KUMI_FAULT=udp.loss=0.01   make trouble: also duplicate, reorder, corrupt, truncate, largest, seed\n"
        "  KUMI_STRIPES=no            keep large messages whole, not in pieces over several networks at once\n"
        "  KUMI_GROUPS=way=tree       the way that multicasts go, or what messages take; see kumi map --help\n"
        "  KUMI_LOG=debug             say what was set up; off: no warnings either\n\n"
        "Programs of Open MPI and MPICH are started as they are: MPI_Init finds kumi run instead of mpirun.\n\n"
        "The same program runs under mpirun, mpiexec.hydra, srun --mpi=pmix and srun --mpi=pmi2, too; there\n"
        "KUMI_PLUGINS=FOLDER says where libkumi-boot-pmix.so is, if it is not found by itself.\n\n"
        "Examples: kumi run -n 4 ./program input.txt\n"
        "          kumi run --hosts a,b:2 -n 3 ./program\n"
        "          kumi run --cluster lab/figure3.toml --rsh 'kumi lab exec' -n 12 ./program");
    command->callback([=, &exit_code] {
        options->join_max = std::chrono::seconds(*seconds);
        options->start_max = std::chrono::seconds(*start_seconds);
        options->run_max = std::chrono::seconds(*run_seconds);
        options->version = version;
        const char* const cluster_file = std::getenv("KUMI_CLUSTER");
        if (options->hosts && options->cluster_file.empty() && cluster_file != nullptr)
            options->cluster_file = cluster_file;
        for (std::string& word : *words)
            if (word.starts_with(verbatim_mark)) word.erase(0, 1);
        options->program = words->front();
        options->arguments.assign(words->begin() + 1, words->end());
        exit_code = launch::run(*run, [&](const launch::JobRun& job) { return draw_reports(*options, job); });
    });
}

} // namespace kumi::tools
