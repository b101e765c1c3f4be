#include "kumi/device/udp/socket.hpp"

#include "loopback/ends.hpp"
#include "skips.hpp"

#include <cerrno>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/time.h>

namespace kumi::device::udp {
namespace {

using namespace std::chrono_literals;
using Sent = Socket::Sent;

class UdpSocket : public testing::Test {
protected:
    static Socket opened(const Options& options = {.buffer_bytes = 1 << 20}) {
        auto socket = Socket::open(*Address::parse("127.0.0.1", 0), options);
        if (!socket) throw std::runtime_error(socket.error().text());
        return *std::move(socket);
    }
    static std::vector<std::byte> content(std::size_t bytes, unsigned which = 0) {
        std::vector<std::byte> made(bytes);
        for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 3 + i / 256 + which * 17);
        return made;
    }
    /// All that has come, as one run of bytes.
    std::vector<std::byte> all_received() {
        std::vector<std::byte> all;
        for (auto batches = to.receive(Socket::batches_max); !batches.empty();
             batches = to.receive(Socket::batches_max))
            for (const Batch& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
        return all;
    }

    Socket from = opened();
    Socket to = opened();
};

TEST_F(UdpSocket, a_datagram_comes_as_it_was_sent_in_one_piece_or_two) {
    for (const std::size_t bytes : {1u, 2u, 1472u, 65'507u})
        for (const std::size_t head : {std::size_t{0}, bytes / 2, bytes}) {
            const auto sent = content(bytes);
            EXPECT_EQ(from.send(to.local(), {Bytes(sent).first(head), Bytes(sent).subspan(head)}), Sent::all);
            const auto batches = to.receive(1);
            ASSERT_EQ(batches.size(), 1u);
            EXPECT_TRUE(std::ranges::equal(batches[0], sent)) << bytes;
        }
    EXPECT_TRUE(to.receive(1).empty());
    EXPECT_TRUE(to.receive(64).empty());
    EXPECT_FALSE(to.has_errors()) << "that nothing is there is no error";
}

TEST_F(UdpSocket, no_more_is_taken_than_was_asked_for) {
    for (std::size_t i = 0; i < 10; ++i) ASSERT_TRUE(from.send_plain(to.local(), content(100 + i)));
    const auto four = to.receive(4);
    ASSERT_EQ(four.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::ranges::equal(four[i], content(100 + i)));
    EXPECT_EQ(to.receive(1).size(), 1u);
    EXPECT_EQ(to.receive(64).size(), 5u);
}

TEST_F(UdpSocket, a_burst_comes_as_what_it_was_made_of) {
    if (!from.has_bursts()) KUMI_SKIP(skips::system_lacks("UDP_SEGMENT"));
    struct Shape {
        std::size_t count, head, body, last_body;
    };
    // One piece of memory; pieces that lie apart, put together here or by the system; the most of them.
    for (const Shape& shape : {Shape{5, 1000, 0, 0}, Shape{5, 64, 1000, 200}, Shape{3, 64, 8000, 8},
                               Shape{64, 64, 900, 900}, Shape{2, 64, 4032, 4032}}) {
        std::vector<std::vector<std::byte>> heads, bodies;
        std::vector<Datagram> datagrams;
        std::vector<std::byte> all;
        for (unsigned i = 0; i < shape.count; ++i) {
            heads.push_back(content(shape.head, 2 * i));
            bodies.push_back(content(i + 1 < shape.count ? shape.body : shape.last_body, 2 * i + 1));
            all.insert(all.end(), heads.back().begin(), heads.back().end());
            all.insert(all.end(), bodies.back().begin(), bodies.back().end());
        }
        for (unsigned i = 0; i < shape.count; ++i) datagrams.push_back({heads[i], bodies[i]});
        ASSERT_EQ(from.send_burst(to.local(), datagrams), Sent::all);
        EXPECT_EQ(all_received(), all) << shape.count << " of " << shape.head << " and " << shape.body;
    }
}

TEST_F(UdpSocket, several_of_any_size_leave_by_one_call_and_are_counted) {
    std::vector<std::vector<std::byte>> contents;
    std::vector<Datagram> datagrams;
    std::vector<std::byte> all;
    for (unsigned i = 0; i < Socket::datagrams_max; ++i) {
        contents.push_back(content(10 + i * 13 % 200, i));
        all.insert(all.end(), contents.back().begin(), contents.back().end());
    }
    for (const auto& bytes : contents) datagrams.push_back({Bytes(bytes).first(5), Bytes(bytes).subspan(5)});
    std::size_t count = 0;
    EXPECT_EQ(from.send_each(to.local(), datagrams, count), Sent::all);
    EXPECT_EQ(count, Socket::datagrams_max);
    EXPECT_EQ(all_received(), all);
}

TEST_F(UdpSocket, nobody_at_a_port_is_told_once_with_the_address) {
    Address nobody;
    {
        const loopback::BareSocket gone;
        nobody = gone.address();
    }
    EXPECT_FALSE(from.has_errors());
    EXPECT_TRUE(from.send_plain(nobody, content(8)));
    const Instant deadline = now() + loopback::patience;
    while (!from.has_errors() && now() < deadline) from.receive(1);
    ASSERT_TRUE(from.has_errors());
    PathError said;
    ASSERT_TRUE(from.next_error(said));
    EXPECT_EQ(said.error_number, ECONNREFUSED);
    EXPECT_EQ(said.destination, nobody);
    EXPECT_FALSE(from.next_error(said));
    EXPECT_FALSE(from.has_errors());
}

TEST_F(UdpSocket, an_error_of_an_earlier_packet_does_not_keep_the_next_from_leaving) {
    Address nobody;
    {
        const loopback::BareSocket gone;
        nobody = gone.address();
    }
    const auto sent = content(100);
    for (const bool is_burst : {false, true}) {
        EXPECT_EQ(from.send(nobody, {content(8), {}}), Sent::all);
        const Datagram datagram{Bytes(sent).first(50), Bytes(sent).subspan(50)};
        std::size_t count = 0;
        const Sent answer =
            is_burst ? from.send_each(to.local(), std::span(&datagram, 1), count) : from.send(to.local(), datagram);
        EXPECT_EQ(answer, Sent::all);
        EXPECT_EQ(all_received(), sent);
        EXPECT_TRUE(from.has_errors());
        for (PathError said; from.next_error(said);) {}
    }
}

TEST_F(UdpSocket, what_cannot_leave_is_told_by_its_kind) {
    EXPECT_EQ(from.send(to.local(), {content(65'508), {}}), Sent::too_large);
    EXPECT_EQ(from.unreachables(), 0u);
    EXPECT_EQ(from.send(*Address::parse("::1", 7000), {content(8), {}}), Sent::unreachable); // by a socket for IPv4
    EXPECT_EQ(from.unreachables(), 1u);
    EXPECT_EQ(from.send(to.local(), {content(8), {}}), Sent::all);
}

TEST_F(UdpSocket, the_path_carries_the_mtu_without_headers) {
    std::size_t mtu = 0;
    std::ifstream("/sys/class/net/lo/mtu") >> mtu;
    if (mtu == 0) KUMI_SKIP(skips::system_lacks("the MTU of lo"));
    const auto path = from.path_bytes(to.local());
    ASSERT_TRUE(path) << path.error().text();
    EXPECT_EQ(*path, std::min<std::size_t>(mtu, 65'535) - 28);
}

TEST_F(UdpSocket, a_sleep_ends_with_what_comes_with_a_nudge_or_at_its_deadline) {
    ASSERT_TRUE(from.send_plain(to.local(), content(30)));
    const auto came = to.receive_by(now() + loopback::patience);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_TRUE(std::ranges::equal(came[0], content(30)));
    const Instant start = now();
    to.nudge();
    EXPECT_TRUE(to.receive_by(never).empty());
    EXPECT_TRUE(to.receive_by(now() - 1s).empty());
    EXPECT_TRUE(to.receive_by(now() + 3ms).empty());
    to.wait(now() + 3ms, false);
    to.wait(never, true); // there is room to send
    ASSERT_TRUE(from.send_plain(to.local(), content(30)));
    to.wait(never, false);
    EXPECT_LT(now() - start, loopback::patience);
}

TEST_F(UdpSocket, a_sleep_is_no_longer_than_its_deadline_and_there_are_few_lengths_of_it) {
    const auto limit_ms = [&](Instant deadline) {
        EXPECT_TRUE(from.send_plain(to.local(), content(8))); // so that it ends at once
        to.receive_by(deadline);
        timeval limit{};
        socklen_t bytes = sizeof limit;
        EXPECT_EQ(::getsockopt(to.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &limit, &bytes), 0);
        return limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000;
    };
    EXPECT_EQ(limit_ms(never), 0) << "as long as it takes";
    EXPECT_EQ(limit_ms(now() + 1h), 1000);
    EXPECT_EQ(limit_ms(never), 0);
    EXPECT_LE(limit_ms(now() + 900ms), 100) << "or 0 as before, if it took that long to look at the clock";
}

TEST_F(UdpSocket, without_offload_there_are_no_bursts) {
    Socket plain = opened({.buffer_bytes = 1 << 20, .offload = false});
    EXPECT_FALSE(plain.has_bursts());
    from.stop_bursts();
    EXPECT_FALSE(from.has_bursts());
}

} // namespace
} // namespace kumi::device::udp
