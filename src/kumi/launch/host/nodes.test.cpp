#include "kumi/launch/host/nodes.hpp"

#include "kumi/launch/host/processes/environment.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <thread>

namespace kumi::launch::host {
namespace {

using namespace std::chrono_literals;

class Printed final : public Listener {
public:
    void on_started(std::uint32_t, pid_t) override {}
    void on_frame(std::uint32_t, boot::Frame) override {}
    void on_output(std::uint32_t, Stream stream, std::string_view text) override {
        (stream == Stream::out ? out : err) += text;
    }
    void on_end(std::uint32_t, int) override {}

    std::string out;
    std::string err;
};

TEST(Nodes, what_they_printed_before_they_ended_is_read_however_late) {
    auto poller = Poller::open();
    auto children = Children::open();
    ASSERT_TRUE(poller && children);
    Printed printed;
    Nodes nodes({.count = 2,
                 .program = "/bin/sh",
                 .arguments = {"-c", "head -c 65536 /dev/zero; printf sorry >&2"}, // a pipe that is full
                 .environment = own_environment(),
                 .bind = false,
                 .terminal = {},
                 .input = {},
                 .cluster = {},
                 .mpi = {}},
                *poller, *children, printed);
    ASSERT_TRUE(nodes.start());
    for (const auto deadline = std::chrono::steady_clock::now() + 20s; !nodes.is_over();) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        children->reap([&](pid_t pid, int status) { nodes.on_child_end(pid, status); });
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(printed.out.size() + printed.err.size(), 0u);
    nodes.hold_output(true); // as who reads it may have asked for
    nodes.read_rest();
    EXPECT_EQ(printed.out.size(), 2u * 65536);
    EXPECT_EQ(printed.err, "sorrysorry");
}

/// Writes down what nodes do, in order.
class Diary final : public Listener {
public:
    void on_started(std::uint32_t node, pid_t) override { said += fmt::format("started {}; ", node); }
    void on_frame(std::uint32_t node, boot::Frame frame) override {
        said += fmt::format("frame {} {} {}; ", node, static_cast<int>(frame.kind), text_of(frame.body));
    }
    void on_output(std::uint32_t node, Stream stream, std::string_view text) override {
        if (!text.empty()) said += fmt::format("{} {} {}; ", stream == Stream::out ? "out" : "err", node, text);
    }
    void on_end(std::uint32_t node, int status) override { said += fmt::format("end {} {}; ", node, status); }

    std::string said;
};

/// Nodes 5 and on, which are shells that run a script.
struct Scripted {
    explicit Scripted(const std::string& script, std::uint32_t count = 1)
        : nodes({.first = 5,
                 .count = count,
                 .program = "/bin/sh",
                 .arguments = {"-c", script},
                 .environment = own_environment(),
                 .bind = false,
                 .terminal = {},
                 .input = {},
                 .cluster = {},
                 .mpi = {}},
                *poller, *children, diary) {}

    /// Serves events until `done`.
    template <class Done>
    bool comes(Done&& done) {
        for (const auto deadline = std::chrono::steady_clock::now() + 20s;
             !done() && std::chrono::steady_clock::now() < deadline;) {
            for (const Event& event : poller->wait(now() + 2ms)) nodes.on_event(event.source, event.index);
            reap();
        }
        return done();
    }
    /// Waits for the end of all without serving anything.
    bool ends_unheard() {
        for (const auto deadline = std::chrono::steady_clock::now() + 20s;
             !nodes.is_over() && std::chrono::steady_clock::now() < deadline; std::this_thread::sleep_for(1ms))
            reap();
        return nodes.is_over();
    }
    void reap() {
        children->reap([&](pid_t pid, int status) { nodes.on_child_end(pid, status); });
    }

