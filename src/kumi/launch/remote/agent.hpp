#pragma once

// What starts a helper on another host: ssh, or whatever takes a host's name and a command for a shell there.

#include "kumi/base/result.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch::remote {

struct Agent {
    std::string program;            // a path
    std::vector<std::string> words; // that follow it, before the host's name
    std::string text;               // as the user wrote it
};

/// `rsh` has blanks between its words; if empty, ssh is meant. ssh never asks for a password, since nobody could
/// answer, and gives up after `start_max`.
Result<Agent> find_agent(std::string_view rsh, std::chrono::seconds start_max);

/// The words after the agent's for running `kumi host-helper` on a host: its name, and a single one that any shell, and
/// an agent that only looks for blanks, takes for a command.
std::vector<std::string> words_for(const std::string& host, const std::string& kumi_path);

} // namespace kumi::launch::remote
