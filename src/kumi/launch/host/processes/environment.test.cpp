#include "kumi/launch/host/processes/environment.hpp"

#include <gtest/gtest.h>

namespace kumi::launch::host {
namespace {

TEST(Environment, of_several_values_for_a_name_the_last_is_taken) {
    EXPECT_EQ(with({"A=1", "B=2", "AB=3"}, {"A=4", "C=5", "A=6"}),
              (std::vector<std::string>{"B=2", "AB=3", "C=5", "A=6"}));
}

TEST(Environment, what_is_about_a_host_is_told_from_the_rest) {
    for (const char* name :
         {"HOSTNAME", "SSH_CONNECTION", "DISPLAY", "XDG_RUNTIME_DIR", "TMPDIR", "PWD", "KUMI_UDP_ADDRESS"})
        EXPECT_TRUE(is_of_host(name)) << name;
    for (const char* name :
         {"PATH", "HOME", "USER", "LANG", "TERM", "OMP_NUM_THREADS", "KUMI_DEVICE", "XDG_CONFIG_HOME", "HOSTS"})
        EXPECT_FALSE(is_of_host(name)) << name;
}

TEST(Environment, all_that_is_about_a_host_stays_there) {
    for (const char* name : {"HOSTNAME",
                             "HOST",
                             "HOSTTYPE",
                             "MACHTYPE",
                             "DISPLAY",
                             "WAYLAND_DISPLAY",
                             "XAUTHORITY",
                             "GPG_TTY",
                             "WINDOWID",
                             "TMUX",
                             "TMUX_PANE",
                             "STY",
                             "TMPDIR",
                             "TMP",
                             "TEMP",
                             "PWD",
                             "OLDPWD",
                             "SHLVL",
                             "_",
                             "KUMI_BOOT",
                             "KUMI_STARTER",
                             "KUMI_UDP_ADDRESS",
                             "SSH_",
                             "SSH_AUTH_SOCK",
                             "XDG_RUNTIME_DIR",
                             "XDG_SESSION_ID",
                             "XDG_SEAT",
                             "XDG_VTNR",
                             "DBUS_SESSION_BUS_ADDRESS"})
        EXPECT_TRUE(is_of_host(name)) << name;
    for (const char* name : {"", "SSH", "TMPDIRS", "_X", "KUMI_UDP_PORT", "KUMI_BOOTS", "MY_SSH_KEY", "XDG_DATA_HOME",
                             "LD_LIBRARY_PATH", "KUMI_CLUSTER"})
        EXPECT_FALSE(is_of_host(name)) << name;
}

TEST(Environment, a_name_ends_at_the_first_equals_sign) {
    EXPECT_EQ(name_of("A=b=c"), "A");
    EXPECT_EQ(name_of("A"), "A");
    EXPECT_EQ(name_of("=x"), "");
    EXPECT_EQ(with({"A=1", "AB"}, {"A=2=3"}), (std::vector<std::string>{"AB", "A=2=3"}));
}

} // namespace
} // namespace kumi::launch::host
