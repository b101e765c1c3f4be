// Threads that send while they hold a mutex for which a handler of this node waits.

#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <mutex>

namespace kumi::engine::held_mutexes_test {
namespace {

using namespace std::chrono_literals;
using loopback::comes_true;
using loopback::Victim;

class HeldMutexes : public testing::Test {
protected:
    /// The handler of a request of node 2 waits for `mutex`, which the test holds.
    void block_a_handler(Victim& victim) {
        victim.hears(2, Kind::first_handler, true);
        victim.channel.ring();
        ASSERT_TRUE(comes_true([&] { return is_in_handler.load(); }));
    }
    Handlers handlers() {
        Handlers all;
        take = all.add("take", [this](Call&, Bytes) {
            is_in_handler = true;
            const std::lock_guard lock(mutex);
            ++handled;
        });
        return all;
    }
    std::optional<Handler<Bytes>> take;
    std::mutex mutex;
    std::atomic<bool> is_in_handler{false};
    std::atomic<int> handled{0};
};

TEST_F(HeldMutexes, sending_more_than_there_is_room_for_waits_for_nothing_and_loses_nothing) {
    Victim victim(handlers(), {.in_background = true});
    constexpr int count = 3 * requests_max;
    {
        const std::lock_guard lock(mutex);
        block_a_handler(victim);
        for (int i = 0; i < count; ++i) ASSERT_TRUE(victim.engine->send(1, *take, Bytes{}));
        EXPECT_EQ(victim.under_way(1), requests_max);
        EXPECT_EQ(handled, 0);
    }
    ASSERT_TRUE(comes_true([&] { return handled == 1; }));
    std::size_t sent = 0;
    EXPECT_TRUE(comes_true([&] { // node 1 handles what has come, and more is sent
        sent += victim.sent(Kind::first_handler).size();
        victim.handled[1] = static_cast<std::uint16_t>(sent);
        victim.hears(1, Kind::credit);
        victim.channel.ring();
        return sent == count;
    }));
}

TEST_F(HeldMutexes, plain_messages_wait_for_nothing_either) {
    Victim victim(handlers(), {.in_background = true});
    const std::vector<std::byte> bytes(60'000);
    std::size_t window = 0;
    {
        const auto turn = victim.dispatcher->take_turn();
        window = victim.dispatcher->outbox(turn).windows().bytes();
    }
    const std::lock_guard lock(mutex);
    block_a_handler(victim);
    for (std::size_t sent = 0; sent <= 2 * window; sent += bytes.size())
        ASSERT_TRUE(victim.dispatcher->messages().send_plain(1, std::array{Bytes(bytes)}));
    EXPECT_EQ(handled, 0);
}

TEST_F(HeldMutexes, when_very_much_waits_sending_fails_after_a_while_and_says_why) {
    Victim victim(handlers(), {.in_background = true, .waiting_bytes_max = 1000, .stuck_after = 50ms});
    const std::vector<std::byte> bytes(500);
    testing::internal::CaptureStderr(); // it warns, too
    Result<void> outcome;
    {
        const std::lock_guard lock(mutex);
        block_a_handler(victim);
        int count = 0;
        Instant begin = now();
        for (; outcome && count < 1000; ++count) {
            begin = now();
            outcome = victim.engine->send(1, *take, Bytes(bytes));
        }
        EXPECT_GE(now() - begin, 50ms);
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code(), ErrorCode::misuse);
        EXPECT_NE(outcome.error().text().find("mutex"), std::string::npos);
        EXPECT_GT(count, static_cast<int>(requests_max) + 12) << "7 times 1000 bytes may wait";
        const std::vector<std::byte> more(60'000);
        outcome = {};
        for (int i = 0; outcome && i < 1000; ++i)
            outcome = victim.dispatcher->messages().send_plain(1, std::array{Bytes(more)});
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code(), ErrorCode::misuse);
    }
    testing::internal::GetCapturedStderr();
    ASSERT_TRUE(comes_true([&] { return handled == 1; }));
}

} // namespace
} // namespace kumi::engine::held_mutexes_test
