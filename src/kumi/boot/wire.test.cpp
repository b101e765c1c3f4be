#include "kumi/boot/wire.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
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
            EXPECT_EQ((*frame)->body, std::vector<std::byte>(static_cast<std::size_t>(frames * 37 % 500),
                                                             static_cast<std::byte>(frames)));
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

/// What a reader makes of a header, and nothing behind it.
Result<std::optional<Frame>> read_header(const FrameHeader& header) {
    Sockets sockets;
    EXPECT_EQ(::write(sockets.theirs.get(), &header, sizeof header), static_cast<ssize_t>(sizeof header));
    FrameReader reader;
    EXPECT_TRUE(reader.read_from(sockets.ours.get()));
    return reader.next();
}

TEST(Wire, every_kind_is_a_frame_and_the_numbers_beside_them_are_not) {
    const auto first = static_cast<std::uint32_t>(Kind::join), last = static_cast<std::uint32_t>(Kind::environment);
    for (std::uint32_t kind = first; kind <= last; ++kind) {
        const auto frame = read_header({Kind{kind}, 0, 0, 0});
        ASSERT_TRUE(frame && *frame) << kind;
        EXPECT_EQ((*frame)->kind, Kind{kind});
        EXPECT_TRUE((*frame)->body.empty());
    }
    for (const std::uint32_t kind : {first - 1, last + 1}) {
        const auto frame = read_header({Kind{kind}, 0, 0, 0});
        ASSERT_FALSE(frame) << kind;
        EXPECT_EQ(frame.error().text(), "what came over the KUMI_BOOT socket is no frame of this version of Kumi");
    }
}

TEST(Wire, a_body_of_the_largest_size_is_waited_for_and_one_byte_more_is_garbage) {
    const auto largest = read_header({Kind::exchange, body_bytes_max, 0, 0});
    ASSERT_TRUE(largest);
    EXPECT_FALSE(*largest);
    EXPECT_FALSE(read_header({Kind::exchange, body_bytes_max + 1, 0, 0}));
}

TEST(Wire, a_frame_has_one_descriptor_or_none) {
    EXPECT_TRUE(read_header({Kind::share, 0, 0, 0}));
    const auto missing = read_header({Kind::share, 0, 1, 0});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().text(), "a descriptor that was announced did not arrive: too many open files?");
    EXPECT_FALSE(read_header({Kind::share, 0, 2, 0}));
}

TEST(Wire, a_frame_comes_out_with_its_last_byte_and_not_before) {
    Sockets sockets;
    const auto bytes = encode(Kind::exchange, bytes_of(std::uint64_t{7}));
    FrameReader reader;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        const auto before = reader.next();
        ASSERT_TRUE(before);
        EXPECT_FALSE(*before) << "after " << at << " bytes";
        ASSERT_EQ(::write(sockets.theirs.get(), &bytes[at], 1), 1);
        ASSERT_TRUE(reader.read_from(sockets.ours.get()));
    }
    const auto frame = reader.next();
    ASSERT_TRUE(frame && *frame);
    EXPECT_EQ((*frame)->body.size(), sizeof(std::uint64_t));
}

TEST(Wire, each_frame_gets_its_own_descriptor_which_children_do_not_inherit) {
    Sockets sockets;
    for (const char name : {'a', 'b'}) {
        const base::Descriptor file(::memfd_create("test", MFD_CLOEXEC));
        ASSERT_EQ(::pwrite(file.get(), &name, 1, 0), 1);
        ASSERT_TRUE(send_frame(sockets.theirs.get(), Kind::share, bytes_of(name), file.get()));
    }
    FrameReader reader;
    ASSERT_TRUE(reader.read_from(sockets.ours.get()));
    for (const char name : {'a', 'b'}) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame && *frame);
        EXPECT_EQ(text_of((*frame)->body), std::string(1, name));
        char written = 0;
        ASSERT_EQ(::pread((*frame)->descriptor.get(), &written, 1, 0), 1);
        EXPECT_EQ(written, name);
        EXPECT_EQ(::fcntl((*frame)->descriptor.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
}

TEST(Wire, a_frame_that_is_longer_than_the_sockets_buffer_is_sent_whole_with_its_descriptor_once) {
    Sockets sockets;
    std::vector<std::byte> body(3 << 20);
    for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<std::byte>(i * 7 + (i >> 12));
    const base::Descriptor file(::memfd_create("test", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), 5), 0);
    std::thread sender([&] {
        EXPECT_TRUE(send_frame(sockets.theirs.get(), Kind::exchange, body, STDIN_FILENO));
        EXPECT_TRUE(send_frame(sockets.theirs.get(), Kind::share, {}, file.get()));
        sockets.theirs.reset();
    });
    FrameReader reader;
    while (reader.read_from(sockets.ours.get())) std::this_thread::yield();
    sender.join();
    const auto frame = reader.next();
    ASSERT_TRUE(frame && *frame);
    EXPECT_TRUE((*frame)->body == body);
    EXPECT_TRUE((*frame)->descriptor);
    const auto next = reader.next();
    ASSERT_TRUE(next && *next);
    struct stat status {};
    ASSERT_EQ(::fstat((*next)->descriptor.get(), &status), 0);
    EXPECT_EQ(status.st_size, 5) << "the second frame has the descriptor of the first";
}

TEST(Wire, text_fills_its_field_but_for_one_zero) {
    char field[4];
    put_text(field, "abc");
    EXPECT_EQ(std::string_view(field, 4), std::string_view("abc\0", 4));
    put_text(field, "defg");
    EXPECT_EQ(std::string_view(field, 4), std::string_view("def\0", 4));
    put_text(field, "h");
    EXPECT_EQ(std::string_view(field, 4), std::string_view("h\0\0\0", 4)) << "nothing is left of what was there";
    EXPECT_EQ(text_in(field), "h");
    field[1] = field[2] = field[3] = 'i';
    EXPECT_EQ(text_in(field), "hiii") << "a peer may send a field without a zero";
}

} // namespace
} // namespace kumi::boot
