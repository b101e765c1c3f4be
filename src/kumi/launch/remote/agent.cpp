#include "kumi/launch/remote/agent.hpp"

#include "kumi/launch/host/processes/process.hpp"

#include <algorithm>

namespace kumi::launch::remote {

Result<Agent> find_agent(std::string_view rsh, std::chrono::seconds start_max) {
    Agent agent;
    agent.text = rsh.empty() ? "ssh" : rsh;
    std::string_view left = agent.text;
    while (!left.empty()) {
        const std::string_view word = left.substr(0, left.find(' '));
        if (!word.empty()) agent.words.emplace_back(word);
        left.remove_prefix(std::min(word.size() + 1, left.size()));
    }
    if (agent.words.empty()) return error("--rsh: name a program, like ssh, that takes a host and a command");
    auto program = host::find_program(agent.words.front());
    if (!program && rsh.empty())
        return error("{}; install openssh-client, or name what reaches other hosts with --rsh", program.error().text());
    if (!program) return error("--rsh: {}", program.error().text());
    agent.program = *std::move(program);
    agent.words.erase(agent.words.begin());
    if (agent.program.substr(agent.program.rfind('/') + 1) != "ssh") return agent;
    // After the user's own options: of several values ssh takes the first.
    for (const char* option : {"-T", "-oBatchMode=yes", "-oServerAliveInterval=15", "-oServerAliveCountMax=4"})
        agent.words.emplace_back(option);
    if (start_max.count() != 0) agent.words.push_back(fmt::format("-oConnectTimeout={}", start_max.count()));
    return agent;
}

std::vector<std::string> words_for(const std::string& host, const std::string& kumi_path) {
    std::string quoted;
    for (const char c : kumi_path) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return {host, fmt::format("exec '{}' host-helper", quoted)};
}

} // namespace kumi::launch::remote
