#include "commands.hpp"
#include "map_groups.hpp"
#include "report/cluster_map.hpp"
#include "version.hpp"

#include "kumi/cluster/file.hpp"
#include "kumi/cluster/placement.hpp"
#include "kumi/launch/run.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace kumi::tools {
namespace {

struct MapOptions {
    std::string cluster_file;
    std::uint32_t nodes = 0; // 0: all slots
    std::string policy = "pack";
    std::vector<cluster::Node> route;
    bool json = false;
    std::string svg_file;
    bool groups = false;
    std::string rsh;
};

Result<std::string> draw(const MapOptions& options) {
    auto cluster = cluster::read_cluster_file(options.cluster_file);
    if (!cluster) return cluster.error();
    auto policy = cluster::Policy::parse(options.policy);
    if (!policy) return policy.error();
    const auto all = static_cast<std::uint32_t>(cluster->slots());
    auto placement = cluster::place(*cluster, options.nodes == 0 ? all : options.nodes, *policy);
    if (!placement) return placement.error();
    const cluster::Routing routing(*cluster, *std::move(placement));
    if (!options.svg_file.empty()) {
        std::ofstream file(options.svg_file);
        file << map_as_svg(*cluster, routing) << std::flush;
        if (!file) return system_error(errno, fmt::format("writing {}", options.svg_file));
    }
    if (!options.route.empty()) {
        for (const cluster::Node node : options.route)
            if (node >= routing.nodes())
                return error("there is no node {}: they are 0 to {}", node, routing.nodes() - 1);
        return describe_route(*cluster, routing, options.route[0], options.route[1]);
    }
    return options.json ? map_as_json(*cluster, routing) : map_as_text(*cluster, routing);
}

/// Starts the nodes of a job, of which the first prints what they measured; answers an exit code.
int map_groups(const MapOptions& options) {
    launch::RunOptions run;
    launch::JobOptions& job = run.job;
    job.program = std::filesystem::read_symlink("/proc/self/exe");
    job.arguments = {"map-node"};
    job.version = version;
    job.nodes = options.nodes == 0 ? 2 : options.nodes;
    if (options.cluster_file.empty()) return launch::run(run);
    const auto cluster = cluster::read_cluster_file(options.cluster_file);
    if (!cluster) return fail(cluster.error());
    if (options.nodes == 0) job.nodes = static_cast<std::uint32_t>(cluster->slots());
    job.cluster_file = options.cluster_file;
    job.place = options.policy;
    job.rsh = options.rsh;
    return launch::run(run);
}

} // namespace

void add_map_command(CLI::App& app, int& exit_code) {
    CLI::App* command =
        app.add_subcommand("map", "show hosts, nodes, channels and routes of a cluster, and why they are so");
    auto options = std::make_shared<MapOptions>();
    command->add_option("--cluster", options->cluster_file, "the cluster file")->type_name("FILE")->take_last();
    command
        ->add_option("-n,--nodes", options->nodes,
                     "number of nodes; as many as there are slots unless told, without a cluster file 2")
        ->type_name("NODES")
        ->take_last()
        ->check(whole_number(1, 1 << 20, "how many, 1 or more"));
    command->add_option("--place", options->policy, "pack, spread, or K-per-host")
        ->type_name("HOW")
        ->take_last()
        ->capture_default_str();
    command
        ->add_option("--route", options->route, "only the route from one node to another, with all that was considered")
        ->type_name("FROM TO")
        ->expected(2);
    command->add_flag("--json", options->json, "everything, for programs");
    command->add_option("--svg", options->svg_file, "also draw it as a picture")->type_name("FILE")->take_last();
    command
        ->add_flag(
            "--groups", options->groups,
            "instead: start the nodes, on this host or those of the cluster file, and show which way multicasts go")
        ->excludes("--route", "--json", "--svg");
    command->add_option("--rsh", options->rsh, "with --groups: the command that reaches other hosts, instead of ssh")
        ->type_name("COMMAND")
        ->take_last();
    command->footer(
        "Routes are written as in S0, M1: the network's letter and the channel, which is the receiver's number on its\n"
        "host; >M1 leads through other nodes and ! nowhere: jobs with such pairs are refused.\n\n"
        "Ways of multicasts, with the size of blocks, are those that are expected to take least, by what messages "
        "take:\n"
        "that is measured with the first multicasts of a job. KUMI_GROUPS=overhead=0.2,latency=1.2,bandwidth=10000 "
        "says\n"
        "it instead, in us, us and MB/s; KUMI_GROUPS=way=tree makes all go one way: tree, binomial, circulant,\n"
        "scatter_ring or scatter_doubling.\n\n"
        "Examples: kumi map --cluster lab/figure3.toml --svg map.svg\n"
        "          kumi map --groups -n 4");
    command->callback([options, &exit_code] {
        if (options->groups) {
            exit_code = map_groups(*options);
            return;
        }
        if (options->cluster_file.empty()) throw CLI::RequiredError("--cluster");
        const auto drawn = draw(*options);
        if (!drawn) {
            exit_code = fail(drawn.error());
            return;
        }
        std::fputs(drawn->c_str(), stdout);
        exit_code = std::fflush(stdout) == 0 ? 0 : fail(system_error(errno, "writing the map"));
    });

    // What the nodes of --groups run.
    app.add_subcommand("map-node", "")->group("")->callback([&exit_code] { exit_code = map_groups_node(); });
}

} // namespace kumi::tools
