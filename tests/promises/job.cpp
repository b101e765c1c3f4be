// What job/job.hpp promises: each test is one promise, in every world.

#include "promises/adopted.hpp"
#include "skips.hpp"

#include "kumi/functions.hpp"

#include <cstdlib>
#include <optional>
#include <string>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

/// Tests have jobs of their nodes: what they use is declared before the job.
class JobPromises : public EngineTest {
protected:
    template <class Body>
    static void run_job(Node nodes, Body&& body) {
        Assembly assembly(nodes);
        run(nodes, [&](Channel& channel) { body(channel, assembly); });
    }
};

TEST(JobPromise, started_by_hand_it_is_a_job_of_one_node_and_a_process_joins_once) {
    const auto join_twice = [] {
        ::unsetenv("KUMI_JOB");
        int handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        auto job = Job::join(std::move(handlers));
        if (!job || job->nodes() != 1 || job->node() != 0) std::_Exit(2);
        const auto again = Job::join();
        if (again || again.error().code() != ErrorCode::misuse) std::_Exit(3);
        if (!job->send(0, take) || !job->sync() || handled != 1 || !job->barrier()) std::_Exit(4);
        std::_Exit(0);
    };
#if defined(KUMI_THREAD_SANITIZER)
    KUMI_SKIP(skips::not_under_tsan); // a process that was forked starts no threads there
#endif
    EXPECT_EXIT(join_twice(), testing::ExitedWithCode(0), "");
}

TEST_P(JobPromises, a_job_knows_its_node_its_nodes_its_host_and_its_channel) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        Job job = good(join(assembly, channel));
        EXPECT_EQ(job.node(), channel.self());
        EXPECT_EQ(job.nodes(), 2u);
        EXPECT_EQ(job.host(), "here");
        good(job.send(1 - job.node(), Bytes()));
        good(job.barrier(deadline()));
        EXPECT_GE(job.channel().sent(1 - job.node()).messages, 1u);
        good(job.barrier(deadline()));
    });
}

TEST_P(JobPromises, nodes_that_do_not_have_the_same_handlers_are_all_told_which) {
    run_job(3, [](Channel& channel, Assembly& assembly) {
        const bool is_odd = channel.self() == 1;
        Handlers names, parameters, functions, twice;
        names.add(is_odd ? "odd" : "other", [](Call&) {});
        if (is_odd) parameters.add("take", [](Call&, std::int32_t) {});
        else parameters.add("take", [](Call&, std::int64_t) {});
        if (is_odd) functions.function("ask", [](int) { return 1; });
        else functions.function("ask", [](int) { return 1.0; });
        twice.add("take", [](Call&) {});
        twice.add("take", [](Call&) {});
        expect_code(join(assembly, channel, std::move(names)), ErrorCode::misuse, {"handler o", "same handlers"});
        expect_code(join(assembly, channel, std::move(parameters)), ErrorCode::misuse, {"take", "same handlers"});
        expect_code(join(assembly, channel, std::move(functions)), ErrorCode::misuse, {"ask", "same handlers"});
        expect_code(join(assembly, channel, std::move(twice)), ErrorCode::misuse, {"take"});
        Job job = good(join(assembly, channel)); // the channel is as good as before
        good(job.barrier(deadline()));
    });
}

TEST_P(JobPromises, the_order_in_which_handlers_are_added_does_not_matter) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        std::atomic<int> ones{0}, twos{0};
        Handlers handlers;
        std::optional<Handler<int>> one;
        std::optional<Handler<double>> two;
        std::optional<Function<int()>> three;
        std::optional<Function<int()>> four;
        const auto add_first = [&] {
            one = handlers.add("one", [&](Call&, int) { ++ones; });
            three = handlers.function("three", [] { return 3; });
        };
        if (channel.self() == 0) add_first();
        two = handlers.add("two", [&](Call&, double) { ++twos; });
        four = handlers.function("four", [] { return 4; });
        if (channel.self() == 1) add_first();
        Job job = good(join(assembly, channel, std::move(handlers)));
        const Node other = 1 - job.node();
        good(job.send(other, *one, 1));
        good(job.send(other, *two, 1.5));
        EXPECT_EQ(good(job.invoke(other, *three).get(deadline())), 3);
        EXPECT_EQ(good(job.invoke(other, *four).get(deadline())), 4);
        EXPECT_TRUE(job.wait_until([&] { return ones == 1 && twos == 1; }, deadline()));
        good(job.barrier(deadline()));
    });
}

