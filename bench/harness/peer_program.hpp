#pragma once

#include "kumi/base/result.hpp"

#include <string>

namespace kumi::bench {

/// The program of a peer that is written with that peer's library. The error says how to get the program.
Result<std::string> peer_program(const std::string& peers_folder, const std::string& peer);

} // namespace kumi::bench
