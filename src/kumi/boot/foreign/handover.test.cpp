#include "kumi/boot/foreign/handover.hpp"

#include "skips.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::boot {
namespace {

using namespace std::chrono_literals;

TEST(Handover, a_descriptor_goes_from_who_answers_to_who_knocked) {
    const auto listener = open_listener();
    ASSERT_TRUE(listener) << listener.error().text();
    const auto visit = connect_to(listener->name, bytes_of(std::string_view("hello")));
    ASSERT_TRUE(visit) << visit.error().text();
    const auto connection = next_connection(*listener);
    ASSERT_TRUE(connection);
    EXPECT_EQ(text_of(connection->greeting), "hello");
    EXPECT_FALSE(next_connection(*listener));

    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const base::Descriptor out(ends[0]), in(ends[1]);
    ASSERT_TRUE(send_descriptor(connection->socket.get(), in.get(), "node 1"));
    const auto got = receive_descriptor(visit->get(), now() + 10s, "node 0");
    ASSERT_TRUE(got) << got.error().text();
    ASSERT_EQ(::write(got->get(), "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(::read(out.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    EXPECT_EQ(::fcntl(got->get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Handover, a_door_that_is_none_is_an_error) { EXPECT_FALSE(connect_to(ListenerName{}, {})); }

TEST(Handover, two_doors_have_two_names) { EXPECT_NE(open_listener()->name, open_listener()->name); }

TEST(Handover, who_says_nothing_is_waited_for_to_the_deadline_and_named) {
    const auto listener = open_listener();
    const auto visit = connect_to(listener->name, bytes_of('x'));
    ASSERT_TRUE(visit);
    const auto got = receive_descriptor(visit->get(), now() + 20ms, "node 7 on vm");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().text(), "node 7 on vm did not hand over its shared memory in time: is it stopped?");
}

TEST(Handover, who_goes_away_is_noticed_at_once) {
    const auto listener = open_listener();
    const auto visit = connect_to(listener->name, bytes_of('x'));
    ASSERT_TRUE(visit);
    EXPECT_TRUE(next_connection(*listener)); // and closes
    const auto got = receive_descriptor(visit->get(), now() + 60s, "node 7 on vm");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().text(), "node 7 on vm, which shares its memory with this node, is gone");
}

/// A child process of another user, which runs `body` with the end of a pipe to report by, and waits to be ended.
class Stranger {
public:
    explicit Stranger(const std::function<void(int report)>& body) {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        report_.reset(ends[0]);
        child_ = ::fork();
        if (child_ == 0) {
            constexpr uid_t somebody_else = 65'534;
            if (::setuid(somebody_else) == 0) body(ends[1]);
            ::close(ends[1]);
            while (true) ::pause();
        }
        ::close(ends[1]);
    }
    ~Stranger() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }

    /// What it reports next; false when it has nothing to say.
    bool hear(void* into, std::size_t bytes) {
        return ::read(report_.get(), into, bytes) == static_cast<ssize_t>(bytes);
    }

private:
    base::Descriptor report_;
    pid_t child_ = -1;
};

TEST(Handover, a_visitor_of_another_user_is_not_listened_to_and_the_next_one_is) {
    if (::geteuid() != 0) KUMI_SKIP(skips::not_root); // who alone can start a process of another user
    const auto listener = open_listener();
    ASSERT_TRUE(listener) << listener.error().text();
    // By hand: connect_to() would itself turn away from a listener of another user's.
    const auto visit_by_hand = [&](int report) {
        sockaddr_un address{};
        socklen_t bytes = sizeof address;
        ::getsockname(listener->socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
        const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
        const bool is_said = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
                             ::send(socket, "hello", 5, MSG_NOSIGNAL) == 5;
        [[maybe_unused]] const auto told = ::write(report, is_said ? "y" : "n", 1);
    };
    Stranger stranger(visit_by_hand);
    char said = 0;
    if (!stranger.hear(&said, 1)) KUMI_SKIP(skips::system_lacks("other users"));
    ASSERT_EQ(said, 'y');
    const auto own = connect_to(listener->name, bytes_of(std::string_view("friend")));
    ASSERT_TRUE(own) << own.error().text();

    const auto first = next_connection(*listener);
    ASSERT_TRUE(first);
    EXPECT_EQ(text_of(first->greeting), "");
    const auto second = next_connection(*listener);
    ASSERT_TRUE(second);
    EXPECT_EQ(text_of(second->greeting), "friend");
}

TEST(Handover, a_door_of_another_user_is_not_spoken_at) {
    if (::geteuid() != 0) KUMI_SKIP(skips::not_root); // who alone can start a process of another user
    Stranger stranger([](int report) {
        static Result<Listener> listener = open_listener(); // open until the process ends
        if (listener) [[maybe_unused]] const auto told = ::write(report, listener->name.data(), listener->name.size());
    });
    ListenerName name{};
    if (!stranger.hear(name.data(), name.size())) KUMI_SKIP(skips::system_lacks("other users"));
    const auto visit = connect_to(name, bytes_of(std::string_view("hello")));
    ASSERT_FALSE(visit);
    EXPECT_EQ(visit.error().text(), "meeting the nodes of this host: a process of another user answers");
}

/// Sends a byte with so many descriptors.
void send_with_descriptors(int socket, std::size_t count) {
    std::array<int, 2> numbers{STDIN_FILENO, STDERR_FILENO};
    char byte = 1;
    iovec piece{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof numbers)> control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (count != 0) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* const rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(rights), numbers.data(), count * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(socket, &message, MSG_NOSIGNAL), 1);
}

TEST(Handover, exactly_one_descriptor_is_taken_over) {
    const auto listener = open_listener();
    for (const std::size_t count : {0u, 1u, 2u}) {
        const auto visit = connect_to(listener->name, bytes_of('x'));
        ASSERT_TRUE(visit);
        const auto connection = next_connection(*listener);
        ASSERT_TRUE(connection);
        send_with_descriptors(connection->socket.get(), count);
        const auto got = receive_descriptor(visit->get(), now() + 10s, "node 7 on vm");
        ASSERT_EQ(got.has_value(), count == 1) << count << " descriptors";
        if (count != 1) {
            EXPECT_EQ(got.error().text(), "node 7 on vm handed over no descriptor: too many open files? see ulimit -n");
        }
    }
}

TEST(Handover, who_has_gone_before_it_is_given_anything_is_named) {
    const auto listener = open_listener();
    auto visit = connect_to(listener->name, bytes_of('x'));
    ASSERT_TRUE(visit);
    const auto connection = next_connection(*listener);
    ASSERT_TRUE(connection);
    visit->reset();
    const auto given = send_descriptor(connection->socket.get(), STDIN_FILENO, "node 3 on vm");
    ASSERT_FALSE(given);
    EXPECT_EQ(given.error().text(),
              "handing over shared memory to node 3 on vm: that node is gone; its own messages may say why");
}

TEST(Handover, all_who_knocked_are_heard_one_after_the_other) {
    const auto listener = open_listener();
    std::vector<base::Descriptor> visits;
    for (char name = 'a'; name < 'k'; ++name) visits.push_back(*connect_to(listener->name, bytes_of(name)));
    for (char name = 'a'; name < 'k'; ++name) {
        const auto connection = next_connection(*listener);
        ASSERT_TRUE(connection);
        EXPECT_EQ(text_of(connection->greeting), std::string(1, name));
    }
    EXPECT_FALSE(next_connection(*listener));
}

} // namespace
} // namespace kumi::boot
