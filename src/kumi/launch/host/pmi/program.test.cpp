#include "kumi/launch/host/pmi/program.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

class ProgramTest : public testing::Test {
protected:
    ~ProgramTest() override { std::filesystem::remove(path_); }
    MpiNeed need_of(const std::string& content) const {
        std::ofstream(path_, std::ios::binary) << content;
        return mpi_need_of(path_);
    }
    const std::filesystem::path path_ =
        std::filesystem::temp_directory_path() / ("kumi-test-program-" + std::to_string(::getpid()));
};

TEST_F(ProgramTest, its_file_says_what_it_is_linked_with) {
    const std::string elf = "\177ELF\1\2\0";
    EXPECT_EQ(need_of(elf + "libc.so.6"), MpiNeed::maybe);
    EXPECT_EQ(need_of(elf + std::string("\0libmpi.so.40\0", 14)), MpiNeed::pmix);
    EXPECT_EQ(need_of(elf + std::string("\0libmpich.so.12\0", 16)), MpiNeed::pmi);
    EXPECT_EQ(need_of(elf + std::string("\0libmpi.so.12\0", 14)), MpiNeed::pmi) << "MPICH elsewhere than in Debian";
    EXPECT_EQ(need_of(elf + std::string("\0KUMI_BOOT\0", 11)), MpiNeed::none);
    EXPECT_EQ(need_of(elf + std::string("\0libkumi.so.0\0", 14)), MpiNeed::none);
    EXPECT_EQ(need_of(elf + std::string("\0libkumi.so.0\0libmpi.so.40", 26)), MpiNeed::pmix) << "it uses both";
}

TEST_F(ProgramTest, a_script_may_be_anything) {
    EXPECT_EQ(need_of("#!/bin/sh\n# libmpi.so libmpich.so KUMI_BOOT\n"), MpiNeed::maybe);
    EXPECT_EQ(need_of("#!/bin/sh\n" + std::string("\177ELF KUMI_BOOT")), MpiNeed::maybe);
    EXPECT_EQ(need_of(""), MpiNeed::maybe);
    EXPECT_EQ(mpi_need_of("/no/such/file"), MpiNeed::maybe);
    EXPECT_EQ(mpi_need_of("/bin/sh"), MpiNeed::maybe);
}

} // namespace
} // namespace kumi::launch::host
