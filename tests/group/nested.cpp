// Functions that gather() and reduce() run, and that themselves wait for multicasts of their node, in every world.

#include "group/node.hpp"

#include <atomic>
#include <mutex>
#include <thread>

namespace kumi::group_test {
namespace {

using namespace std::chrono_literals;

class Nested : public GroupTest {};

/// A member whose functions ask all nodes again, some levels deep. Each answers how many functions have run below it.
struct Asking {
    Member member;
    Set all;
    std::atomic<long> noted{0};
    Handler<> note = member.handlers.add("note", [this](Call&) { ++noted; });
    Function<long(long, long)> add = member.handlers.function("add", [](long a, long b) { return a + b; });
    std::optional<Function<long(int)>> gather, reduce, multicast;

    explicit Asking(Node nodes) : all(Set::range(0, nodes)) {
        gather = member.handlers.function("gather", [this](int depth) { return gather_below(depth); });
        reduce = member.handlers.function("reduce", [this](int depth) { return reduce_below(depth); });
        multicast = member.handlers.function("multicast", [this](int depth) { return multicast_below(depth); });
    }
    /// What a function answers that asks `nodes` nodes, so many levels deep.
    static long expected(Node nodes, int depth) { return depth == 0 ? 1 : nodes * expected(nodes, depth - 1); }

