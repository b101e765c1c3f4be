#pragma once

// Bodies of the frames that the servers of MPI processes send and get; boot/wire.hpp says when.

#include "kumi/base/bytes.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch::host {

/// mpi_joined, mpi_left and output, as the PMIx server's process sends them to the starter of its host's nodes, begin
/// with the node's number.
std::vector<std::byte> with_node(std::uint32_t node, Bytes rest = {});

/// mpi_aborted. Between the PMIx server's process and the starter of its host's nodes it has the node's number before
/// it, too.
struct Abort {
    std::int32_t code = 1; // of the job's end
    std::string text;      // empty: the process has said why, or nothing
};
std::vector<std::byte> encode(const Abort& abort);
std::optional<Abort> decode_abort(Bytes body);

/// Why a process that calls MPI_Comm_spawn ends its job. An error would reach only one of the processes that take part;
/// the others would wait for ever.
inline constexpr const char* spawn_refused =
    "MPI_Comm_spawn is not supported under kumi run: start all processes at once, or use the MPI's own mpirun";

/// fence: what a host's processes have to tell all others. fenced: the contents of all hosts, one after the other, the
/// host of the lowest node first.
///
/// The key names the fence, and the processes that meet there: a letter for the protocol, then "*" for all nodes of the
/// job, or their numbers in rising order, as in "x0,4,5". A host sends a fence for each time that its processes meet.
struct Fence {
    std::string key;
    std::vector<std::byte> content;
};
std::vector<std::byte> encode(const Fence& fence);
std::optional<Fence> decode_fence(Bytes body);

/// The nodes that a fence's key names: nothing if it is no key of a job with so many nodes; empty if they are all.
std::optional<std::vector<std::uint32_t>> nodes_of_fence(std::string_view key, std::uint32_t nodes);

/// fetch: asks the servers of the host of `target` for what that process has published. fetched: their answer, which
/// goes to the host of `asker`.
struct Fetch {
    std::uint32_t id = 0; // of the question, at the host that asks
    std::uint32_t asker = 0;
    std::uint32_t target = 0;
    std::int32_t status = 0; // of PMIx
    std::vector<std::byte> content;
};
std::vector<std::byte> encode(const Fetch& fetch);
std::optional<Fetch> decode_fetch(Bytes body);

} // namespace kumi::launch::host
