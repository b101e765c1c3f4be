#include "kumi/launch/console/output.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kumi::launch {
namespace {

/// A sink into a pipe, and what came out of it.
struct Pipe {
    Pipe() { EXPECT_EQ(::pipe2(ends, O_NONBLOCK), 0); }
    ~Pipe() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    std::string read_all() {
        std::string text(1 << 17, '\0');
        const ssize_t got = ::read(ends[0], text.data(), text.size());
        text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return text;
    }
    int ends[2];
};

TEST(Output, lines_of_two_nodes_never_mix) {
    Pipe pipe;
    Sink sink(pipe.ends[1]);
    Collector zero(sink, "[0] "), one(sink, "[1] ");
    zero.add("he");
    one.add("good");
    zero.add("llo\nagain");
    one.add("bye\n");
    zero.finish();
    one.finish();
    sink.flush();
    EXPECT_EQ(pipe.read_all(), "[0] hello\n[1] goodbye\n[0] again\n");
}

TEST(Output, without_a_label_lines_stay_as_they_are) {
    Pipe pipe;
    Sink sink(pipe.ends[1]);
    Collector lines(sink, "");
    lines.add("a\n\nb\n");
    sink.flush();
    EXPECT_EQ(pipe.read_all(), "a\n\nb\n");
}

TEST(Output, a_reader_who_is_gone_is_noticed) {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ::close(ends[0]);
    Sink sink(ends[1]);
    sink.add("text\n");
    EXPECT_FALSE(sink.flush());
    EXPECT_TRUE(sink.empty());
    ::close(ends[1]);
}

TEST(Output, a_sink_that_cannot_write_says_that_it_is_full) {
    Pipe pipe;
    Sink sink(pipe.ends[1]);
    for (int i = 0; i < 3000; ++i) sink.add(std::string(999, 'x') + "\n");
    EXPECT_TRUE(sink.flush());
    EXPECT_TRUE(sink.full());
    std::string all;
    for (int i = 0; i < 1000 && !sink.empty(); ++i) {
        all += pipe.read_all();
        sink.flush();
    }
    all += pipe.read_all();
    EXPECT_EQ(all.size(), 3'000'000u);
}

TEST(Output, a_sink_is_full_when_it_holds_more_than_a_mebibyte) {
    Pipe pipe;
    Sink sink(pipe.ends[1]);
    EXPECT_TRUE(sink.empty());
    sink.add(std::string(std::size_t{1} << 20, 'x'));
    EXPECT_FALSE(sink.full());
    EXPECT_FALSE(sink.empty());
    sink.add("x");
    EXPECT_TRUE(sink.full());
}

TEST(Output, a_line_of_64_kib_is_whole_and_a_longer_one_comes_in_pieces_with_a_label_each) {
    constexpr std::size_t most = 65536;
    const auto collected = [](std::size_t bytes) {
        Pipe pipe;
        EXPECT_GT(::fcntl(pipe.ends[1], F_SETPIPE_SZ, 1 << 20), 0);
        Sink sink(pipe.ends[1]);
        Collector lines(sink, "[3] ");
        for (std::size_t at = 0; at < bytes; ++at) lines.add("x"); // as it may be cut
        lines.add("y\n");
        sink.flush();
        return pipe.read_all();
    };
    EXPECT_EQ(collected(most), "[3] " + std::string(most, 'x') + "y\n");
    EXPECT_EQ(collected(most + 1), "[3] " + std::string(most + 1, 'x') + "\n[3] y\n");
}

TEST(Output, a_stream_that_ends_with_a_whole_line_gets_no_other) {
    Pipe pipe;
    Sink sink(pipe.ends[1]);
    Collector lines(sink, "[0] ");
    lines.finish();
    lines.add("a\n");
    lines.finish();
    lines.finish();
    sink.flush();
    EXPECT_EQ(pipe.read_all(), "[0] a\n");
}

TEST(Output, a_reader_of_a_pipe_that_is_nearly_full_does_not_hold_up_the_watcher) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0); // one that blocks
    const int capacity = ::fcntl(ends[1], F_GETPIPE_SZ);
    const std::string page(4096, 'x');
    for (int held = 0; held + 4096 < capacity; held += 4096)
        ASSERT_EQ(::write(ends[1], page.data(), page.size()), 4096);
    Sink sink(ends[1]);
    sink.add(page + page + "y");
    EXPECT_TRUE(sink.flush()); // this test hangs if it writes more than there is room for
    EXPECT_FALSE(sink.empty());
    EXPECT_EQ(sink.error_number(), 0);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(Output, after_an_error_what_comes_is_thrown_away_and_the_reason_is_kept) {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ::close(ends[0]);
    Sink sink(ends[1]);
    EXPECT_EQ(sink.error_number(), 0);
    sink.add("text\n");
    EXPECT_FALSE(sink.flush());
    EXPECT_EQ(sink.error_number(), EPIPE);
    sink.add("more\n");
    EXPECT_FALSE(sink.flush());
    EXPECT_TRUE(sink.empty());
    EXPECT_EQ(sink.error_number(), EPIPE);
    ::close(ends[1]);
}

} // namespace
} // namespace kumi::launch
