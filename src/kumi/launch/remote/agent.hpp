#pragma once

// The agent: the command that starts a helper on another host. It is ssh, or any other command that takes a host's name
// and a command for a shell there.

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

/// Finds the agent that the user named: words with blanks between them; ssh, if empty. ssh is told never to ask for a
/// password, since nobody could answer, and to give up after `start_max`.
Result<Agent> find_agent(std::string_view rsh, std::chrono::seconds start_max);

/// The words that follow the agent's own to run `kumi host-helper` on a host: the host's name, and a single word that
/// any shell takes for a command, and so does an agent that only splits it at blanks.
std::vector<std::string> words_for(const std::string& host, const std::string& kumi_path);

} // namespace kumi::launch::remote
