#include "kumi/device/shmem/segment.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/sync/memory_policy.hpp"
#include "kumi/base/system/machine.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kumi::device::shmem {
namespace {

constexpr unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error too_little_memory(const Layout& layout, std::string_view what_limits, std::uint64_t limit) {
    return error("shared memory for {} nodes needs {}, but {} is {}: start fewer nodes, or lower KUMI_SHMEM_MEMORY",
                 layout.nodes, base::readable_bytes(layout.memory_bytes()), what_limits, base::readable_bytes(limit));
}

/// Refuses a layout for which there is no memory. Windows are addresses and not memory: they are made smaller where
/// there is a limit.
Result<void> fit_memory(Layout& layout) {
    const std::uint64_t available = base::memory_available_bytes();
    if (layout.memory_bytes() > available) return too_little_memory(layout, "what this host has left", available);
    rlimit file_size{};
    // Beyond this limit the system would kill the process instead of returning an error.
    if (::getrlimit(RLIMIT_FSIZE, &file_size) != 0 || layout.segment_bytes() <= file_size.rlim_cur) return {};
    if (layout.window_offset(0) > file_size.rlim_cur)
        return too_little_memory(layout, "the file size limit (ulimit -f)", file_size.rlim_cur);
    const std::size_t for_windows = file_size.rlim_cur - layout.window_offset(0);
    layout.window_bytes = for_windows / layout.nodes / base::page_bytes_max * base::page_bytes_max;
    return {};
}

Result<std::byte*> map(int descriptor, std::size_t offset, std::size_t bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
    if (memory != MAP_FAILED) return static_cast<std::byte*>(memory);
    return system_error(errno, fmt::format("mapping {} of shared memory (is there a limit: ulimit -v?)",
                                           base::readable_bytes(bytes)));
}

/// Maps the memory for messages, and excludes it from core dumps, which would have the messages of all nodes of the
/// host.
Result<std::byte*> map_buffers(int descriptor, const Layout& layout) {
    auto memory = map(descriptor, 0, layout.memory_bytes());
    if (memory) ::madvise(*memory, layout.memory_bytes(), MADV_DONTDUMP); // if it fails, core dumps are larger
    return memory;
}

/// Reserves memory, which then cannot run out later: if the machine is full there is an error here, and no SIGBUS
/// later.
Result<void> reserve(int descriptor, std::size_t offset, std::size_t bytes) {
    while (::fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
        if (errno == EINTR) continue;
        return system_error(errno, fmt::format("setting {} of shared memory aside", base::readable_bytes(bytes)));
    }
    return {};
}

base::Fencing choose_fencing(const Options& options) noexcept {
    if (!base::register_for_heavy_fence()) return base::Fencing::by_writer;
    return options.fencing.value_or(base::Fencing::by_reader);
}

} // namespace

Segment::Segment(base::Descriptor descriptor, Layout layout, base::Fencing fencing, std::byte* memory) noexcept
    : descriptor_(std::move(descriptor)), layout_(layout), fencing_(fencing), memory_(memory),
      windows_(layout.nodes) {}

Segment::~Segment() {
    ::munmap(memory_, layout_.memory_bytes());
    for (const std::atomic<std::byte*>& window : windows_)
        if (window != nullptr) ::munmap(window, layout_.window_bytes);
}

Result<std::shared_ptr<Segment>> Segment::create(Node nodes, const Options& options) {
    Layout layout = Layout::plan(nodes, options);
    if (auto enough = fit_memory(layout); !enough) return enough.error();
    base::Descriptor descriptor(::memfd_create("kumi-shmem", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!descriptor) return system_error(errno, "making shared memory (memfd_create)");
    if (::ftruncate(descriptor.get(), static_cast<off_t>(layout.segment_bytes())) != 0)
        return system_error(errno, fmt::format("sizing shared memory to {} of addresses",
                                               base::readable_bytes(layout.segment_bytes())));
    if (::fcntl(descriptor.get(), F_ADD_SEALS, seals) != 0) return system_error(errno, "sealing shared memory");
    if (auto reserved = reserve(descriptor.get(), 0, page_bytes); !reserved) return reserved.error();
    auto memory = map_buffers(descriptor.get(), layout);
    if (!memory) return memory.error();

    const base::Fencing fencing = choose_fencing(options);
    new (*memory) SegmentHeader{.magic = SegmentHeader::magic_expected,
                                .version = SegmentHeader::version_expected,
                                .nodes = nodes,
                                .ring_lines = layout.ring_lines,
                                .buffer_bytes = layout.buffer_bytes,
                                .window_bytes = layout.window_bytes,
                                .fencing = fencing,
                                .reserved = 0};
    return std::shared_ptr<Segment>(new Segment(std::move(descriptor), layout, fencing, *memory));
}

Result<std::shared_ptr<Segment>> Segment::attach(base::Descriptor descriptor, Node nodes) {
    struct stat status {};
    SegmentHeader header{};
    const int sealed = ::fcntl(descriptor.get(), F_GET_SEALS);
    const bool read = ::fstat(descriptor.get(), &status) == 0 &&
                      ::pread(descriptor.get(), &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
    if (!read || sealed < 0 || (static_cast<unsigned>(sealed) & seals) != seals ||
        header.magic != SegmentHeader::magic_expected || header.version != SegmentHeader::version_expected)
        return error("the shared memory handed over by node 0 is not one that this version of Kumi made: "
                     "run the same version on all nodes");
    const Layout layout = Layout::from(header);
    if (header.nodes != nodes || static_cast<std::size_t>(status.st_size) != layout.segment_bytes())
        return error("the shared memory handed over by node 0 was made for {} nodes, not for {}", header.nodes, nodes);
    if (!base::register_for_heavy_fence() && header.fencing == base::Fencing::by_reader)
        return error("membarrier(2) works for node 0 but is refused to this node: run both under the same rules, "
                     "or set KUMI_SHMEM_FENCING=writer");
    auto memory = map_buffers(descriptor.get(), layout);
    if (!memory) return memory.error();
    return std::shared_ptr<Segment>(new Segment(std::move(descriptor), layout, header.fencing, *memory));
}

Result<void> Segment::reserve_part(Node node) {
    return reserve(descriptor_.get(), layout_.part_offset(node), layout_.part_bytes());
}

Result<void> Segment::reserve_window(Node node, std::size_t offset, std::size_t bytes) {
    return reserve(descriptor_.get(), layout_.window_offset(node) + offset, bytes);
}

void Segment::release_window(Node node, std::size_t offset, std::size_t bytes) noexcept {
    const auto start = static_cast<off_t>(layout_.window_offset(node) + offset);
    int done = -1;
    do
        done = ::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start,
                           static_cast<off_t>(bytes));
    while (done != 0 && errno == EINTR);
    KUMI_ASSERT(done == 0); // the seals allow it
}

base::Descriptor Segment::duplicate() const {
    return base::Descriptor(::fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 0));
}

std::byte* Segment::window(Node node) noexcept {
    std::byte* known = windows_[node].load();
    if (known != nullptr) return known;
    const auto mapped = map(descriptor_.get(), layout_.window_offset(node), layout_.window_bytes);
    if (!mapped || windows_[node].compare_exchange_strong(known, *mapped)) return mapped ? *mapped : nullptr;
    ::munmap(*mapped, layout_.window_bytes); // another thread was faster
    return known;
}

} // namespace kumi::device::shmem
