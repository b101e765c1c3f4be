#pragma once

#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::lab {

/// Runs a system command to its end, found on PATH or in /usr/sbin, with the calling thread's network. The error is
/// one line: the command, and the first thing that it said or what to install.
Result<void> run_command(const std::vector<std::string>& words);

/// The same with an input, as in `ip -batch -`; lines is what to do, and the error names the line that failed. No
/// lines, no command.
Result<void> run_lines(const std::vector<std::string>& words, const std::string& lines);

} // namespace kumi::lab