    Result<Poller> poller = Poller::open();
    Result<Children> children = Children::open();
    Diary diary;
    Nodes nodes;
};

/// A frame as printf(1) writes it.
std::string for_printf(boot::Kind kind, std::string_view body) {
    std::string text;
    for (const std::byte byte : boot::encode(kind, bytes_of(body)))
        text += fmt::format("\\{:03o}", static_cast<unsigned>(byte));
    return text;
}

TEST(Nodes, a_frame_that_was_sent_last_is_heard_before_the_end) {
    Scripted scripted("printf '" + for_printf(boot::Kind::stats, "counters") + for_printf(boot::Kind::leave, "") +
                      "' >&3; exit 3");
    ASSERT_TRUE(scripted.nodes.start());
    ASSERT_TRUE(scripted.ends_unheard());
    EXPECT_EQ(scripted.diary.said,
              fmt::format("started 5; frame 5 {} counters; frame 5 {} ; end 5 {}; ",
                          static_cast<int>(boot::Kind::stats), static_cast<int>(boot::Kind::leave), 3 << 8));
}

TEST(Nodes, garbage_on_its_boot_socket_is_told_once_and_then_nothing_is_heard_from_there) {
    Scripted scripted("trap '' PIPE; printf 'what is this? no frame at all' >&3; sleep 0.05; printf '" +
                      for_printf(boot::Kind::leave, "") + "' >&3 2>/dev/null; echo still here");
    ASSERT_TRUE(scripted.nodes.start());
    EXPECT_TRUE(scripted.comes([&] { return scripted.nodes.is_over() && !scripted.nodes.is_output_open(); }));
    EXPECT_NE(scripted.diary.said.find("out 5 still here\n; "), std::string::npos) << scripted.diary.said;
    const std::string told =
        fmt::format("frame 5 {} what came over the KUMI_BOOT socket is no frame of this version of Kumi; ",
                    static_cast<int>(boot::Kind::failed));
    EXPECT_NE(scripted.diary.said.find(told), std::string::npos) << scripted.diary.said;
    EXPECT_EQ(scripted.diary.said.find("frame 5"), scripted.diary.said.rfind("frame 5")) << scripted.diary.said;
    scripted.nodes.send(5, std::make_shared<const std::vector<std::byte>>(100)); // for nobody
}

TEST(Nodes, a_frame_that_is_larger_than_the_sockets_buffer_arrives_whole_behind_a_smaller_one) {
    Scripted scripted("sleep 0.05; head -c 3000032 <&3 | cksum; wc -c <&3", 2);
    ASSERT_TRUE(scripted.nodes.start());
    std::vector<std::byte> body(1'500'000);
    for (std::size_t i = 0; i < body.size(); ++i) body[i] = std::byte(i * 7 % 251);
    const auto large = std::make_shared<const std::vector<std::byte>>(boot::encode(boot::Kind::exchanged, body));
    scripted.nodes.send(every_node, large);
    scripted.nodes.send(every_node, large);
    scripted.nodes.send(6, std::make_shared<const std::vector<std::byte>>(
                               boot::encode(boot::Kind::welcome, bytes_of(std::string_view("last")))));
    const auto lines = [&] { return std::count(scripted.diary.said.begin(), scripted.diary.said.end(), '\n'); };
    EXPECT_TRUE(scripted.comes([&] { return lines() == 2; })) << scripted.diary.said;
    // What both got is the same, and as long as it was.
    const std::string& said = scripted.diary.said;
    const std::size_t first = said.find("out ") + 6, second = said.find("out ", first) + 6;
    EXPECT_EQ(said.substr(first, said.find('\n', first) - first), said.substr(second, said.find('\n', second) - second))
        << said;
    EXPECT_NE(said.find(" 3000032\n"), std::string::npos) << said;
}

TEST(Nodes, output_that_is_held_stays_in_the_pipe) {
    Scripted scripted("echo text; echo wrong >&2; sleep 1000");
    ASSERT_TRUE(scripted.nodes.start());
    scripted.nodes.hold_output(true);
    for (int i = 0; i < 30; ++i) scripted.comes([&] { return true; }), std::this_thread::sleep_for(1ms);
    for (int i = 0; i < 20; ++i)
        for (const Event& event : scripted.poller->wait(now() + 1ms))
            scripted.nodes.on_event(event.source, event.index);
    EXPECT_EQ(scripted.diary.said, "started 5; ");
    scripted.nodes.hold_output(false);
    EXPECT_TRUE(scripted.comes([&] {
        return scripted.diary.said.find("out 5 text\n; ") != std::string::npos &&
               scripted.diary.said.find("err 5 wrong\n; ") != std::string::npos;
    }));
}

TEST(Nodes, a_signal_reaches_the_groups_of_all_that_run) {
    Scripted scripted("trap 'exit 7' USR1; sleep 1000 & echo ready; wait", 2);
    ASSERT_TRUE(scripted.nodes.start());
    ASSERT_TRUE(scripted.comes([&] {
        return std::count(scripted.diary.said.begin(), scripted.diary.said.end(), '\n') == 2;
    })) << scripted.diary.said;
    EXPECT_FALSE(scripted.nodes.is_over());
    scripted.nodes.signal(SIGUSR1);
    EXPECT_TRUE(scripted.comes([&] { return scripted.nodes.is_over() && !scripted.nodes.is_output_open(); }))
        << "sleep held the output, and was signalled, too";
    for (const int node : {5, 6})
        EXPECT_NE(scripted.diary.said.find(fmt::format("end {} {}; ", node, 7 << 8)), std::string::npos)
            << scripted.diary.said;
}

} // namespace
} // namespace kumi::launch::host