TEST_P(JobPromises, no_handler_runs_before_the_program_has_its_job) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        std::optional<Job> job;
        Instant joined{};
        job.emplace(good(join(assembly, channel, std::move(handlers))));
        joined = now();
        if (job->node() == 0) {
            for (int i = 0; i < 10; ++i) good(job->send(1, take));
            job->flush();
        } else {
            for (; now() < joined + 60ms; std::this_thread::sleep_for(1ms)) {
                const int seen = handled;
                if (now() < joined + 95ms) {
                    EXPECT_EQ(seen, 0);
                }
            }
            // In the background, 100 ms after join() has returned; this thread calls nothing.
            for (const Instant end = deadline(); handled < 10 && now() < end;) std::this_thread::sleep_for(1ms);
            EXPECT_EQ(handled, 10);
        }
        good(job->barrier(deadline()));
    });
}

TEST_P(JobPromises, a_handler_reaches_its_job_wherever_the_program_has_moved_it) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        std::atomic<int> answers{0};
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call) { good(call.job().send(call.source(), answer)); });
        Job first = good(join(assembly, channel, std::move(handlers)));
        good(first.barrier(deadline()));
        good(first.send(1 - first.node(), ask));
        Job job = std::move(first);
        good(job.send(1 - job.node(), ask));
        EXPECT_TRUE(job.wait_until([&] { return answers == 2; }, deadline()));
        good(job.barrier(deadline()));
    });
}

TEST_P(JobPromises, what_was_sent_before_a_job_ends_still_arrives) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        constexpr int count = 200;
        std::atomic<int> handled{0}, heard{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, int number) { EXPECT_EQ(number, handled++); });
        Job job = good(join(assembly, channel, std::move(handlers)));
        job.on_message([&](Message&) { ++heard; });
        if (job.node() == 0) {
            for (int i = 0; i < count; ++i) {
                good(job.send(1, take, i));
                good(job.send(1, bytes_of(i)));
            }
            return;
        }
        EXPECT_TRUE(job.wait_until([&] { return handled == count && heard == count; }, deadline()))
            << handled << " and " << heard;
    });
}

TEST_P(JobPromises, what_the_environment_says_of_groups_goes_before_what_the_adopter_says) {
    for (const char* const said : {"", "way=circulant", "overhead=1"}) {
        ::setenv("KUMI_GROUPS", said, 1); // before there are threads of nodes
        run_job(2, [&](Channel& channel, Assembly& assembly) {
            Job::Adoption adoption;
            adoption.groups.costs = group::Costs{.overhead_us = 3, .latency_us = 9, .us_per_byte = 0.5};
            adoption.groups.way = group::Way::binomial;
            adoption.topology = group::Topology({{0, 0}});
            auto job = join(assembly, channel, {}, std::move(adoption));
            if (std::string_view(said) == "overhead=1") {
                return expect_code(job, ErrorCode::misuse, {"KUMI_GROUPS", "all three"});
            }
            const bool is_said = *said != '\0';
            EXPECT_EQ(good(std::move(job)).groups().choice(100, 2).way,
                      is_said ? group::Way::circulant : group::Way::binomial);
        });
    }
    ::unsetenv("KUMI_GROUPS");
}

// ---- plain messages

