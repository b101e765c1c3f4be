#include "kumi/boot/foreign/shared_page.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kumi::boot {

Result<PageMark> make_page_mark() {
    PageMark mark{};
    if (::getrandom(mark.data(), mark.size(), 0) != static_cast<ssize_t>(mark.size()))
        return system_error(errno, "marking this host (getrandom)");
    return mark;
}

Result<base::Descriptor> make_shared_page(const PageMark& mark) {
    base::Descriptor page(::memfd_create("kumi-page", MFD_CLOEXEC));
    if (!page) return system_error(errno, "making shared memory (memfd_create)");
    if (::pwrite(page.get(), mark.data(), mark.size(), 0) != static_cast<ssize_t>(mark.size()))
        return system_error(errno, "writing to shared memory");
    return page;
}

Result<PageMark> read_shared_page(const base::Descriptor& page) {
    PageMark mark{};
    struct stat status {};
    // Past the end of it a look would not fail but kill.
    if (::fstat(page.get(), &status) != 0 || status.st_size != static_cast<off_t>(mark.size()))
        return error("the memory handed over is not a page of Kumi's");
    void* const memory = ::mmap(nullptr, mark.size(), PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0);
    if (memory == MAP_FAILED) return system_error(errno, "mapping memory of another process of this host");
    std::memcpy(mark.data(), memory, mark.size());
    ::munmap(memory, mark.size());
    return mark;
}

} // namespace kumi::boot
