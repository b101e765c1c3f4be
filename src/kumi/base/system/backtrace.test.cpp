#include "kumi/base/system/backtrace.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
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

} // namespace kumi::base
