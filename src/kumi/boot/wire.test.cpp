#include "kumi/boot/wire.hpp"

#include <gtest/gtest.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

namespace kumi::boot {
namespace {

struct Sockets {
    Sockets() {
        int pair[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        ours.reset(pair[0]);
        theirs.reset(pair[1]);
    }
    base::Descriptor ours, theirs;
};

TEST(Wire, frames_come_out_whole_however_they_were_cut) {
    std::vector<std::byte> stream;
    for (int i = 0; i < 50; ++i) {
        const std::vector<std::byte> body(static_cast<std::size_t>(i * 37 % 500), static_cast<std::byte>(i));
        const auto frame = encode(Kind::exchange, body);
        stream.insert(stream.end(), frame.begin(), frame.end());
    }
    std::mt19937 random(1);
    Sockets sockets;
    FrameReader reader;
    int frames = 0;
    for (std::size_t at = 0; at < stream.size();) {
        const std::size_t piece = std::min<std::size_t>(1 + random() % 90, stream.size() - at);
        ASSERT_EQ(::write(sockets.theirs.get(), stream.data() + at, piece), static_cast<ssize_t>(piece));
        at += piece;
        ASSERT_TRUE(reader.read_from(sockets.ours.get()));
        while (true) {
            auto frame = reader.next();
            ASSERT_TRUE(frame);
            if (!*frame) break;
            EXPECT_EQ((*frame)->body, std::vector<std::byte>(static_cast<std::size_t>(frames * 37 % 500), static_cast<std::byte>(frames)));
            ++frames;
        }
    }
    EXPECT_EQ(frames, 50);
}

TEST(Wire, a_descriptor_comes_with_its_frame) {
    Sockets sockets;
    ASSERT_TRUE(send_frame(sockets.theirs.get(), Kind::leave, {}));
    ASSERT_TRUE(send_frame(sockets.theirs.get(), Kind::share, {}, STDIN_FILENO));
    FrameReader reader;
    ASSERT_TRUE(reader.read_from(sockets.ours.get()));
    auto first = reader.next();
    auto second = reader.next();
    ASSERT_TRUE(first && *first && second && *second);
    EXPECT_FALSE((*first)->descriptor);
    EXPECT_TRUE((*second)->descriptor);
}

TEST(Wire, garbage_is_an_error_and_not_a_frame) {
    std::mt19937 random(2);
    for (int round = 0; round < 200; ++round) {
        Sockets sockets;
        std::vector<std::uint32_t> garbage(4 + random() % 50);
        for (auto& word : garbage) word = static_cast<std::uint32_t>(random()) | 0x80000000u;
        ASSERT_GT(::write(sockets.theirs.get(), garbage.data(), garbage.size() * 4), 0);
        FrameReader reader;
        ASSERT_TRUE(reader.read_from(sockets.ours.get()));
        EXPECT_FALSE(reader.next());
    }
}

TEST(Wire, a_closed_socket_is_noticed) {
    Sockets sockets;
    sockets.theirs.reset();
    FrameReader reader;
    EXPECT_FALSE(reader.read_from(sockets.ours.get()));
    EXPECT_FALSE(send_frame(sockets.ours.get(), Kind::leave, {}));
}

} // namespace
} // namespace kumi::boot
