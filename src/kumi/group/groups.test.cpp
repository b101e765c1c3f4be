#include "kumi/group/groups.hpp"

#include "kumi/group/gather.hpp"
#include "kumi/group/wire/multicast.hpp"
#include "loopback/victim.hpp"
#include "skips.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace kumi::group {
namespace {

std::vector<std::byte> value_with(ValueHead head, std::size_t bytes) {
    std::vector<std::byte> value(sizeof head + bytes, std::byte{7});
    copy_bytes(value.data(), bytes_of(head));
    return value;
}

TEST(Values, come_off_the_front_one_by_one) {
    auto bytes = value_with({3, 2}, 2);
    const auto second = value_with({5, 0}, 0);
    bytes.insert(bytes.end(), second.begin(), second.end());
    Bytes left = bytes;
    const auto one = take_value(left);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->first, 3u);
    EXPECT_EQ(one->second.size(), 2u);
    const auto other = take_value(left);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->first, 5u);
    EXPECT_TRUE(other->second.empty());
    EXPECT_FALSE(take_value(left));
}

TEST(Values, that_are_cut_short_are_none) {
    for (const std::uint32_t told : {3u, 4u, 5u, ~0u}) {
        const auto bytes = value_with({1, told}, 4);
        Bytes left = bytes;
        EXPECT_EQ(take_value(left).has_value(), told <= 4) << told;
    }
    const auto bytes = value_with({1, 0}, 0);
    Bytes left = Bytes(bytes).first(sizeof(ValueHead) - 1);
    EXPECT_FALSE(take_value(left));
}

TEST(Multicasting, to_its_own_node_is_handled_by_a_call_that_makes_progress_and_not_by_the_one_that_starts_it) {
    std::vector<int> handled;
    Handlers handlers;
    const auto take = handlers.add("take", [&](Call&, int number) { handled.push_back(number); });
    loopback::ScriptedChannel channel(1, 0);
    auto dispatcher = *engine::Dispatcher::open(channel, std::move(handlers), {.progress = {.in_background = false}});
    Groups groups(*dispatcher);
    engine::Engine engine(std::move(dispatcher));
    auto first = groups.multicast({0}, take, 1);
    auto second = groups.multicast({0}, take, 2);
    EXPECT_TRUE(handled.empty());
    EXPECT_FALSE(first.is_ready());
    EXPECT_NE(engine.poll(), 0u);
    EXPECT_EQ(handled, (std::vector<int>{1, 2}));
    EXPECT_TRUE(first.is_ready());
    EXPECT_TRUE(second.is_ready());
    EXPECT_EQ(engine.poll(), 0u);
    auto taken = groups.multicast({0}, 7, Bytes());
    EXPECT_EQ(groups.next(now())->tag, 7u);
    EXPECT_TRUE(taken.is_ready());
}

TEST(Multicasting, that_waits_for_room_while_a_handler_waits_for_a_mutex_fails_after_a_while_and_says_why) {
    using namespace std::chrono_literals;
    std::mutex mutex;
    std::atomic<int> handled{0};
    Handlers handlers;
    const auto take = handlers.add("take", [&](Call&) {
        const std::lock_guard lock(mutex);
        ++handled;
    });
    loopback::ScriptedChannel channel(1, 0);
    auto dispatcher = *engine::Dispatcher::open(channel, std::move(handlers), {.progress = {.stuck_after = 50ms}});
    Groups groups(*dispatcher);
    engine::Engine engine(std::move(dispatcher));
    engine.dispatcher().loop().start();
    testing::internal::CaptureStderr(); // it warns, too
    std::vector<Future<Set>> done;
    {
        const std::lock_guard lock(mutex);
        for (std::size_t i = 0; i < Groups::under_way_max / 2; ++i) done.push_back(groups.multicast({0}, take));
        const Instant begin = now();
        const auto refused = groups.multicast({0}, take).get(begin);
        EXPECT_GE(now() - begin, 50ms);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), ErrorCode::misuse);
        EXPECT_NE(refused.error().text().find("mutex"), std::string::npos) << refused.error().text();
        EXPECT_EQ(handled, 0);
    }
    for (Future<Set>& one : done) EXPECT_TRUE(one.get(now() + 20s));
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(handled, static_cast<int>(Groups::under_way_max / 2));
}

TEST(Multicasting, of_a_function_fails_if_all_that_is_under_way_waits_for_functions_that_wait_for_room) {
    using namespace std::chrono_literals;
#if defined(KUMI_THREAD_SANITIZER)
    KUMI_SKIP(skips::not_under_tsan); // a thread for each of 512 functions is more than it follows
#endif
    std::optional<Groups> groups;
    std::optional<Function<int(int)>> ask;
    std::atomic<int> deepest{0};
    std::string why; // of the deepest; the answer comes after it
    Handlers handlers;
    ask = handlers.function("ask", [&](int depth) {
        deepest = depth;
        const auto below = groups->gather({0}, *ask, depth + 1).get(now() + 60s);
        if (below) return 0;
        if (deepest == depth) why = below.error().text();
        throw std::runtime_error("it failed below");
    });
    loopback::ScriptedChannel channel(1, 0);
    auto dispatcher = *engine::Dispatcher::open(channel, std::move(handlers), {.progress = {.stuck_after = 50ms}});
    groups.emplace(*dispatcher);
    engine::Engine engine(std::move(dispatcher));
    engine.dispatcher().loop().start();
    const Instant begin = now();
    const auto answer = groups->gather({0}, *ask, 1).get(now() + 60s);
    EXPECT_LT(now() - begin, 30s);
    EXPECT_FALSE(answer);
    EXPECT_NE(why.find("none of them ends"), std::string::npos) << why;
    EXPECT_EQ(deepest, static_cast<int>(Groups::under_way_max));
}

TEST(Multicasting, what_a_function_answers_while_a_handler_waits_is_told_when_the_handler_has_ended) {
    using namespace std::chrono_literals;
    std::mutex mutex;
    std::atomic<bool> is_in_handler{false}, has_run{false}, was_told{false};
    Handlers handlers;
    const auto hold = handlers.add("hold", [&](Call&) {
        is_in_handler = true;
        const std::lock_guard lock(mutex);
    });
    const auto same = handlers.function("same", [&](int number) {
        (void)loopback::comes_true([&] { return is_in_handler.load(); });
        has_run = true;
        return number;
    });
    loopback::ScriptedChannel channel(1, 0);
    auto dispatcher = *engine::Dispatcher::open(channel, std::move(handlers), {});
    Groups groups(*dispatcher);
    engine::Engine engine(std::move(dispatcher));
    engine.dispatcher().loop().start();
    Future<void> told;
    {
        const std::lock_guard lock(mutex);
        told = groups.gather({0}, same, 7).then([&](const Result<Gathered<int>>& answers) {
            EXPECT_TRUE(answers && answers->at(0).second == 7);
            was_told = true;
        });
        (void)groups.multicast({0}, hold);
        ASSERT_TRUE(loopback::comes_true([&] { return has_run.load(); }));
        std::this_thread::sleep_for(30ms);
        EXPECT_FALSE(was_told) << "the thread that tells it must be able to lend the turn to this one";
    }
    EXPECT_TRUE(told.get(now() + 20s));
    EXPECT_TRUE(was_told);
}

} // namespace
} // namespace kumi::group
