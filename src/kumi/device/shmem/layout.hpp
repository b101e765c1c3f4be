#pragma once

// The layout of a host's shared segment, a pure function of the number of nodes and the options: one header page; then
// for each node one part (its doorbell, the rings that lead to it, its buffers for large messages); then for each node
// a window of addresses for exposed memory, which gets memory when it is exposed.

#include "kumi/base/sync/doorbell.hpp"
#include "kumi/base/sync/line_ring.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/device/shmem/options.hpp"
#include "kumi/pm/node.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kumi::device::shmem {

using Memory = base::MachineMemory;
using pm::Node;

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t unit_bytes = 4096; // buffers are allocated in units

/// First bytes of the segment, written by its creator before any other node sees it.
struct SegmentHeader {
    std::uint64_t magic;
    std::uint32_t version;
    Node nodes;
    std::uint64_t ring_lines;
    std::uint64_t buffer_bytes; // per node
    std::uint64_t window_bytes; // per node
    base::Fencing fencing;
    std::uint32_t reserved;

    static constexpr std::uint64_t magic_expected = 0x6b756d692d73686dULL; // "kumi-shm"
    static constexpr std::uint32_t version_expected = 2;
};

/// Whether a node is still there; presence.hpp says who writes it. Memory that is all zero says `here`.
enum class Presence : std::uint32_t {
    here,   // its death would not be noticed
    locked, // here, and it holds its lock until it ends
    left,
    died,
};

/// First bytes of a node's part: what other nodes write to reach it, and whether it is there. Each member has its own
/// cache lines.
struct Mailbox {
    alignas(64) base::DoorbellState<Memory> bell;
    alignas(64) std::atomic<Presence> presence;
    alignas(64) std::atomic<std::uint32_t> returned; // stack of returned buffers, see buffers.cpp; 0: none
    alignas(64) std::atomic<std::uint32_t> buffer_wanted; // the node sleeps until a buffer is returned
};

struct Layout {
    Node nodes;
    std::size_t ring_lines;
    std::size_t buffer_bytes;
    std::size_t window_bytes;

    static Layout plan(Node nodes, const Options& options) noexcept;
    static Layout from(const SegmentHeader& header) noexcept;

    /// One bit for each writer; and behind these words one that is not zero when some node has left or died.
    std::size_t writer_words() const noexcept { return (nodes + 63) / 64; }
    std::size_t attention_words() const noexcept { return writer_words() + 1; }
    std::size_t units() const noexcept { return buffer_bytes / unit_bytes; }

    // Offsets within a part.
    std::size_t attention_offset() const noexcept { return sizeof(Mailbox); }
    std::size_t control_offset(Node writer) const noexcept;
    std::size_t ring_offset(Node writer) const noexcept;
    std::size_t links_offset() const noexcept;
    std::size_t buffers_offset() const noexcept;
    std::size_t part_bytes() const noexcept { return buffers_offset() + buffer_bytes; }

    // Offsets within the segment.
    std::size_t part_offset(Node node) const noexcept { return page_bytes + node * part_bytes(); }
    std::size_t window_offset(Node node) const noexcept; // each window is mapped separately
    std::size_t memory_bytes() const noexcept { return part_offset(nodes); }      // reserved at open
    std::size_t segment_bytes() const noexcept { return window_offset(nodes); }   // with the windows

    /// The longest record, and the largest message that is sent inside the ring.
    std::uint32_t record_lines_max() const noexcept;
    std::size_t inline_bytes_max() const noexcept { return record_lines_max() * sizeof(base::RingLine) - 8; }

    /// Memory for one direction between two nodes.
    std::size_t bytes_per_pair() const noexcept { return ring_lines * sizeof(base::RingLine) + 64; }
};

} // namespace kumi::device::shmem
