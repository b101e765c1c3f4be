#include "kumi/launch/host/processes/core_claims.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fmt/core.h>
#include <numeric>
#include <optional>
#include <sys/file.h>
#include <thread>

namespace kumi::launch::host {
namespace {

using namespace std::chrono_literals;

/// Locks a file until the descriptor is closed. Nothing: another process has it locked. An empty descriptor: the file
/// does not exist or cannot be locked.
std::optional<base::Descriptor> try_lock(const std::string& path) {
    base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) return std::nullopt;
        file.reset();
    }
    return file;
}

/// Makes jobs claim their cores one after the other: two jobs that start at the same moment might otherwise have half
/// of the cores each, and both give up. Goes on without the lock after 100 ms: its owner may be a process that was
/// stopped.
base::Descriptor wait_for_turn(const std::string& folder) {
    for (int attempt = 0; attempt < 100; ++attempt, std::this_thread::sleep_for(1ms))
        if (auto locked = try_lock(folder)) return *std::move(locked);
    return {};
}

std::string file_of_core(const std::string& folder, unsigned number) { return fmt::format("{}/cpu{}", folder, number); }

} // namespace

std::vector<std::size_t> choose_cores(const std::vector<bool>& taken, std::size_t nodes) {
    std::vector<std::size_t> free;
    for (std::size_t index = 0; index < taken.size(); ++index)
        if (!taken[index]) free.push_back(index);
    // With another job's node on every core, one more on each is better than none bound: nodes that spin while they
    // wait for each other would often meet on one core. Where only some cores are taken, the system does better.
    if (free.empty() && nodes == taken.size()) free.resize(nodes), std::iota(free.begin(), free.end(), 0u);
    if (nodes > free.size()) return {};
    std::vector<std::size_t> chosen;
    for (std::size_t node = 0; node < nodes; ++node) chosen.push_back(free[node * free.size() / nodes]);
    return chosen;
}

std::vector<ClaimedCore> claim_cores(const std::string& folder, const std::vector<unsigned>& numbers,
                                     std::size_t nodes) {
    const base::Descriptor turn = wait_for_turn(folder);
    std::vector<bool> taken;
    for (const unsigned number : numbers) taken.push_back(!try_lock(file_of_core(folder, number)));
    std::vector<ClaimedCore> claimed;
    for (const std::size_t index : choose_cores(taken, nodes)) {
        auto claim = taken[index] ? base::Descriptor() : try_lock(file_of_core(folder, numbers[index]));
        if (!claim) return {}; // a job that did not wait for its turn has it
        claimed.push_back({index, *std::move(claim)});
    }
    return claimed;
}

} // namespace kumi::launch::host
