#include "kumi/base/system/backtrace.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <link.h>
#include <string>
#include <unistd.h>

namespace kumi::base {

namespace {

/// Not inlined, and called from somewhere: it is a frame of its own.
[[gnu::noinline]] void write_from_here(int descriptor) {
    write_backtrace(descriptor, "node 3:");
    asm volatile("" ::: "memory");
}

} // namespace

TEST(Backtrace, has_the_names_of_functions_that_no_library_exports) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    prepare_backtrace();
    write_from_here(ends[1]);
    ::close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(got));
    ::close(ends[0]);
    const std::size_t mine = text.find("node 3: #0 kumi::base::(anonymous namespace)::write_from_here(int)");
    EXPECT_EQ(mine, 0u) << text;
    EXPECT_NE(text.find("\nnode 3: #1 kumi::base::Backtrace_has_the_names", mine), std::string::npos) << text;
    EXPECT_NE(text.find(" main + 0x"), std::string::npos) << text;
}

TEST(Backtrace, names_what_libraries_have_and_nothing_for_no_code) {
    EXPECT_NE(name_of_address(reinterpret_cast<const void*>(&std::qsort)).find("qsort"), std::string::npos);
    const int variable = 0;
    EXPECT_TRUE(name_of_address(&variable).starts_with("?? (0x"));
    EXPECT_TRUE(name_of_address(nullptr).starts_with("?? ("));
}

TEST(Backtrace, has_the_exported_names_of_a_library_whose_file_was_removed) {
    // By its name: a sanitizer has functions of its own in place of those of libm.
    void* const libm = ::dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    link_map* of_libm = nullptr;
    ASSERT_TRUE(libm != nullptr && ::dlinfo(libm, RTLD_DI_LINKMAP, &of_libm) == 0);
    std::string path = testing::TempDir() + "kumi-backtrace-XXXXXX";
    ::close(::mkstemp(path.data()));
    {
        std::ifstream from(of_libm->l_name, std::ios::binary);
        ASSERT_TRUE(from) << of_libm->l_name;
        std::ofstream(path, std::ios::binary) << from.rdbuf();
    }
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ::unlink(path.c_str());
    ASSERT_NE(library, nullptr) << ::dlerror();
    const std::string name = name_of_address(::dlsym(library, "lgamma"));
    EXPECT_NE(name.find("lgamma"), std::string::npos) << name;
    EXPECT_NE(name.find(" + 0x0 (kumi-backtrace-"), std::string::npos) << name;
    ::dlclose(library);
    ::dlclose(libm);
}

} // namespace kumi::base
