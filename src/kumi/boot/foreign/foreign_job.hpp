#pragma once

// A job that was started by another launcher than `kumi run`. All that Kumi needs of the launcher is a store of keys
// and values, so every launcher gives the same kind of session. Nodes join in three fences:
//
// 1. Each node puts information about itself into the store: its host, the name of the Unix socket at which it listens,
//    and its cores. Node 0 adds the job's keys.
// 2. Nodes that name the same host connect to the lowest of them, the leader, which finds all connections waiting after
//    the second fence.
// 3. The leader sends each of them a page of memory. A node that can map the page is on the leader's host; a node that
//    cannot is alone on a host of its own. Each node tells all others which is the case.
//
// So nodes count as one host when they really share memory, and not because the names of their hosts are equal: names
// of hosts repeat, and containers on one machine may or may not reach each other.
//
// The keys are as secret as the launcher's store. Any process of this job can read it. Between hosts it travels on the
// launcher's own connections, which hydra, Slurm and Open MPI do not encrypt. So on a network where others listen, and
// only there, this is less secure than `kumi run`.

#include "kumi/base/system/machine.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/boot/store/key_values.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <string>

namespace kumi::boot {

/// How long a launcher or another node may take to answer.
inline constexpr std::chrono::milliseconds foreign_answer_max{60'000};

using base::HostId;

/// The id of this process's host. Where the system hides it, an id that no other process has.
Result<HostId> this_host();

/// Joins the job of all nodes that share the store.
Result<std::unique_ptr<Session>> join_foreign_job(std::unique_ptr<KeyValues> store, const HostId& host,
                                                  std::chrono::milliseconds answer_max = foreign_answer_max);

} // namespace kumi::boot
