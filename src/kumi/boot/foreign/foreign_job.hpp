#pragma once

// A job that somebody else's launcher started. All that is asked of the launcher is a store of keys and values, so
// every launcher makes the same session. Joining goes in three fences:
//
//   1. Each node leaves a card: what its host is, the door it listens at, its cores; node 0 adds the job's keys.
//   2. Nodes whose cards name the same host knock at the lowest of them, the leader.
//   3. The leader, which finds all knocks waiting after the second fence, hands a page of memory to each. Whoever could
//      map it is on the leader's host; whoever could not is alone on a host of its own. Each says which.
//
// So nodes count as one host when they really share memory, and not because their names are alike: names of hosts
// repeat, and containers on one machine may or may not reach each other.
//
// The keys are as secret as the launcher's store. Any process of this job can read it; between hosts it travels on the
// launcher's own connections, which hydra, Slurm and Open MPI do not encrypt. On a network where others listen, and
// only there, that is less than `kumi run` gives.

#include "kumi/boot/session.hpp"
#include "kumi/boot/store/key_values.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <string>

namespace kumi::boot {

/// How long a launcher, or another node, may take to answer.
inline constexpr std::chrono::milliseconds foreign_answer_max{60'000};

/// What nodes of one host have in common, unless they are in containers that see it differently.
struct HostMark {
    std::array<char, 36> boot_id{}; // of the running system
    std::uint64_t network_device = 0;
    std::uint64_t network_inode = 0; // the namespace in which abstract Unix sockets have their names

    friend bool operator==(const HostMark&, const HostMark&) = default;
};

/// This process's. Where the system hides it, one that nobody else has.
Result<HostMark> this_host();

/// Joins with whoever shares the store.
Result<std::unique_ptr<Session>> join_foreign_job(std::unique_ptr<KeyValues> store, const HostMark& host,
                                                  std::chrono::milliseconds answer_max = foreign_answer_max);

} // namespace kumi::boot
