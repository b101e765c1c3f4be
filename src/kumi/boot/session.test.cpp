#include "kumi/boot/session.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace kumi::boot {
namespace {

/// As `kumi run` leaves it to a node, for the length of a test.
struct InheritedVariable {
    explicit InheritedVariable(const std::string& text) { ::setenv(socket_variable, text.c_str(), 1); }
    ~InheritedVariable() { ::unsetenv(socket_variable); }
};

TEST(OpenSession, the_socket_of_kumi_run_is_used_once_and_not_left_to_children) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const base::Descriptor ours(pair[0]);
    WelcomeBody welcome{};
    welcome.nodes = welcome.nodes_on_host = 1;
    welcome.hosts = 1;
    const std::string body = std::string(text_of(bytes_of(welcome))) + std::string("here\0", 5);
    ASSERT_TRUE(send_frame(ours.get(), Kind::welcome, bytes_of(std::string_view(body))));
    const InheritedVariable variable(std::to_string(pair[1]));
    const auto session = open_session();
    ASSERT_TRUE(session) << session.error().text();
    EXPECT_EQ((*session)->standing().host, "here");
    EXPECT_EQ(std::getenv(socket_variable), nullptr) << "a program that this one starts is no node";
    EXPECT_EQ(::fcntl(pair[1], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(OpenSession, a_number_that_is_no_socket_is_refused_with_a_remedy) {
    for (const char* number : {"", "x", "-1", "99999"}) {
        const InheritedVariable variable(number);
        const auto session = open_session();
        ASSERT_FALSE(session) << number;
        EXPECT_EQ(session.error().text(),
                  fmt::format("KUMI_BOOT={} names no open socket: start the program with kumi run, or unset KUMI_BOOT",
                              number));
    }
}

} // namespace
} // namespace kumi::boot
