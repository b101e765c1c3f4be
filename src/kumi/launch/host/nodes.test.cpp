#include "kumi/launch/host/nodes.hpp"

#include "kumi/launch/host/environment.hpp"

#include <chrono>
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
                 .cluster = {}},
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

} // namespace
} // namespace kumi::launch::host
