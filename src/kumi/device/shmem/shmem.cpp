#include "kumi/device/shmem/shmem.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/base/text/size_text.hpp"
#include "kumi/device/shmem/channel.hpp"
#include "kumi/device/shmem/segment.hpp"

#include <cstdlib>
#include <string_view>

namespace kumi::device::shmem {
namespace {

/// The lock that tells others when this node dies. Without it all else works: deaths are not noticed, and nodes that
/// leave are.
LifeLock take_life_lock(const Segment& segment, Node self) {
    auto lock = LifeLock::take(segment, self);
    if (lock) return *std::move(lock);
    const std::string text = fmt::format("nodes of this host that die will not be noticed: {}", lock.error().text());
    self == 0 ? base::log_warning("{}", text) : base::log_debug("{}", text); // once for the host
    return {};
}

} // namespace

Result<std::unique_ptr<pm::Channel>> ShmemDevice::open(const pm::Opening& opening) {
    std::shared_ptr<Segment> segment;
    Options options = options_;
    // Where nodes must sleep to let each other run, they sleep often, and sleeping must be cheap.
    if (!options.fencing && opening.nodes > opening.cores_on_host) options.fencing = base::Fencing::by_writer;
    if (opening.self == 0) {
        auto made = Segment::create(opening.nodes, options);
        if (!made) return made.error();
        segment = *std::move(made);
        if (segment->fencing() == base::Fencing::by_writer && options.fencing != base::Fencing::by_writer)
            base::log_warning("membarrier(2) is refused here, so every message costs one more fence; see kumi doctor");
        const Layout& layout = segment->layout();
        base::log_debug(
            "shmem: {} nodes, rings of {}, messages up to {} inside, up to {} in buffers, {} in all; the {} fences",
            layout.nodes, base::readable_bytes(layout.ring_lines * sizeof(base::RingLine)),
            base::readable_bytes(layout.inline_bytes_max()), base::readable_bytes(layout.buffer_bytes),
            base::readable_bytes(layout.memory_bytes()),
            segment->fencing() == base::Fencing::by_reader ? "reader" : "writer");
        if (auto shared = opening.meeting.share(segment->duplicate()); !shared) return shared.error();
    } else {
        auto shared = opening.meeting.share({});
        if (!shared) return shared.error();
        auto attached = Segment::attach(*std::move(shared), opening.nodes);
        if (!attached) return attached.error();
        segment = *std::move(attached);
    }
    if (auto reserved = segment->reserve_part(opening.self); !reserved) return reserved.error();
    LifeLock lock = take_life_lock(*segment, opening.self);
    // No node may write to a part before its memory is reserved, nor look at a lock before it is held.
    if (auto all = opening.meeting.exchange({}); !all) return all.error();
    return std::unique_ptr<pm::Channel>(
        std::make_unique<ShmemChannel>(std::move(segment), opening.self, opening.waker, std::move(lock)));
}

Result<std::vector<std::unique_ptr<pm::Channel>>> open_in_one_process(pm::Node nodes, const Options& options,
                                                                      std::span<pm::Waker* const> wakers) {
    auto segment = Segment::create(nodes, options);
    if (!segment) return segment.error();
    for (pm::Node node = 0; node < nodes; ++node)
        if (auto reserved = (*segment)->reserve_part(node); !reserved) return reserved.error();
    std::vector<std::unique_ptr<pm::Channel>> channels;
    for (pm::Node node = 0; node < nodes; ++node)
        channels.push_back(std::make_unique<ShmemChannel>(*segment, node, wakers.empty() ? nullptr : wakers[node],
                                                          take_life_lock(**segment, node)));
    return channels;
}

Result<Options> options_from_environment() {
    Options options;
    if (const char* text = std::getenv("KUMI_SHMEM_MEMORY")) {
        const auto bytes = base::parse_size(text);
        if (!bytes) return error("KUMI_SHMEM_MEMORY={}: {}", text, bytes.error().text());
        // One variable sets both: buffers get four fifths, as in the defaults.
        options.rings_bytes_max = *bytes / 5;
        options.buffers_bytes_max = *bytes - options.rings_bytes_max;
        options.node_buffers_bytes_max = options.buffers_bytes_max;
    }
    if (const char* text = std::getenv("KUMI_SHMEM_EXPOSED")) {
        const auto bytes = base::parse_size(text);
        if (!bytes) return error("KUMI_SHMEM_EXPOSED={}: {}", text, bytes.error().text());
        options.exposed_bytes_max = *bytes;
    }
    if (const char* text = std::getenv("KUMI_SHMEM_FENCING")) {
        const std::string_view who = text;
        if (who != "reader" && who != "writer") return error("KUMI_SHMEM_FENCING={}: say reader or writer", text);
        options.fencing = who == "reader" ? base::Fencing::by_reader : base::Fencing::by_writer;
    }
    return options;
}

} // namespace kumi::device::shmem
