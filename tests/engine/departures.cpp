// A node that leaves or dies: whatever needs it fails by its name, soon, and all else goes on.

#include "engine/node.hpp"
#include "kumi/engine/call/invoke.hpp"
#include "loopback/other_thread.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <unistd.h>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class Departures : public EngineTest {
public:
    /// As the channel has it, and for the engine to notice: it looks once a second where no channel wakes it.
    static Duration told_max() { return sanitized ? Duration{10s} : GetParam().told_max + 2s; }

protected:
    /// Runs `body` on three nodes, of which node 1 calls go() and returns: it leaves, or dies in that call.
    static void run_without_one(const std::function<void(Channel&, const std::function<void()>& go)>& body) {
        run(3, [&](Channel& channel) { body(channel, [] {}); });
        if (!GetParam().run_and_kill) return;
        GetParam().run_and_kill(3, {1}, [&](Channel& channel) {
            const Watchdog watchdog(channel.self());
            try {
                body(channel, [] { ::kill(::getpid(), SIGKILL); });
            } catch (const Stop&) {
            }
        });
    }
};

/// What node 0 and node 2 can still do without node 1.
void meet(Engine& engine) { good(engine.wait(good(engine.arrive(std::vector<Node>{0, 2})), deadline())); }

/// An error that says that node 1 is lost, long before the deadline.
template <class Call>
void expect_lost_node(Call&& call, Place where = Place::here()) {
    const Instant begin = now();
    const auto result = call();
    const Duration took = now() - begin;
    expect_error(result, {"node 1"}, where);
    if (result) return;
    if (result.error().code() != ErrorCode::node_lost)
        ADD_FAILURE_AT(where.file, where.line) << "not the code for that: " << result.error().text();
    if (took > Departures::told_max())
        ADD_FAILURE_AT(where.file, where.line) << "after " << took / 1ms << " ms: " << result.error().text();
}