TEST_P(JobPromises, a_plain_message_of_any_size_and_of_many_pieces_arrives_whole_and_in_order) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        std::vector<std::size_t> heard;
        Job job = good(join(assembly, channel));
        job.on_message([&](Message& message) {
            EXPECT_LT(message.source(), 2u);
            EXPECT_TRUE(is_pattern(message.bytes(), message.bytes().size()));
            if (message.source() != job.node()) heard.push_back(message.bytes().size());
        });
        const std::size_t most = std::min<std::size_t>(job.channel().traits().message_bytes_max / 2, 60'000);
        const std::vector<std::size_t> sizes{0, 1, 7, 1000, most};
        for (const std::size_t size : sizes) {
            const auto content = pattern(size, size);
            const Bytes all = content;
            for (const Node to : {Node{0}, Node{1}})
                good(job.send(to, all.first(size / 3), all.subspan(size / 3, size / 3), all.subspan(size / 3 * 2)));
        }
        EXPECT_TRUE(job.wait_until([&] { return heard.size() == sizes.size(); }, deadline()));
        EXPECT_EQ(heard, sizes);
        const std::size_t too_much = job.channel().traits().message_bytes_max + 1;
        const Bytes large(reinterpret_cast<const std::byte*>(&job), too_much); // refused before it is looked at
        expect_code(job.send(1 - job.node(), large), ErrorCode::too_large);
        expect_code(job.send(2, Bytes()), ErrorCode::not_found);
        expect_code(job.send(~Node{0}, Bytes()), ErrorCode::not_found);
        good(job.barrier(deadline()));
    });
}

TEST_P(JobPromises, messages_wait_until_on_message_is_set_and_it_may_replace_and_remove_itself) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        std::atomic<int> first{0}, second{0};
        Job job = good(join(assembly, channel));
        const Node other = 1 - job.node();
        for (int i = 0; i < 4; ++i) good(job.send(other, bytes_of(i)));
        good(job.barrier(deadline())); // they are there, and wait
        job.on_message([&](Message&) {
            ++first;
            job.on_message([&](Message&) {
                if (++second == 2) job.on_message({});
            });
        });
        EXPECT_TRUE(job.wait_until([&] { return second == 2; }, deadline()));
        EXPECT_FALSE(job.wait_until([&] { return first + second > 3; }, now() + 5ms)) << "the last one waits again";
        job.on_message([&](Message& message) {
            int number = 0;
            EXPECT_TRUE(read_value(message.bytes(), number));
            EXPECT_EQ(number, 3);
            ++first;
        });
        EXPECT_TRUE(job.wait_until([&] { return first == 2; }, deadline()));
        good(job.barrier(deadline()));
    });
}

TEST_P(JobPromises, what_on_message_throws_is_returned_by_the_next_sync_of_its_node) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        std::atomic<int> heard{0};
        Job job = good(join(assembly, channel));
        job.on_message([&](Message&) {
            if (++heard == 1) throw std::runtime_error("not today");
            if (heard == 2) throw 5;
        });
        good(job.barrier(deadline()));
        const Node other = 1 - job.node();
        for (int i = 1; i <= 3; ++i) {
            good(job.send(other, bytes_of(i)));
            EXPECT_TRUE(job.wait_until([&] { return heard == i; }, deadline()));
            const auto told = job.sync(deadline());
            if (i == 1) expect_code(told, ErrorCode::refused, {"on_message", "not today"});
            else if (i == 2) expect_code(told, ErrorCode::refused, {"on_message"});
            else good(told);
            good(job.barrier(deadline()));
        }
    });
}

TEST_P(JobPromises, a_message_to_a_node_that_takes_none_waits_and_to_this_node_itself_is_refused_in_the_end) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        std::atomic<int> heard{0};
        Job job = good(join(assembly, channel));
        const std::vector<std::byte> content(4000);
        // Nobody can take it while this thread waits: it would wait for ever.
        std::optional<Error> refused;
        int sent = 0;
        for (; sent < 10'000 && !refused; ++sent)
            if (const auto done = job.send(job.node(), Bytes(content)); !done) refused = done.error();
        EXPECT_TRUE(refused);
        if (refused) {
            EXPECT_EQ(refused->code(), ErrorCode::misuse) << refused->text();
        }
        job.on_message([&](Message&) { ++heard; });
        EXPECT_TRUE(job.wait_until([&] { return heard == sent - 1; }, deadline())) << heard << " of " << sent - 1;
        good(job.barrier(deadline()));
    });
}

