#include "harness/peer_program.hpp"

#include <unistd.h>

namespace kumi::bench {

Result<std::string> peer_program(const std::string& peers_folder, const std::string& peer) {
    std::string program = peers_folder + "/kumi-bench-" + peer;
    if (::access(program.c_str(), X_OK) == 0) return program;
    return error("its program was not built; install {} and build again (make bench does)", peer);
}

} // namespace kumi::bench