TEST_P(Departures, whoever_waits_for_a_node_that_goes_is_told) {
    for (const char* const what :
         {"invoke", "sync", "barrier", "barrier of some", "barrier's flag", "send", "plain send"})
        run_without_one([&](Channel& channel, const std::function<void()>& go) {
            SCOPED_TRACE(what);
            const std::string_view wanted = what;
            Handlers handlers;
            const auto take = handlers.add("take", [](Call&, std::uint64_t) {});
            const auto square = handlers.function("square", [](long value) { return value * value; });
            Engine engine = open(channel, std::move(handlers));
            good(engine.barrier(deadline()));
            if (engine.node() == 1) {
                std::this_thread::sleep_for(20ms); // the others wait, or are about to
                return go();
            }
            const auto send_many = [&]() -> Result<void> {
                const std::vector<std::byte> content(5'000);
                for (const Instant end = now() + 10s; now() < end;) {
                    const auto sent = wanted == "send" ? engine.send(1, take, std::uint64_t{1})
                                                       : engine.dispatcher().messages().send_plain(
                                                             1, std::array<Bytes, 1>{Bytes(content)});
                    if (!sent) return sent;
                }
                return {};
            };
            if (wanted == "barrier") expect_lost_node([&] { return engine.barrier(deadline()); });
            if (wanted == "barrier of some")
                expect_lost_node([&] {
                    return engine.wait(good(engine.arrive(std::vector<Node>{0, 1, 2})), deadline());
                });
            if (wanted == "barrier's flag")
                expect_lost_node([&] {
                    Flag flag = 0;
                    engine.memory().notify(engine.arrive(), flag);
                    return engine.memory().wait(flag, 1, deadline());
                });
            if (wanted == "invoke")
                expect_lost_node([&] {
                    for (const Instant end = now() + 10s; now() < end;)
                        if (auto answer = engine.invoke(1, square, 3).get(deadline()); !answer) return answer;
                    return engine.invoke(1, square, 3).get(deadline());
                });
            if (wanted == "sync")
                expect_lost_node([&] {
                    for (const Instant end = now() + 10s; now() < end;) {
                        if (auto sent = engine.send(1, take, std::uint64_t{1}); !sent) return sent;
                        if (auto synced = engine.sync(deadline()); !synced) return synced;
                    }
                    return engine.sync(deadline());
                });
            if (wanted == "send" || wanted == "plain send") expect_lost_node(send_many);
            (void)engine.sync(deadline()); // what else failed
            expect_lost_node([&] { return engine.invoke(1, square, 2).get(deadline()); });
            expect_lost_node([&] { return engine.barrier(deadline()); });
            (void)engine.sync(deadline());
            EXPECT_EQ(good(engine.invoke(2 - engine.node(), square, 5).get(deadline())), 25);
            meet(engine);
        });
}

TEST_P(Departures, a_barrier_that_a_node_came_to_before_it_went_completes) {
    run_without_one([&](Channel& channel, const std::function<void()>& go) {
        Engine engine = open(channel);
        good(engine.barrier(deadline()));
        if (engine.node() == 1) {
            (void)engine.arrive();
            (void)engine.arrive();
            std::this_thread::sleep_for(20ms); // what tells of it is under way
            return go();
        }
        if (engine.node() == 2) {
            EXPECT_TRUE(engine.wait_until([&] { return channel.lost(1); }, deadline()));
        }
        const BarrierToken first = engine.arrive(), second = engine.arrive(), third = engine.arrive();
        good(engine.wait(first, deadline()));
        good(engine.wait(second, deadline()));
        expect_lost_node([&] { return engine.wait(third, deadline()); });
        meet(engine);
    });
}

TEST_P(Departures, the_memory_of_a_node_that_goes_is_lost_with_it) {
    run_without_one([&](Channel& channel, const std::function<void()>& go) {
        Handlers handlers;
        std::function<void()> task;
        const auto run_task = handlers.add("run_task", [&](Call&) { task(); });
        Engine engine = open(channel, std::move(handlers));
        engine::Memory memory = engine.memory();
        const auto words = good(memory.segment<std::uint64_t>(4));
        const auto place = good(memory.allocate<std::uint64_t>());
        words.local()[0] = 7;
        const bool was_near = memory.local(words.at(1)) != nullptr;
        good(engine.barrier(deadline()));
        if (engine.node() == 1) return go();
        const global_ptr<std::uint64_t> gone = words.at(1), its_heap(1, place.segment(), place.offset());
        std::uint64_t got = 0;
        expect_lost_node([&]() -> Result<std::uint64_t> {
            for (const Instant end = now() + 10s; now() < end;)
                if (auto value = memory.read(gone); !value) return value;
            return 0;
        });
        expect_lost_node([&] { return memory.read(its_heap); });
        expect_lost_node([&] { return memory.get(gone, std::span(&got, 1)); });
        expect_lost_node([&] { return memory.fetch_add(gone, 1); });
        expect_lost_node([&] { return memory.async().read(gone).get(deadline()); });
        EXPECT_EQ(memory.local(gone), nullptr);
        task = [&] {
            const auto expected = was_near ? ErrorCode::node_lost : ErrorCode::misuse;
            EXPECT_EQ(memory.read(gone).error().code(), expected);
            EXPECT_EQ(memory.fetch_add(gone, 1).error().code(), expected);
            task = nullptr;
        };
        good(engine.send(engine.node(), run_task));
        EXPECT_TRUE(engine.wait_until([&] { return task == nullptr; }, deadline()));
        // What only begins may fail at once, or tell sync().
        const auto synced = [&](Result<void> begun) { return begun ? engine.sync(deadline()) : begun; };
        expect_lost_node([&] { return synced(memory.write(gone, 1)); });
        expect_lost_node([&] { return synced(memory.start_get(gone, std::span(&got, 1))); });
        expect_lost_node([&] { return synced(memory.copy(gone, words.at(engine.node(), 1), 1)); });
        expect_lost_node([&] { return synced(memory.copy(words.at(engine.node()), gone, 1)); });
        EXPECT_EQ(good(memory.read(words.at(2 - engine.node()))), 7u);
        EXPECT_EQ(words.local()[1], 0u);
        meet(engine);
    });
}

/// Node 1 has no engine: messages come, and nobody handles them. It goes soon after both other nodes have sent.
void take_and_drop(Channel& channel) {
    std::array<bool, 3> has_sent{};
    Instant end = deadline();
    for (; now() < end; std::this_thread::yield()) {
        const auto note = [&](pm::Message& message) {
            has_sent.at(message.source()) = true;
            if (has_sent[0] && has_sent[2]) end = std::min(end, now() + 50ms);
        };
        channel.poll(note, pm::all_messages);
    }
}

TEST_P(Departures, the_thread_that_sent_to_a_node_that_goes_is_told_by_sync_and_no_other_thread) {
    for (const bool is_innocent_first : {true, false})
        run_without_one([&](Channel& channel, const std::function<void()>& go) {
            SCOPED_TRACE(is_innocent_first ? "the innocent thread syncs first" : "the thread that sent syncs first");
            if (channel.self() == 1) return take_and_drop(channel), go();
            Handlers handlers;
            const auto take = handlers.add("take", [](Call&, std::uint64_t) {});
            Engine engine = open(channel, std::move(handlers));
            loopback::OtherThread other;
            const auto sync_innocently = [&] {
                const auto synced = engine.sync(deadline());
                EXPECT_TRUE(synced) << synced.error().text();
            };
            other.run([&] { good(engine.send(1, take, std::uint64_t{1})); });
            if (is_innocent_first) sync_innocently();
            other.run([&] {
                expect_lost_node([&] { return engine.sync(deadline()); });
                good(engine.sync(deadline())); // told once
            });
            if (!is_innocent_first) sync_innocently();
            meet(engine);
        });
}

TEST_P(Departures, every_thread_that_sent_to_a_node_that_goes_is_told_by_its_own_sync) {
    run_without_one([&](Channel& channel, const std::function<void()>& go) {
        if (channel.self() == 1) return take_and_drop(channel), go();
        Handlers handlers;
        const auto take = handlers.add("take", [](Call&, std::uint64_t) {});
        Engine engine = open(channel, std::move(handlers));
        loopback::OtherThread other, another;
        for (loopback::OtherThread* const thread : {&other, &another})
            thread->run([&] { good(engine.send(1, take, std::uint64_t{1})); });
        good(engine.send(1, take, std::uint64_t{1}));
        for (loopback::OtherThread* const thread : {&another, &other})
            thread->run([&] { expect_lost_node([&] { return engine.sync(deadline()); }); });
        expect_lost_node([&] { return engine.sync(deadline()); });
        good(engine.sync(deadline()));
        meet(engine);
    });
}

/// And those in which nodes that talk over a network can be killed.
std::vector<World> worlds_with_deaths() {
    std::vector<World> all = worlds();
    for (World& world : conformance::worlds())
        if (world.name == "udp_processes" || world.name == "composite_processes") all.push_back(std::move(world));
    return all;
}

INSTANTIATE_TEST_SUITE_P(Worlds, Departures, testing::ValuesIn(worlds_with_deaths()),
                         [](const testing::TestParamInfo<World>& world) { return world.param.name; });

} // namespace
} // namespace kumi::engine_test
