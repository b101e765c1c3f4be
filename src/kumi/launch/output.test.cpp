#include "kumi/launch/output.hpp"

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

} // namespace
} // namespace kumi::launch
