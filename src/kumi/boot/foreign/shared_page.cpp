#include "kumi/boot/foreign/shared_page.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kumi::boot {

Result<PageId> make_page_id() {
    PageId id{};
    if (::getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size()))
        return system_error(errno, "marking this host (getrandom)");
    return id;
}

Result<base::Descriptor> make_shared_page(const PageId& id) {
    base::Descriptor page(::memfd_create("kumi-page", MFD_CLOEXEC));
    if (!page) return system_error(errno, "making shared memory (memfd_create)");
    if (::pwrite(page.get(), id.data(), id.size(), 0) != static_cast<ssize_t>(id.size()))
        return system_error(errno, "writing to shared memory");
    return page;
}

Result<PageId> read_shared_page(const base::Descriptor& page) {
    PageId id{};
    struct stat status {};
    // Reading beyond the end of the file would kill the process.
    if (::fstat(page.get(), &status) != 0 || status.st_size != static_cast<off_t>(id.size()))
        return error("the memory handed over is not a page of Kumi's");
    void* const memory = ::mmap(nullptr, id.size(), PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0);
    if (memory == MAP_FAILED) return system_error(errno, "mapping memory of another process of this host");
    std::memcpy(id.data(), memory, id.size());
    ::munmap(memory, id.size());
    return id;
}

} // namespace kumi::boot
