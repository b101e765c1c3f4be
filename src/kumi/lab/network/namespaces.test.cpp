#include "kumi/lab/network/namespaces.hpp"

#include "kumi/lab/network/command.hpp"
#include "skips.hpp"

#include <arpa/inet.h>
#include <cstdlib>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

/// Ends the test where the machine can have none.
#define TWO_HOSTS_OR_SKIP(name)                                                                                        \
    if (const auto reason = probes::no_two_hosts()) KUMI_SKIP(*reason);                                                \
    auto made = TwoHosts::make();                                                                                      \
    ASSERT_TRUE(made) << made.error().text();                                                                          \
    const TwoHosts& name = *made

ino_t network_now() {
    struct stat found {};
    EXPECT_EQ(::stat("/proc/thread-self/ns/net", &found), 0);
    return found.st_ino;
}

/// A UDP socket on `host`, which others reach at the answered port.
struct Socket {
    base::Descriptor descriptor;
    sockaddr_in address{};
};
Socket udp_socket(const TwoHosts& hosts, unsigned host) {
    EXPECT_TRUE(hosts.enter(host));
    Socket made{base::Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0))};
    made.address.sin_family = AF_INET;
    ::inet_pton(AF_INET, hosts.address(host).c_str(), &made.address.sin_addr);
    socklen_t size = sizeof made.address;
    EXPECT_EQ(::bind(made.descriptor.get(), reinterpret_cast<sockaddr*>(&made.address), size), 0);
    EXPECT_EQ(::getsockname(made.descriptor.get(), reinterpret_cast<sockaddr*>(&made.address), &size), 0);
    EXPECT_TRUE(hosts.leave());
    return made;
}

/// How many of `count` datagrams arrive.
int arrivals(const Socket& from, const Socket& to, int count) {
    int arrived = 0;
    for (int i = 0; i < count; ++i) {
        ::sendto(from.descriptor.get(), &i, sizeof i, 0, reinterpret_cast<const sockaddr*>(&to.address),
                 sizeof to.address);
        int number = -1;
        while (::recv(to.descriptor.get(), &number, sizeof number, MSG_DONTWAIT) > 0) ++arrived;
    }
    pollfd readable{to.descriptor.get(), POLLIN, 0};
    int number = -1;
    while (::poll(&readable, 1, 20) > 0 && ::recv(to.descriptor.get(), &number, sizeof number, 0) > 0) ++arrived;
    return arrived;
}

TEST(TwoHosts, a_datagram_crosses_the_cable_and_sockets_stay_on_their_host) {
    TWO_HOSTS_OR_SKIP(hosts);
    const Socket zero = udp_socket(hosts, 0);
    const Socket one = udp_socket(hosts, 1);
    EXPECT_EQ(arrivals(zero, one, 10), 10);
    EXPECT_EQ(arrivals(one, zero, 10), 10);
}

TEST(TwoHosts, each_is_a_network_of_its_own_and_leave_goes_back) {
    TWO_HOSTS_OR_SKIP(hosts);
    const ino_t home = network_now();
    ASSERT_TRUE(hosts.enter(0));
    const ino_t zero = network_now();
    ASSERT_TRUE(hosts.enter(1));
    const ino_t one = network_now();
    ASSERT_TRUE(hosts.leave());
    EXPECT_EQ(network_now(), home);
    EXPECT_NE(zero, one);
    EXPECT_NE(zero, home);
    EXPECT_NE(one, home);
}

TEST(TwoHosts, ipv6_works_at_once) {
    TWO_HOSTS_OR_SKIP(hosts);
    if (!probes::has_ipv6()) KUMI_SKIP(skips::no_ipv6);
    ASSERT_TRUE(hosts.enter(1));
    const base::Descriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    ASSERT_EQ(::inet_pton(AF_INET6, hosts.address6(1).c_str(), &address.sin6_addr), 1);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_TRUE(hosts.leave());
}

TEST(TwoHosts, loss_is_what_was_asked_for_and_ends) {
    TWO_HOSTS_OR_SKIP(hosts);
    const Socket zero = udp_socket(hosts, 0);
    const Socket one = udp_socket(hosts, 1);
    const auto done = hosts.set_loss(30);
    ASSERT_TRUE(done) << done.error().text();
    constexpr int count = 2000; // of which 600 are lost, within 5 standard deviations of 20
    EXPECT_NEAR(arrivals(zero, one, count), 1400, 100);
    EXPECT_NEAR(arrivals(one, zero, count), 1400, 100);
    ASSERT_TRUE(hosts.set_loss(0));
    EXPECT_EQ(arrivals(zero, one, 100), 100);
}

TEST(TwoHosts, a_pulled_cable_carries_nothing_until_it_is_back) {
    TWO_HOSTS_OR_SKIP(hosts);
    const Socket zero = udp_socket(hosts, 0);
    const Socket one = udp_socket(hosts, 1);
    ASSERT_TRUE(hosts.link(1, false));
    EXPECT_EQ(arrivals(zero, one, 5), 0);
    const auto up = hosts.link(1, true);
    ASSERT_TRUE(up) << up.error().text();
    bool crossed = false; // the system takes up to a second to see a carrier that came back
    for (int attempt = 0; attempt < 200 && !crossed; ++attempt) crossed = arrivals(zero, one, 1) > 0;
    EXPECT_TRUE(crossed);
}

TEST(TwoHosts, an_ordinary_user_can_make_them) {
    constexpr int ordinary_user = 65534;
    if (const auto reason = probes::no_two_hosts(::geteuid() == 0 ? ordinary_user : -1)) KUMI_SKIP(*reason);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        if (::geteuid() == 0 && (::setresgid(ordinary_user, ordinary_user, ordinary_user) != 0 ||
                                 ::setresuid(ordinary_user, ordinary_user, ordinary_user) != 0))
            ::_exit(1);
        ::prctl(PR_SET_DUMPABLE, 1); // a process that was root owns its /proc files again
        const auto made = TwoHosts::make();
        if (!made) {
            std::fprintf(stderr, "%s\n", made.error().text().c_str());
            ::_exit(2);
        }
        const Socket zero = udp_socket(*made, 0);
        const Socket one = udp_socket(*made, 1);
        ::_exit(arrivals(zero, one, 10) == 10 ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Command, an_error_is_one_line_with_what_was_said_or_what_to_install) {
    const auto wrong = run_command({"ip", "link", "set", "nosuch0", "up"});
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().text().find("ip link set nosuch0 up: "), 0u) << wrong.error().text();
    EXPECT_EQ(wrong.error().text().find('\n'), std::string::npos);
    const auto missing = run_command({"kumi-has-no-such-command"});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().text(), "kumi-has-no-such-command: not found; install kumi-has-no-such-command");
}

TEST(Command, lines_are_done_in_one_process_and_the_one_that_failed_is_named) {
    const auto wrong = run_lines({"ip", "-batch", "-"}, "link show dev lo\nlink show dev nosuch0\nlink show dev lo\n");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().text().find("ip link show dev nosuch0: "), 0u) << wrong.error().text();
    EXPECT_TRUE(run_lines({"kumi-has-no-such-command"}, "")) << "nothing to do";
    const auto missing = run_lines({"kumi-has-no-such-command"}, "x\n");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().text(), "kumi-has-no-such-command: not found; install kumi-has-no-such-command");
}

} // namespace
} // namespace kumi::lab