// ---- parts of a job

TEST_P(JobPromises, a_job_has_an_engine_memory_and_groups) {
    run_job(3, [](Channel& channel, Assembly& assembly) {
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call& call) {
            EXPECT_EQ(call.job().nodes(), 3u);
            ++handled;
        });
        const auto where = handlers.function("where", [self = channel.self()] { return self; });
        const auto add = handlers.function("add", [](Node a, Node b) { return a + b; });
        Job job = good(join(assembly, channel, std::move(handlers)));
        const auto words = good(job.memory().segment<std::uint64_t>(3));
        good(job.memory().write(words.at((job.node() + 1) % 3), 5));
        good(job.sync(deadline()));
        Flag flag = 0;
        good(job.start_sync(flag));
        good(job.memory().wait(flag, 1, deadline()));
        good(job.barrier(deadline()));
        EXPECT_EQ(words[0], 5u);
        auto all = job.invoke_all(where);
        for (Node node = 0; node < 3; ++node) EXPECT_EQ(good(all[node].get(deadline())), node);
        if (job.node() == 0) {
            EXPECT_EQ(good(job.multicast({1, 2}, take).get(deadline())), Set());
            EXPECT_EQ(good(job.multicast({1, 2}, 7, Bytes()).get(deadline())), Set());
            const std::uint64_t value = 6;
            EXPECT_EQ(good(job.multicast({1, 2}, words.here(1), {&value, 1}).get(deadline())), Set());
            EXPECT_EQ(good(job.gather({1, 2}, where).get(deadline())), (group::Gathered<Node>{{1, 1}, {2, 2}}));
            EXPECT_EQ(good(job.reduce({1, 2}, add, where).get(deadline())).value, 3u);
        } else {
            const auto arrival = good(job.next_multicast(deadline()));
            EXPECT_EQ(arrival.tag, 7u);
            EXPECT_EQ(good(good(job.group_of(arrival)).allreduce(1, group::sum, deadline())), 2);
            EXPECT_EQ(handled, 1) << "what the master sent before";
        }
        EXPECT_EQ(good(good(job.group({0, 1, 2})).allreduce(1, group::sum, deadline())), 3);
        EXPECT_EQ(job.world().set(), Set::range(0, 3));
        EXPECT_EQ(good(job.world().allreduce(job.node(), group::sum, deadline())), 3u);
        group::Group here = job.host_group();
        EXPECT_TRUE(here.set().contains(job.node()));
        EXPECT_EQ(good(here.allreduce(1u, group::sum, deadline())), here.size());
        good(job.barrier(deadline()));
        EXPECT_EQ(words[1], job.node() == 0 ? 0u : 6u);
        const auto token = job.arrive();
        good(job.wait(token, deadline()));
        EXPECT_TRUE(job.test(token));
        const std::vector<Node> members{0, 1, 2};
        good(job.wait(good(job.arrive(members)), deadline()));
    });
}

TEST_P(JobPromises, a_job_without_a_background_works_while_its_threads_call) {
    run_job(2, [](Channel& channel, Assembly& assembly) {
        int handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        const auto seven = handlers.function("seven", [] { return 7; });
        Job::Adoption adoption;
        adoption.may_use_background = false;
        Job job = good(join(assembly, channel, std::move(handlers), std::move(adoption)));
        good(job.send(1 - job.node(), take));
        EXPECT_EQ(good(job.invoke(1 - job.node(), seven).get(deadline())), 7);
        for (const Instant end = deadline(); handled == 0 && now() < end;) job.poll();
        EXPECT_EQ(handled, 1);
        good(job.barrier(deadline()));
    });
}

KUMI_ENGINE_WORLDS(JobPromises);

} // namespace
} // namespace kumi::engine_test
