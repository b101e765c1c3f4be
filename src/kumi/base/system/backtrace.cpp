#include "kumi/base/system/backtrace.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <memory>
#include <span>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace kumi::base {
namespace {

/// A program or library as its file has it. The dynamic linker knows only the functions that other libraries may call;
/// the file's own table has all.
class ElfFile {
public:
    explicit ElfFile(const char* path) noexcept {
        const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
        struct stat info {};
        if (!file || ::fstat(file.get(), &info) != 0 || info.st_size <= 0) return;
        void* const start =
            ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file.get(), 0);
        if (start == MAP_FAILED) return;
        bytes_ = {static_cast<const std::byte*>(start), static_cast<std::size_t>(info.st_size)};
    }
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;
    ~ElfFile() {
        if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }

    /// Its addresses are those of the process, wherever it was loaded.
    bool is_at_fixed_place() const noexcept {
        const auto headers = part<ElfW(Ehdr)>(0, 1);
        return !headers.empty() && headers[0].e_type == ET_EXEC;
    }

    struct Function {
        std::string name;
        std::uint64_t start = 0;
    };
    /// The function that `address`, as the file counts, is in; without a name: unknown.
    Function function_at(std::uint64_t address) const {
        const auto headers = part<ElfW(Ehdr)>(0, 1);
        if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return {};
        const auto sections = part<ElfW(Shdr)>(headers[0].e_shoff, headers[0].e_shnum);
        for (const auto type : {SHT_SYMTAB, SHT_DYNSYM})
            for (const auto& section : sections) {
                if (section.sh_type != static_cast<std::uint32_t>(type) || section.sh_link >= sections.size()) continue;
                const auto& names = sections[section.sh_link];
                const auto text = part<char>(names.sh_offset, names.sh_size);
                for (const auto& symbol : part<ElfW(Sym)>(section.sh_offset, section.sh_size / sizeof(ElfW(Sym)))) {
                    const bool is_here = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value <= address &&
                                         address - symbol.st_value < symbol.st_size && symbol.st_name < text.size();
                    if (!is_here) continue;
                    const char* const name = text.data() + symbol.st_name;
                    return {std::string(name, ::strnlen(name, text.size() - symbol.st_name)), symbol.st_value};
                }
            }
        return {};
    }

private:
    /// Nothing, if the file has not so much.
    template <class T>
    std::span<const T> part(std::uint64_t offset, std::uint64_t count) const noexcept {
        const bool is_there =
            offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T) && offset % alignof(T) == 0;
        if (!is_there) return {};
        return {reinterpret_cast<const T*>(bytes_.data() + offset), static_cast<std::size_t>(count)};
    }

    std::span<const std::byte> bytes_;
};

std::string demangled(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                          std::free);
    return status == 0 && readable ? readable.get() : name;
}

/// The file that `info` is about is the program, and no library.
bool is_program(const Dl_info& info) noexcept {
    Dl_info program{};
    const auto* const headers = reinterpret_cast<const void*>(::getauxval(AT_PHDR)); // they lie in the program
    return ::dladdr(headers, &program) != 0 && program.dli_fbase == info.dli_fbase;
}

} // namespace

std::string name_of_address(const void* address) {
    Dl_info info{};
    if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return fmt::format("?? ({})", fmt::ptr(address));
    const auto in_process = reinterpret_cast<std::uintptr_t>(address);
    const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    // Of the program itself the linker has only the name that it was started by.
    const ElfFile file(is_program(info) ? "/proc/self/exe" : info.dli_fname);
    const std::uint64_t in_file = file.is_at_fixed_place() ? in_process : in_process - base;
    ElfFile::Function function = file.function_at(in_file);
    // The file may have been replaced or removed since. The linker still has what libraries export.
    if (function.name.empty() && info.dli_sname != nullptr)
        function = {info.dli_sname, in_file - (in_process - reinterpret_cast<std::uintptr_t>(info.dli_saddr))};
    const char* const slash = std::strrchr(info.dli_fname, '/');
    const char* const name = slash == nullptr ? info.dli_fname : slash + 1;
    if (function.name.empty()) return fmt::format("?? ({}+{:#x})", name, in_file);
    return fmt::format("{} + {:#x} ({}+{:#x})", demangled(function.name), in_file - function.start, name, in_file);
}

void write_backtrace(int descriptor, std::string_view start, int left_out) {
    constexpr int frames_max = 64;
    std::array<void*, frames_max> frames;
    const int count = ::backtrace(frames.data(), frames_max);
    // The caller's frame, which is the second one, unless a sanitizer has put one of its own before.
    const auto caller = std::find(frames.begin(), frames.begin() + count, __builtin_return_address(0));
    const int first = (caller == frames.begin() + count ? 1 : static_cast<int>(caller - frames.begin())) + left_out;
    for (int i = first; i < count; ++i) {
        // A frame has the address to which its call returns, which may be behind the end of the function. One that was
        // interrupted has the address of the instruction, which may be the first of the function.
        const bool was_interrupted = left_out != 0 && i == first;
        const auto* const address =
            static_cast<const char*>(frames[static_cast<std::size_t>(i)]) - (was_interrupted ? 0 : 1);
        const std::string line = fmt::format("{} #{} {}\n", start, i - first, name_of_address(address));
        write_bytes(descriptor, line.data(), line.size());
    }
}

void prepare_backtrace() {
    void* frame = nullptr;
    ::backtrace(&frame, 1); // loads the library that knows the stack
}

} // namespace kumi::base
