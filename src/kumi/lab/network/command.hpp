#pragma once

#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::lab {

/// Runs a system command to its end, in the calling thread's network. The command is looked for on PATH and in
/// /usr/sbin. The error is one line: the command, and the first thing that it said or what to install.
Result<void> run_command(const std::vector<std::string>& words);

/// Runs a command that reads `lines` as its standard input, as `ip -batch -` does. The error names the line that
/// failed. Without lines it runs nothing.
Result<void> run_lines(const std::vector<std::string>& words, const std::string& lines);

} // namespace kumi::lab
