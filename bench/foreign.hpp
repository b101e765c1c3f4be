#pragma once

#include "network.hpp"
#include "task.hpp"

#include "kumi/base/result.hpp"

#include <string>

namespace kumi::bench {

/// The peers that are programs of others, or written with their libraries: iperf3, openmpi, enet, zeromq.
/// Answers an exit code.
int run_foreign(const Task& task, const Network& network);

/// The program of a peer that is written with its library; the error says how to get it.
Result<std::string> peer_program(const std::string& peers_folder, const std::string& peer);

} // namespace kumi::bench
