#include "kumi/launch/remote/link.hpp"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kumi::launch::remote {
namespace {

/// A link, and the other end of its socket.
struct LinkEnds {
    LinkEnds() {
        ::signal(SIGPIPE, SIG_IGN);
        int sockets[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
        other.reset(sockets[1]);
        ::fcntl(other.get(), F_SETFL, O_NONBLOCK);
        base::Descriptor in(sockets[0]), out(::dup(sockets[0]));
        link.emplace(poller, host::Event{host::Source::link, 7}, std::move(in), std::move(out));
    }
    /// All that has come out at the other end.
    std::vector<std::byte> taken() {
        std::vector<std::byte> all;
        std::array<std::byte, 65536> buffer;
        for (ssize_t got = 0; (got = ::read(other.get(), buffer.data(), buffer.size())) > 0;)
            all.insert(all.end(), buffer.begin(), buffer.begin() + got);
        return all;
    }
    bool has_event() { return !poller.wait(now()).empty(); }

    host::Poller poller = *host::Poller::open();
    base::Descriptor other;
    std::optional<Link> link;
};

TEST(Link, what_does_not_fit_is_kept_and_sent_in_order_when_there_is_room) {
    LinkEnds ends;
    std::vector<std::byte> expected;
    for (std::uint32_t i = 0; i < 40; ++i) {
        const std::vector<std::byte> body(50'000, std::byte(i));
        ends.link->send(LinkKind::out, i, 0, body);
        const auto bytes = encode(LinkKind::out, i, 0, body);
        expected.insert(expected.end(), bytes.begin(), bytes.end());
    }
    EXPECT_GT(ends.link->kept_bytes(), 0u);
    EXPECT_FALSE(ends.has_event()) << "there is no room yet";
    std::vector<std::byte> came;
    for (int round = 0; round < 1000 && came.size() < expected.size(); ++round) {
        const auto more = ends.taken();
        came.insert(came.end(), more.begin(), more.end());
        const auto events = ends.poller.wait(now());
        EXPECT_TRUE(events.empty() || (events[0].source == host::Source::link && events[0].index == 7));
        if (events.empty()) continue;
        EXPECT_TRUE(ends.link->flush()); // as whoever hears of room does
    }
    EXPECT_EQ(came, expected);
    EXPECT_EQ(ends.link->kept_bytes(), 0u);
    EXPECT_FALSE(ends.has_event()) << "room is of no interest any more";
}

TEST(Link, what_comes_is_read_and_the_end_is_told) {
    LinkEnds ends;
    EXPECT_FALSE(ends.link->is_readable());
    EXPECT_TRUE(ends.link->read()) << "nothing is there, and nobody has closed";
    const auto frame = encode(LinkKind::signal, 0, 15, {});
    ASSERT_EQ(::write(ends.other.get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
    EXPECT_TRUE(ends.link->is_readable());
    EXPECT_TRUE(ends.has_event());
    EXPECT_TRUE(ends.link->read());
    const auto heard = ends.link->reader().next();
    ASSERT_TRUE(heard && *heard);
    EXPECT_EQ((*heard)->value, 15u);
    ends.other.reset();
    EXPECT_TRUE(ends.link->is_readable());
    EXPECT_FALSE(ends.link->read());
}

TEST(Link, when_nobody_takes_it_any_more_nothing_is_kept) {
    LinkEnds ends;
    ends.link->send(LinkKind::out, 0, 0, std::vector<std::byte>(2'000'000));
    EXPECT_GT(ends.link->kept_bytes(), 0u);
    ends.other.reset();
    EXPECT_FALSE(ends.link->flush());
    EXPECT_EQ(ends.link->kept_bytes(), 0u);
    ends.link->send(LinkKind::out);
    ends.link->send_text("text");
    EXPECT_EQ(ends.link->kept_bytes(), 0u);
    EXPECT_FALSE(ends.link->flush());
}

} // namespace
} // namespace kumi::launch::remote
