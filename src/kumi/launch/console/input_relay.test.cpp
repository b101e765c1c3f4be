#include "kumi/launch/console/input_relay.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <cstdio>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace kumi::launch {
namespace {

/// A pipe in the place of this process's standard input, and what a relay sends of it.
class Relayed : public testing::Test {
protected:
    Relayed() : ours_(::dup(STDIN_FILENO)) {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        EXPECT_GT(::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20), 0);
        ::dup2(ends[0], STDIN_FILENO);
        ::close(ends[0]);
        typing_.reset(ends[1]);
    }
    ~Relayed() override {
        if (ours_) ::dup2(ours_.get(), STDIN_FILENO);
        else ::close(STDIN_FILENO);
    }

    void type(std::size_t bytes) {
        const std::string text(bytes, 'x');
        ASSERT_EQ(::write(typing_.get(), text.data(), text.size()), static_cast<ssize_t>(bytes));
    }
    /// Lets the relay read as often as there are events; answers how many bytes it sends.
    std::size_t relay_all(InputRelay& relay) {
        std::size_t sent = 0;
        while (!poller_.wait(now()).empty())
            relay.on_ready([&](Bytes bytes) {
                sent += bytes.size();
                ends_ += bytes.empty() ? 1 : 0;
            });
        return sent;
    }

    base::Descriptor ours_;
    base::Descriptor typing_;
    host::Poller poller_ = *host::Poller::open();
    int ends_ = 0;
};

TEST_F(Relayed, no_more_is_under_way_than_the_node_has_room_for) {
    InputRelay relay(poller_);
    type(200'000);
    EXPECT_EQ(relay_all(relay), remote::input_bytes_max);
    EXPECT_EQ(relay_all(relay), 0u);
    relay.on_taken(10);
    EXPECT_EQ(relay_all(relay), 10u);
    relay.on_taken(remote::input_bytes_max + 4000); // more than was under way: a helper may say what it likes
    EXPECT_EQ(relay_all(relay), remote::input_bytes_max);
    relay.on_taken(0);
    EXPECT_EQ(relay_all(relay), 0u);
    EXPECT_EQ(ends_, 0);
}

TEST_F(Relayed, the_end_of_input_is_told_once) {
    InputRelay relay(poller_);
    type(5);
    EXPECT_EQ(relay_all(relay), 5u);
    EXPECT_EQ(ends_, 0);
    typing_.reset();
    EXPECT_EQ(relay_all(relay), 0u);
    EXPECT_EQ(ends_, 1);
    relay.on_taken(5);
    EXPECT_EQ(relay_all(relay), 0u);
    EXPECT_EQ(ends_, 1);
}

TEST_F(Relayed, when_the_node_has_ended_nothing_more_is_read) {
    InputRelay relay(poller_);
    type(5);
    relay.end();
    EXPECT_EQ(relay_all(relay), 0u);
    relay.on_taken(5);
    relay.watch();
    EXPECT_EQ(relay_all(relay), 0u);
    EXPECT_EQ(ends_, 0);
}

TEST_F(Relayed, a_file_is_ready_without_an_event_until_there_is_no_room) {
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(::ftruncate(::fileno(file), 2 * remote::input_bytes_max), 0);
    ::dup2(::fileno(file), STDIN_FILENO);
    std::fclose(file);
    InputRelay relay(poller_);
    std::size_t sent = 0;
    for (int i = 0; i < 10 && relay.is_ready_file(); ++i) relay.on_ready([&](Bytes bytes) { sent += bytes.size(); });
    EXPECT_EQ(sent, remote::input_bytes_max);
    relay.on_taken(1);
    EXPECT_TRUE(relay.is_ready_file());
    relay.end();
    EXPECT_FALSE(relay.is_ready_file());
}

} // namespace
} // namespace kumi::launch
