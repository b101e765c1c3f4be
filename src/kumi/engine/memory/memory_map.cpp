#include "kumi/engine/memory/memory_map.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <sys/mman.h>

namespace kumi::engine {
namespace {

constexpr std::uint64_t page_bytes = base::page_bytes_max; // memory is protected by pages
constexpr std::uint64_t alignment = 64; // of allocations
constexpr std::uint64_t heap_step = 1 << 20; // the least that the heap grows by
/// Addresses, not memory, where no channel has a window. ThreadSanitizer leaves a program on aarch64 some 30 GiB of
/// them.
#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t private_window_bytes = std::uint64_t{512} << 20;
#else
constexpr std::uint64_t private_window_bytes = std::uint64_t{16} << 30;
#endif

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

} // namespace

MemoryMap::MemoryMap(pm::Channel& channel)
    : self_(channel.self()), remote_(channel.remote_memory()), bases_(channel.nodes()), is_reached_(channel.nodes()),
      starts_(make_table()), ends_(make_table()) {}

/// Few jobs have many segments: the system gives memory when it is used.
MemoryMap::Table MemoryMap::make_table() {
    void* const zeroed = std::calloc(segments_max, sizeof(std::atomic<std::uint64_t>));
    if (zeroed == nullptr) throw std::bad_alloc();
    return Table(static_cast<std::atomic<std::uint64_t>*>(zeroed));
}

MemoryMap::~MemoryMap() {
    if (private_window_ != nullptr) ::munmap(private_window_, window_bytes_);
}

Result<std::unique_ptr<MemoryMap>> MemoryMap::open(pm::Channel& channel) {
    std::unique_ptr<MemoryMap> map(new MemoryMap(channel));
    if (map->remote_ != nullptr) {
        map->window_bytes_ = map->remote_->window_bytes();
        for (Node node = 0; node < channel.nodes(); ++node) {
            if (auto reached = map->remote_->reach(node); !reached) return reached.error();
            map->bases_[node] = map->remote_->direct(node, 0);
        }
    } else {
        map->window_bytes_ = private_window_bytes;
        void* const memory =
            ::mmap(nullptr, private_window_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return system_error(errno, "setting addresses aside for segments (is there a limit: ulimit -v?)");
        map->private_window_ = map->bases_[map->self_] = static_cast<std::byte*>(memory);
    }
    for (Node node = 0; node < channel.nodes(); ++node) map->is_reached_[node].store(map->is_mapped(node));
    if (auto exposed = map->expose(0, shared_page_bytes); !exposed) return exposed.error();
    const std::uint64_t half = map->window_bytes_ / 2 / page_bytes * page_bytes;
    map->segment_ranges_.add(shared_page_bytes, half - std::min(half, shared_page_bytes));
    map->starts_[0].store(half);
    return map;
}

Result<void> MemoryMap::expose(std::uint64_t offset, std::uint64_t bytes) {
    if (remote_ != nullptr) {
        auto exposed = remote_->expose(offset, bytes);
        return exposed ? Result<void>() : Result<void>(exposed.error());
    }
    if (bytes > base::memory_available_bytes())
        return error(ErrorCode::no_memory, "setting {} aside: this host has only {} left", base::readable_bytes(bytes),
                     base::readable_bytes(base::memory_available_bytes()));
    if (::mprotect(private_window_ + offset, bytes, PROT_READ | PROT_WRITE) != 0)
        return system_error(errno, "setting memory aside");
    return {};
}

void MemoryMap::conceal(std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (remote_ != nullptr) return remote_->conceal(offset, bytes);
    ::madvise(private_window_ + offset, bytes, MADV_DONTNEED);
    ::mprotect(private_window_ + offset, bytes, PROT_NONE);
}

// ---- segments

/// The number of the next free slot, in the order of slots, so that no number comes again soon: whatever still has a
/// pointer to a dropped segment finds nothing. Empty: no slot is free.
std::optional<SegmentId> MemoryMap::next_number() noexcept {
    if (segments_ == segments_max - 1) return std::nullopt; // slot 0 is the heap
    do {
        if (++last_slot_ != segments_max) continue;
        last_slot_ = 1;
        generation_ = (generation_ + 1) % (1u << generation_bits);
    } while (ends_[last_slot_].load(std::memory_order_relaxed) != 0); // changed by this thread alone
    return generation_ << slot_bits | last_slot_;
}

Result<SegmentId> MemoryMap::make(std::uint64_t bytes) {
    const auto segment = next_number();
    if (!segment)
        return error(ErrorCode::no_memory, "making a segment: there are {} already, which is the most; free some",
                     segments_max - 1);
    const std::uint64_t wanted = round_up(std::max<std::uint64_t>(bytes, 1), page_bytes);
    const auto start = wanted >= bytes ? segment_ranges_.take(wanted) : std::nullopt;
    if (!start)
        return error(ErrorCode::no_memory,
                     "making a segment of {}: all segments of a node have {} of addresses; raise KUMI_SHMEM_EXPOSED",
                     base::readable_bytes(bytes), base::readable_bytes(starts_[0].load(std::memory_order_relaxed)));
    if (auto exposed = expose(*start, wanted); !exposed) {
        segment_ranges_.add(*start, wanted);
        return error(exposed.error().code(), "making a segment: {}", exposed.error().text());
    }
    ++segments_;
    starts_[slot_of(*segment)].store(*start, std::memory_order_relaxed); // ordered by the next one
    ends_[slot_of(*segment)].store(std::uint64_t{*segment >> slot_bits} << end_bits | (bytes + 1),
                                   std::memory_order_release); // partner: the acquire in end_of()
    return *segment;
}

void MemoryMap::drop(SegmentId segment) noexcept {
    const std::uint64_t end = end_of(self_, segment);
    KUMI_ASSERT(segment != 0 && end != 0);
    ends_[slot_of(segment)].store(0);
    --segments_;
    const std::uint64_t bytes = end - 1;
    const std::uint64_t start = starts_[slot_of(segment)].load();
    const std::uint64_t taken = round_up(std::max<std::uint64_t>(bytes, 1), page_bytes);
    conceal(start, taken);
    segment_ranges_.add(start, taken);
}

std::byte* MemoryMap::find_exposed(Node node, SegmentId segment, std::uint64_t offset,
                                   std::uint64_t bytes) const noexcept {
    return is_exposed(segment) && node == self_ ? exposures_.find(segment, offset, bytes) : nullptr;
}

std::string MemoryMap::explain(Node node, SegmentId segment, std::uint64_t offset, std::uint64_t bytes) const {
    if (is_exposed(segment) && (node != self_ || exposures_.find(segment, 0, 0) == nullptr))
        return "it is not exposed (any more)";
    if (is_exposed(segment))
        return fmt::format("{} bytes are exposed, and these are {} at {}", exposures_.bytes(segment), bytes, offset);
    if (segment != 0 && end_of(self_, segment) == 0)
        return fmt::format("there is no segment {} (any more)", segment);
    if (segment == 0) return fmt::format("the heap of node {} has no {} bytes at {}", node, bytes, offset);
    return fmt::format("segment {} has {} bytes, and these are {} at {}", segment, end_of(self_, segment) - 1, bytes,
                       offset);
}

// ---- the heap

Result<void> MemoryMap::grow_heap(std::uint64_t bytes) {
    SharedPage& page = this->page(self_);
    const std::uint64_t size = page.heap_bytes.load();
    const std::uint64_t room = window_bytes_ - starts_[0].load() - size;
    const std::uint64_t missing = bytes - std::min(bytes, heap_ranges_.length_before(size));
    const std::uint64_t more = std::max({round_up(missing, page_bytes), heap_step, round_up(size / 4, page_bytes)});
    const std::uint64_t step = std::min(more, room);
    if (step < missing)
        return error(ErrorCode::no_memory,
                     "allocating {}: the heap of a node has {} of addresses; raise KUMI_SHMEM_EXPOSED",
                     base::readable_bytes(bytes), base::readable_bytes(window_bytes_ - starts_[0].load()));
    if (auto exposed = expose(starts_[0].load() + size, step); !exposed)
        return error(exposed.error().code(), "allocating {}: {}", base::readable_bytes(bytes), exposed.error().text());
    heap_ranges_.add(size, step);
    page.heap_bytes.store(size + step, std::memory_order_release); // partner: the acquire in size_of()
    return {};
}

Result<std::uint64_t> MemoryMap::allocate(std::uint64_t bytes) {
    const std::uint64_t wanted = round_up(std::max<std::uint64_t>(bytes, 1), alignment);
    if (wanted < bytes || wanted > window_bytes_)
        return error(ErrorCode::too_large, "allocating {}: no node has so many addresses", base::readable_bytes(bytes));
    auto start = heap_ranges_.take(wanted);
    if (!start) {
        if (auto grown = grow_heap(wanted); !grown) return grown.error();
        start = heap_ranges_.take(wanted);
    }
    allocated_.emplace(*start, wanted);
    return *start;
}

Result<void> MemoryMap::release(std::uint64_t offset) {
    const auto found = allocated_.find(offset);
    if (found == allocated_.end())
        return error(ErrorCode::misuse, "releasing heap memory at {}: it was not allocated, or is released already",
                     offset);
    heap_ranges_.add(found->first, found->second);
    allocated_.erase(found);
    return {};
}

} // namespace kumi::engine
