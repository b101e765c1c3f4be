#include "kumi/launch/host/pmi/program.hpp"

#include "kumi/base/system/descriptor.hpp"
#include "kumi/boot/wire.hpp"

#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>

namespace kumi::launch::host {
namespace {

/// A file's bytes, as long as this lives; none if it cannot be read.
class MappedFile {
public:
    explicit MappedFile(const std::string& path) {
        const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        struct stat status {};
        if (!file || ::fstat(file.get(), &status) != 0 || status.st_size == 0) return;
        void* const start =
            ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file.get(), 0);
        if (start != MAP_FAILED) bytes_ = {static_cast<const char*>(start), static_cast<std::size_t>(status.st_size)};
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() {
        if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
    }
    bool is_elf() const { return bytes_.starts_with("\177ELF"); }
    bool names(std::string_view text) const {
        return ::memmem(bytes_.data(), bytes_.size(), text.data(), text.size()) != nullptr;
    }

private:
    std::string_view bytes_;
};

} // namespace

MpiNeed mpi_need_of(const std::string& path) {
    const MappedFile program(path);
    if (!program.is_elf()) return MpiNeed::maybe;
    // The second is what MPICH and its relatives agreed to call their libraries.
    if (program.names("libmpich.so") || program.names("libmpi.so.12")) return MpiNeed::pmi;
    if (program.names("libmpi.so")) return MpiNeed::pmix;
    const bool is_of_kumi = program.names(boot::socket_variable) || program.names("libkumi.so");
    return is_of_kumi ? MpiNeed::none : MpiNeed::maybe;
}

} // namespace kumi::launch::host
