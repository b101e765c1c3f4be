#pragma once

// A lab with a foreign launcher on its front end, which starts jobs on its hosts.

#include "cluster/lab.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace kumi::cluster_test {

class HydraLab : public Lab {
protected:
    /// Starts a program on hosts of the lab, "a0:2,b0". The launcher talks to them over `network`.
    Outcome on_hosts(const std::string& hosts, int nodes, const std::string& program, const Words& environment,
                     const std::string& network = "lan") {
        // What hydra takes for ssh: options, a host, and words that a shell there puts together.
        const std::string agent = folder_.path() + "/agent";
        std::ofstream(agent) << "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\nexec "
                             << kumi_command << " lab exec $host \"$*\"\n";
        ::chmod(agent.c_str(), 0755);
        Words words{"env"};
        words.insert(words.end(), environment.begin(), environment.end());
        for (const std::string& word : Words{"mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", agent, "-iface",
                                             network, "-hosts", hosts, "-n", std::to_string(nodes), program})
            words.push_back(word);
        return exec("front", words);
    }
    /// What each node says by what it reaches the others: without its number, by node.
    static std::vector<std::string> carriers(const Outcome& outcome) {
        std::map<int, std::string> by_node;
        std::istringstream lines(outcome.out);
        for (std::string line; std::getline(lines, line);)
            by_node[std::atoi(line.c_str())] = line.substr(line.find(' ') + 1);
        std::vector<std::string> all;
        for (const auto& [node, text] : by_node) all.push_back(text);
        return all;
    }
    /// What they say on figure 3's hosts, two nodes on each of the first four: the paper's table 2.
    static std::vector<std::string> papers_routes(const std::string& fast, const std::string& single,
                                                  const std::string& lan) {
        std::vector<std::string> all;
        for (int from = 0; from < 12; ++from) {
            std::string line;
            for (int to = 0; to < 12; ++to) {
                const bool both_fast = from < 8 && to < 8, both_single = from >= 8 && to >= 8;
                const bool same_host = both_fast && from / 2 == to / 2;
                line += std::string(to == 0 ? "" : " ") + (from == to    ? "-"
                                                           : same_host   ? "shmem"
                                                           : both_fast   ? fast
                                                           : both_single ? single
                                                                         : lan);
            }
            all.push_back(line);
        }
        return all;
    }
};

#define HYDRA_OR_SKIP()                                                                                                \
    if (!is_installed("mpiexec.hydra")) KUMI_SKIP(skips::not_installed("mpiexec.hydra"))

} // namespace kumi::cluster_test
