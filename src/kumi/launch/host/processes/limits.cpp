#include "kumi/launch/host/processes/limits.hpp"

#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sys/resource.h>

namespace kumi::launch::host {
namespace {

/// What the smallest node needs: 0.3 MiB of its own (RssAnon of one that has joined), and as much in the kernel and in
/// shared memory.
constexpr std::uint64_t node_bytes_min = std::uint64_t{1} << 19;

/// This process's ends of a node's sockets, of Kumi and PMI-1, its output, error and leash, and the claim of its core.
constexpr std::uint64_t descriptors_per_node = 6;
/// Two for a host's link, one for what its agent complains of, one for the agent's leash, and three while that is
/// started.
constexpr std::uint64_t descriptors_per_host = 7;
/// Eleven are open in `kumi run` itself, with those for a PMIx server. The others are for what starting a node, reading
/// and writing files and looking up hosts take for a moment.
constexpr std::uint64_t descriptors_besides = 32;

std::uint64_t processes_max() {
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
    if (std::ifstream file("/proc/sys/kernel/pid_max"); !(file >> limit)) limit = 32768;
    rlimit mine{};
    if (::getrlimit(RLIMIT_NPROC, &mine) == 0 && mine.rlim_cur != RLIM_INFINITY)
        limit = std::min<std::uint64_t>(limit, mine.rlim_cur);
    return limit;
}

/// `what` needs them, in the error.
Result<void> allow_descriptors(std::uint64_t wanted, const std::string& what) {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return {};
    if (files.rlim_max != RLIM_INFINITY && files.rlim_max < wanted)
        return error("{} needs {} open files, and the limit is {} (ulimit -Hn)", what, wanted, files.rlim_max);
    files.rlim_cur = wanted;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0)
        return error("{} needs {} open files, and the limit (ulimit -n) cannot be raised", what, wanted);
    return {};
}

} // namespace

Result<void> check_limits(std::uint32_t nodes) {
    if (nodes >= processes_max())
        return error("-n {}: this machine allows at most {} processes (kernel.pid_max, ulimit -u)", nodes,
                     processes_max());
    const std::uint64_t available = base::memory_available_bytes();
    if (nodes * node_bytes_min > available)
        return error("-n {}: so many nodes need at least {} of memory, and this machine has {} left", nodes,
                     base::readable_bytes(nodes * node_bytes_min), base::readable_bytes(available));
    return allow_descriptors(nodes * descriptors_per_node + descriptors_besides,
                             fmt::format("-n {}: watching so many nodes", nodes));
}

Result<void> check_host_limits(std::size_t hosts) {
    return allow_descriptors(hosts * descriptors_per_host + descriptors_besides,
                             fmt::format("a job on {} hosts", hosts));
}

} // namespace kumi::launch::host
