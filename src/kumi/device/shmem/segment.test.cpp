#include "kumi/device/shmem/shmem.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace kumi::device::shmem {
namespace {

TEST(Segment, a_core_dump_does_not_contain_the_buffers_of_messages) {
    const auto channels = open_in_one_process(2, {});
    ASSERT_TRUE(channels) << channels.error().text();
    // Lines "ADDRESSES ... /memfd:kumi..." begin a mapping, and "VmFlags: ..." ends it; dd: do not dump.
    std::ifstream smaps("/proc/self/smaps");
    bool is_ours = false;
    int excluded = 0, dumped = 0;
    for (std::string line; std::getline(smaps, line);) {
        if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
            is_ours = line.find("memfd:") != std::string::npos;
        if (!is_ours || !line.starts_with("VmFlags:")) continue;
        ++(line.find(" dd") != std::string::npos ? excluded : dumped);
    }
    EXPECT_GE(excluded, 1);
    EXPECT_EQ(dumped, 0);
}

} // namespace
} // namespace kumi::device::shmem
