#include "kumi/launch/host/environment.hpp"

#include <gtest/gtest.h>

namespace kumi::launch::host {
namespace {

TEST(Environment, of_several_values_for_a_name_the_last_is_taken) {
    EXPECT_EQ(with({"A=1", "B=2", "AB=3"}, {"A=4", "C=5", "A=6"}), (std::vector<std::string>{"B=2", "AB=3", "C=5", "A=6"}));
}

TEST(Environment, what_is_about_a_host_is_told_from_the_rest) {
    for (const char* name : {"HOSTNAME", "SSH_CONNECTION", "DISPLAY", "XDG_RUNTIME_DIR", "TMPDIR", "PWD", "KUMI_UDP_ADDRESS"})
        EXPECT_TRUE(is_of_host(name)) << name;
    for (const char* name : {"PATH", "HOME", "USER", "LANG", "TERM", "OMP_NUM_THREADS", "KUMI_DEVICE", "XDG_CONFIG_HOME", "HOSTS"})
        EXPECT_FALSE(is_of_host(name)) << name;
}

} // namespace
} // namespace kumi::launch::host
