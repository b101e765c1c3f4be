#include "kumi/device/shmem/layout.hpp"

#include <algorithm>
#include <bit>

namespace kumi::device::shmem {
namespace {

constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) noexcept {
    return (bytes + multiple - 1) / multiple * multiple;
}

} // namespace

Layout Layout::plan(Node nodes, const Options& options) noexcept {
    const std::size_t pairs = std::size_t{nodes} * nodes;
    const std::size_t ring_bytes = std::clamp<std::size_t>(options.rings_bytes_max / pairs, 2048, 65536);
    const std::size_t buffer_bytes =
        std::max(std::min(options.buffers_bytes_max / nodes, options.node_buffers_bytes_max), std::size_t{1} << 18);
    return {.nodes = nodes,
            .ring_lines = std::bit_floor(ring_bytes / sizeof(base::RingLine)),
            .buffer_bytes = buffer_bytes / unit_bytes * unit_bytes,
            .window_bytes = round_up(options.exposed_bytes_max, base::page_bytes_max)};
}

Layout Layout::from(const SegmentHeader& header) noexcept {
    return {header.nodes, header.ring_lines, header.buffer_bytes, header.window_bytes};
}

std::size_t Layout::control_offset(Node writer) const noexcept {
    const std::size_t controls = round_up(attention_offset() + attention_words() * 8, 64);
    return controls + writer * sizeof(base::RingControl<Memory>);
}

std::size_t Layout::ring_offset(Node writer) const noexcept {
    // Processors of x86 fetch cache lines in aligned pairs, so a record of two lines is mostly one such pair.
    constexpr std::size_t two_lines = 2 * sizeof(base::RingLine);
    return round_up(control_offset(nodes), two_lines) + writer * ring_lines * sizeof(base::RingLine);
}

std::size_t Layout::links_offset() const noexcept { return ring_offset(nodes); }

std::size_t Layout::buffers_offset() const noexcept {
    return round_up(links_offset() + units() * sizeof(std::uint32_t), page_bytes);
}

std::size_t Layout::window_offset(Node node) const noexcept {
    return round_up(part_offset(nodes), base::page_bytes_max) + node * window_bytes;
}

std::uint32_t Layout::record_lines_max() const noexcept {
    // With an eighth several records fit into a ring; a quarter is the ring's limit. One line more, so that messages of
    // 8 KiB fit into rings of 64 KiB: through a buffer they take a tenth longer.
    return std::min(std::max(static_cast<std::uint32_t>(ring_lines / 8 + 1), 4u), base::record_lines_max(ring_lines));
}

} // namespace kumi::device::shmem
