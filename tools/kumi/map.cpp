#include "commands.hpp"

#include "kumi/cluster/file.hpp"
#include "kumi/cluster/placement.hpp"
#include "kumi/launch/cluster_map.hpp"

#include <cstdio>
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
        file << launch::map_as_svg(*cluster, routing) << std::flush;
        if (!file) return system_error(errno, fmt::format("writing {}", options.svg_file));
    }
    if (!options.route.empty()) {
        for (const cluster::Node node : options.route)
            if (node >= routing.nodes()) return error("there is no node {}: they are 0 to {}", node, routing.nodes() - 1);
        return launch::describe_route(*cluster, routing, options.route[0], options.route[1]);
    }
    return options.json ? launch::map_as_json(*cluster, routing) : launch::map_as_text(*cluster, routing);
}

} // namespace

void add_map_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand("map", "show hosts, nodes, channels and routes of a cluster, and why they are so");
    auto options = std::make_shared<MapOptions>();
    command->add_option("--cluster", options->cluster_file, "the cluster file")->type_name("FILE")->required()->take_last();
    command->add_option("-n,--nodes", options->nodes, "number of nodes; as many as there are slots unless told")
        ->type_name("NODES")
        ->take_last()
        ->check(whole_number(1, 1 << 20, "how many, 1 or more"));
    command->add_option("--place", options->policy, "pack, spread, or K-per-host")->type_name("HOW")->take_last()->capture_default_str();
    command->add_option("--route", options->route, "only the route from one node to another, with all that was considered")
        ->type_name("FROM TO")
        ->expected(2);
    command->add_flag("--json", options->json, "everything, for programs");
    command->add_option("--svg", options->svg_file, "also draw it as a picture")->type_name("FILE")->take_last();
    command->footer("Routes are written as in S0, M1: the network's letter and the channel, which is the receiver's number on its\n"
                    "host; >M1 leads through other nodes and ! nowhere: jobs with such pairs are refused.\n\n"
                    "Example: kumi map --cluster lab/figure3.toml --svg map.svg");
    command->callback([options, &exit_code] {
        const auto drawn = draw(*options);
        if (!drawn) {
            exit_code = fail(drawn.error());
            return;
        }
        std::fputs(drawn->c_str(), stdout);
        exit_code = std::fflush(stdout) == 0 ? 0 : fail(system_error(errno, "writing the map"));
    });
}

} // namespace kumi::tools
