#pragma once

// The subcommands of `kumi lab`: they start a keeper, send it requests, and end it.

#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::lab {

struct UpOptions {
    std::string name;
    std::string cluster_file;
    std::vector<std::string> shared; // folders that all hosts see, besides the working folder
};

/// Makes a lab. Returns when every host is ready, with a line for the user.
Result<std::string> up(const UpOptions& options);

/// Sends a request to the lab, and prints its answer or what went wrong. Answers the exit code.
int ask(const std::string& name, const std::string& verb, const std::vector<std::string>& words);

/// Runs a command on a host, with the standard streams, the environment and the signals of this process, and in its
/// working folder if the host has that. Answers the command's exit code; 255 when it could not be run there.
int exec(const std::string& name, const std::vector<std::string>& host_and_command);

/// Ends a lab. Returns when nothing is left of it.
Result<void> down(const std::string& name);

} // namespace kumi::lab
