#pragma once

#include "kumi/base/system/descriptor.hpp"
#include "kumi/lab/keeper/control.hpp"

#include <string>

namespace kumi::lab {

/// Serves one connection of the kumi command. Runs in a process of its own that the keeper has forked, in the switch.
/// Writes each Change that it makes to `changes`. A command that it runs on a host ends when the kumi command that
/// asked for it is killed.
[[noreturn]] void serve(const Lab& lab, const std::string& lab_name, base::Descriptor connection, int changes);

/// The command to start for "exec HOST WORDS". A single word with blanks in it is for a shell, as with ssh.
std::vector<std::string> command_of(const std::vector<std::string>& words);

} // namespace kumi::lab
