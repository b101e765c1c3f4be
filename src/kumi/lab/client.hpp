#pragma once

// What `kumi lab` does: starts a keeper, asks it, ends it.

#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::lab {

struct UpOptions {
    std::string name;
    std::string cluster_file;
    std::vector<std::string> shared; // folders that all hosts see, as they see the working folder
};

/// Returns when every host is ready, with a line for the user.
Result<std::string> up(const UpOptions& options);

/// Asks the lab; prints what it answers, or what went wrong, and answers the exit code.
int ask(const std::string& name, const std::string& verb, const std::vector<std::string>& words);

/// Runs a command on a host, with our streams, environment, signals and, where it is there, folder. Answers its exit
/// code; 255 when it could not be run there.
int exec(const std::string& name, const std::vector<std::string>& host_and_command);

/// Returns when nothing is left of the lab.
Result<void> down(const std::string& name);

} // namespace kumi::lab
