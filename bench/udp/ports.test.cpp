#include "udp/ports.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

base::Descriptor bound_socket(int family, int type) {
    base::Descriptor made(::socket(family, type | SOCK_CLOEXEC, 0));
    sockaddr_storage any{};
    any.ss_family = static_cast<sa_family_t>(family);
    EXPECT_EQ(::bind(made.get(), reinterpret_cast<sockaddr*>(&any),
                     family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)),
              0);
    return made;
}

TEST(UdpPorts, are_udp_sockets_each_counted_once) {
    const std::size_t before = udp_sockets_of({::getpid()});
    const auto one = bound_socket(AF_INET, SOCK_DGRAM);
    const auto two = bound_socket(AF_INET, SOCK_DGRAM);
    const auto tcp = bound_socket(AF_INET, SOCK_STREAM);
    const base::Descriptor same(::dup(two.get()));
    EXPECT_EQ(udp_sockets_of({::getpid()}), before + 2);
    EXPECT_EQ(udp_sockets_of({::getpid(), ::getpid()}), before + 2);
    EXPECT_EQ(udp_sockets_of({}), 0u);
}

} // namespace
} // namespace kumi::bench