    long gather_below(int depth) {
        if (depth == 0) return 1;
        long sum = 0;
        for (const auto& [node, value] : must(member.groups->gather(all, *gather, depth - 1).get(deadline())))
            sum += value;
        return sum;
    }
    long reduce_below(int depth) {
        if (depth == 0) return 1;
        return must(member.groups->reduce(all, add, *reduce, depth - 1).get(deadline())).value;
    }
    /// Both at once, and a multicast to a handler on each level.
    long multicast_below(int depth) {
        if (!must(member.groups->multicast(all, note).get(deadline())).empty())
            throw std::runtime_error("a member is missing");
        if (depth == 0) return 1;
        auto reduced = member.groups->reduce(all, add, *multicast, depth - 1);
        long sum = 0;
        for (const auto& [node, value] : must(member.groups->gather(all, *multicast, depth - 1).get(deadline())))
            sum += value;
        if (must(reduced.get(deadline())).value != sum) throw std::runtime_error("two sums of the same differ");
        return sum;
    }
    /// A function that throws fails at the node that asked.
    template <class T>
    static T must(Result<T> result) {
        if (!result) throw std::runtime_error(result.error().text());
        return *std::move(result);
    }
};

TEST_P(Nested, a_function_may_gather_and_reduce_and_multicast_whatever_the_nesting) {
    for (const Node nodes : {1u, 2u, 4u}) {
        run(nodes, [&](Channel& channel) {
            Asking asking(nodes);
            asking.member.open(channel);
            good(asking.member.engine->barrier(deadline()));
            const int deepest = nodes == 4 && sanitized ? 2 : 3;
            if (channel.self() == 0) {
                for (int depth = 1; depth <= deepest; ++depth) {
                    const long each = Asking::expected(nodes, depth);
                    const auto gathered =
                        good(asking.member.groups->gather(asking.all, *asking.gather, depth).get(deadline()));
                    ASSERT_EQ(gathered.size(), nodes);
                    for (const auto& [node, value] : gathered) EXPECT_EQ(value, each);
                    const auto reduced = good(
                        asking.member.groups->reduce(asking.all, asking.add, *asking.reduce, depth).get(deadline()));
                    EXPECT_EQ(reduced.value, each * nodes);
                    EXPECT_TRUE(reduced.missing.empty());
                }
                const auto mixed =
                    good(asking.member.groups->gather(asking.all, *asking.multicast, 1).get(deadline()));
                for (const auto& [node, value] : mixed) EXPECT_EQ(value, nodes);
            }
            good(asking.member.engine->barrier(deadline()));
            EXPECT_EQ(asking.noted, nodes + 2L * nodes * nodes);
            settle(*asking.member.engine);
            EXPECT_EQ(asking.member.groups->kept(), 0u);
        });
    }
}

TEST_P(Nested, all_nodes_may_ask_all_at_the_same_time) {
    run(3, [](Channel& channel) {
        Asking asking(3);
        asking.member.open(channel);
        good(asking.member.engine->barrier(deadline()));
        for (int round = 0; round < 3; ++round) {
            auto gathered = asking.member.groups->gather(asking.all, *asking.gather, 2);
            auto reduced = asking.member.groups->reduce(asking.all, asking.add, *asking.reduce, 2);
            EXPECT_EQ(good(reduced.get(deadline())).value, 27);
            for (const auto& [node, value] : good(gathered.get(deadline()))) EXPECT_EQ(value, 9);
        }
        settle(*asking.member.engine);
    });
}

TEST_P(Nested, functions_find_room_for_multicasts_though_threads_have_as_many_under_way_as_they_may) {
    run(1, [](Channel& channel) {
        constexpr std::size_t most = Groups::under_way_max / 2;
        Member member;
        std::atomic<bool> may_ask{false};
        const auto same = member.handlers.function("same", [](int number) { return number; });
        const auto ask = member.handlers.function("ask", [&](int number) {
            member.engine->wait_until([&] { return may_ask.load(); }, deadline());
            return Asking::must(member.groups->gather({0}, same, number).get(deadline())).at(0).second;
        });
        member.open(channel);
        std::vector<Future<group::Gathered<int>>> gathered;
        for (int i = 0; i < static_cast<int>(most); ++i) gathered.push_back(member.groups->gather({0}, ask, i));
        may_ask = true; // all of them are under way, and wait for functions that ask
        gathered.push_back(member.groups->gather({0}, ask, static_cast<int>(most)));
        for (int i = 0; i < static_cast<int>(gathered.size()); ++i)
            EXPECT_EQ(good(gathered[static_cast<std::size_t>(i)].get(deadline())).at(0).second, i);
        EXPECT_EQ(member.groups->kept(), 0u);
    });
}

TEST_P(Nested, what_a_master_sends_behind_a_function_that_runs_does_not_wait_for_the_function) {
    run(2, [](Channel& channel) {
        std::atomic<bool> may_end{false};
        std::atomic<int> handled{0};
        Member member;
        const auto linger = member.handlers.function("linger", [&](int number) {
            member.engine->wait_until([&] { return may_end.load(); }, deadline());
            return number;
        });
        const auto add = member.handlers.function("add", [](int a, int b) { return a + b; });
        const auto same = member.handlers.function("same", [](int number) { return number; });
        const auto note = member.handlers.add("note", [&](Call&) { ++handled; });
        const auto end = member.handlers.add("end", [&](Call&) { may_end = true; });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        if (channel.self() == 0) {
            Groups& groups = *member.groups;
            auto gathered = groups.gather({0, 1}, linger, 7);
            auto reduced = groups.reduce({0, 1}, add, linger, 8);
            EXPECT_TRUE(good(groups.multicast({0, 1}, note).get(deadline())).empty());
            EXPECT_EQ(good(groups.reduce({0, 1}, add, same, 4).get(deadline())).value, 8);
            EXPECT_FALSE(gathered.is_ready());
            EXPECT_FALSE(reduced.is_ready());
            EXPECT_EQ(handled, 1);
            EXPECT_TRUE(good(groups.multicast({0, 1}, end).get(deadline())).empty());
            for (const auto& [node, value] : good(gathered.get(deadline()))) EXPECT_EQ(value, 7);
            EXPECT_EQ(good(reduced.get(deadline())).value, 16);
        }
        settle(*member.engine);
        EXPECT_EQ(member.groups->kept(), 0u);
    });
}

/// More than a member can tell apart from old ones: Sequences::window.
TEST_P(Nested, a_function_may_begin_any_number_of_multicasts) {
    run(1, [](Channel& channel) {
        Member member;
        std::atomic<int> handled{0};
        const auto note = member.handlers.add("note", [&](Call&) { ++handled; });
        const auto many = member.handlers.function("many", [&](int count) {
            for (int i = 0; i < count; ++i) good(member.groups->multicast({0}, note).get(deadline()));
            return count;
        });
        member.open(channel);
        const auto answers = good(member.groups->gather({0}, many, 5000).get(deadline()));
        EXPECT_EQ(answers.at(0).second, 5000);
        EXPECT_EQ(handled, 5000);
        EXPECT_EQ(member.groups->kept(), 0u);
    });
}

KUMI_ENGINE_WORLDS(Nested);

/// A call that starts a multicast runs no handler in its thread.
class StartedWithMutex : public GroupTest {};

TEST_P(StartedWithMutex, the_handler_of_the_master_s_own_node_does_not_run_inside_the_call) {
    for (const bool in_background : {true, false}) {
        run(2, [&](Channel& channel) {
            Member member;
            static thread_local bool is_inside = false; // a call of multicast()
            std::atomic<int> handled{0}, handled_inside{0};
            const auto take = member.handlers.add("take", [&](Call&) {
                if (is_inside) ++handled_inside;
                ++handled;
            });
            member.open(channel, {.in_background = in_background});
            good(member.engine->barrier(deadline()));
            constexpr int count = 50;
            std::vector<Future<Set>> done;
            for (int i = 0; i < count; ++i) {
                is_inside = true;
                done.push_back(member.groups->multicast({0, 1}, take));
                is_inside = false;
            }
            for (Future<Set>& one : done) EXPECT_TRUE(good(one.get(deadline())).empty());
            settle(*member.engine);
            EXPECT_EQ(handled, 2 * count);
            EXPECT_EQ(handled_inside, 0);
        });
    }
}

TEST_P(StartedWithMutex, a_mutex_that_the_handler_and_continuations_take_may_be_held) {
    run(2, [](Channel& channel) {
        std::mutex mutex;
        std::vector<std::uint64_t> numbers; // that this node's own multicasts brought
        int handled = 0, continued = 0;
        Member member;
        const auto take = member.handlers.add("take", [&](Call& call, std::uint64_t number) {
            const std::lock_guard lock(mutex);
            ++handled;
            if (call.source() == channel.self()) numbers.push_back(number);
        });
        const auto same = member.handlers.function("same", [&](std::uint64_t number) {
            const std::lock_guard lock(mutex);
            return number;
        });
        member.open(channel);
        const auto words = good(member.engine->memory().segment<std::uint64_t>(1));
        const Set all{0, 1};
        constexpr std::uint64_t count = 60; // all of them together are as many as may be under way, and fewer
        std::vector<Future<void>> done;
        std::vector<std::uint64_t> expected;
        for (std::uint64_t number = 0; number < count; ++number) {
            expected.push_back(number);
            const std::lock_guard lock(mutex);
            const auto after = [&](const auto& result) {
                EXPECT_TRUE(result) << result.error().text();
                const std::lock_guard inner(mutex);
                ++continued;
            };
            auto first = member.groups->multicast(all, take, number);
            auto second = member.groups->gather(all, same, number);
            auto third = member.groups->multicast(all, words.at(0), {&number, 1});
            done.push_back(first.then(after));
            done.push_back(second.then(after));
            done.push_back(third.then(after));
        }
        for (Future<void>& one : done) good(one.get(deadline()));
        settle(*member.engine);
        const std::lock_guard lock(mutex);
        EXPECT_EQ(numbers, expected) << "in the order of sending";
        EXPECT_EQ(handled, 2 * static_cast<int>(count));
        EXPECT_EQ(continued, 3 * static_cast<int>(count));
    });
}

TEST_P(StartedWithMutex, a_multicast_that_waits_for_room_runs_no_handler_either) {
    run(1, [](Channel& channel) {
        Member member;
        static thread_local bool is_inside = false;
        std::atomic<int> handled{0}, handled_inside{0};
        const auto take = member.handlers.add("take", [&](Call&) {
            if (is_inside) ++handled_inside;
            ++handled;
        });
        member.open(channel);
        constexpr int count = 3 * static_cast<int>(Groups::under_way_max);
        std::vector<Future<Set>> done;
        for (int i = 0; i < count; ++i) {
            is_inside = true;
            done.push_back(member.groups->multicast({0}, take));
            is_inside = false;
        }
        for (Future<Set>& one : done) EXPECT_TRUE(good(one.get(deadline())).empty());
        EXPECT_EQ(handled, count);
        EXPECT_EQ(handled_inside, 0);
    });
}

KUMI_ENGINE_WORLDS(StartedWithMutex);

} // namespace
} // namespace kumi::group_test
