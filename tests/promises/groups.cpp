// What group/groups.hpp promises: each test is one promise, in every world.

#include "group/node.hpp"

#include "kumi/group/group.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

namespace kumi::group_test {
namespace {

using group::Group;
using namespace std::chrono_literals;

class GroupsPromises : public GroupTest {};

TEST_P(GroupsPromises, a_multicast_calls_its_handler_on_each_member_with_the_master_as_source) {
    run(4, [](Channel& channel) {
        Member member;
        std::atomic<int> handled{0};
        const auto take = member.handlers.add("take", [&](Call& call, int number, Bytes content) {
            EXPECT_EQ(call.source(), 1u);
            EXPECT_EQ(number, 5);
            EXPECT_TRUE(is_pattern(content, 9));
            ++handled;
        });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        if (channel.self() == 1) {
            for (const Set& to : {Set{0, 2, 3}, Set{1}, Set{1, 3}}) // with the master or without
                EXPECT_EQ(good(member.groups->multicast(to, take, 5, Bytes(pattern(3000, 9))).get(deadline())), Set());
        }
        settle(*member.engine);
        EXPECT_EQ(handled, channel.self() == 1 || channel.self() == 3 ? 2 : 1);
        good(member.engine->barrier(deadline()));
    });
}

TEST_P(GroupsPromises, what_cannot_be_is_refused_with_the_code_for_it) {
    run(2, [](Channel& channel) {
        Member member;
        const auto take = member.handlers.add("take", [](Call&, Bytes) {});
        const auto seven = member.handlers.function("seven", [] { return 7; });
        member.open(channel);
        auto& groups = *member.groups;
        expect_code(groups.multicast({}, take, Bytes{}).get(deadline()), ErrorCode::misuse, {"empty set"});
        expect_code(groups.multicast({0, 2}, take, Bytes{}).get(deadline()), ErrorCode::not_found,
                    {"multicast to 0,2", "no node 2", "0 to 1"});
        expect_code(groups.multicast({1, 7}, take, Bytes{}).get(deadline()), ErrorCode::not_found,
                    {"multicast to 1,7", "no node 7", "0 to 1"});
        expect_code(groups.multicast({0, ~Node{0} >> 8}, 1, Bytes{}).get(deadline()), ErrorCode::not_found);
        // Refused before it is looked at.
        const Bytes too_much(reinterpret_cast<const std::byte*>(&member), Groups::content_bytes_max + 1);
        expect_code(groups.multicast({1}, take, too_much).get(deadline()), ErrorCode::too_large,
                    {"multicast of", "to 1", "largest"});
        expect_code(groups.gather({}, seven).get(deadline()), ErrorCode::misuse);
        expect_code(groups.gather({5}, seven).get(deadline()), ErrorCode::not_found);
        expect_code(groups.group({}), ErrorCode::misuse);
        expect_code(groups.group({channel.self() ^ 1}), ErrorCode::misuse, {"no member"});
        expect_code(groups.group({0, 1, 2}), ErrorCode::not_found, {"no node 2"});
        EXPECT_EQ(good(groups.multicast({0, 1}, take, Bytes{}).get(deadline())), Set());
        settle(*member.engine);
        EXPECT_EQ(groups.kept(), 0u);
    });
}

TEST_P(GroupsPromises, one_without_a_handler_is_taken_by_next_with_all_that_belongs_to_it) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        auto& groups = *member.groups;
        if (channel.self() == 2) {
            auto first = groups.multicast({0, 1}, 11, Bytes(pattern(10, 1)));
            auto second = groups.multicast({1}, 12, Bytes());
            EXPECT_EQ(good(first.get(deadline())), Set());
            EXPECT_EQ(good(second.get(deadline())), Set());
        } else {
            const Arrival first = good(groups.next(deadline()));
            EXPECT_EQ(first.master, 2u);
            EXPECT_EQ(first.tag, 11u);
            EXPECT_TRUE(is_pattern(first.content, 1));
            EXPECT_EQ(first.members, (Set{0, 1}));
            if (channel.self() == 1) {
                const Arrival second = good(groups.next(deadline()));
                EXPECT_EQ(second.tag, 12u);
                EXPECT_TRUE(second.content.empty());
                EXPECT_GT(second.sequence, first.sequence);
            }
        }
        settle(*member.engine);
    });
}

TEST_P(GroupsPromises, next_ends_at_its_deadline_and_is_refused_in_a_handler) {
    run(2, [](Channel& channel) {
        Member member;
        std::atomic<bool> was_refused{false};
        const auto misbehave = member.handlers.add("misbehave", [&](Call&) {
            expect_code(member.groups->next(), ErrorCode::misuse, {"handler"});
            was_refused = true;
        });
        member.open(channel);
        expect_code(member.groups->next(now() + 10ms), ErrorCode::timed_out);
        expect_code(member.groups->next(now() - 1s), ErrorCode::timed_out);
        good(member.engine->send(channel.self(), misbehave));
        EXPECT_TRUE(member.engine->wait_until([&] { return was_refused.load(); }, deadline()));
        good(member.engine->barrier(deadline())); // one that waits already is taken in a handler, too
        if (channel.self() == 0) {
            EXPECT_EQ(good(member.groups->multicast({1}, 3, Bytes()).get(deadline())), Set());
        } else {
            EXPECT_EQ(good(member.groups->next(deadline())).tag, 3u) << "it is not lost to those that were refused";
        }
        settle(*member.engine);
    });
}

TEST_P(GroupsPromises, a_handler_may_begin_multicasts_but_not_wait_for_them) {
    run(3, [](Channel& channel) {
        Member member;
        std::atomic<int> handled{0};
        std::optional<Handler<int>> take;
        take = member.handlers.add("take", [&](Call&, int depth) {
            ++handled;
            if (depth == 0) return;
            auto next = member.groups->multicast(Set::range(0, 3), *take, depth - 1);
            expect_code(next.get(), ErrorCode::misuse, {"handler"});
        });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        if (channel.self() == 0) {
            EXPECT_EQ(good(member.groups->multicast({0, 1, 2}, *take, 2).get(deadline())), Set());
        }
        EXPECT_TRUE(member.engine->wait_until([&] { return handled == 1 + 3 + 9; }, deadline())) << handled;
        settle(*member.engine);
    });
}

TEST_P(GroupsPromises, one_whose_future_is_dropped_or_timed_out_arrives_all_the_same_and_nothing_of_it_is_kept) {
    run(3, [](Channel& channel) {
        Member member;
        std::atomic<int> handled{0};
        const auto take = member.handlers.add("take", [&](Call&) { ++handled; });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        if (channel.self() == 0) {
            { const auto dropped = member.groups->multicast({1, 2}, take); }
            auto late = member.groups->multicast({1, 2}, take);
            (void)late.get(now());
            auto cancelled = member.groups->multicast({1, 2}, take);
            cancelled.cancel();
        } else {
            EXPECT_TRUE(member.engine->wait_until([&] { return handled == 3; }, deadline())) << handled;
        }
        settle(*member.engine);
        EXPECT_TRUE(member.engine->wait_until([&] { return member.groups->kept() == 0; }, deadline()));
        good(member.engine->barrier(deadline()));
    });
}

TEST_P(GroupsPromises, a_store_goes_to_the_same_place_on_each_member_whatever_node_is_named) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        auto memory = member.engine->memory();
        const auto words = good(memory.segment<std::uint64_t>(20));
        const auto flags = good(memory.segment<Flag>(1));
        if (channel.self() == 0) {
            std::vector<std::uint64_t> values(10, 6);
            auto done = member.groups->multicast({0, 2}, words.at(1, 5), values, Notice::set(flags.at(1), 4));
            std::ranges::fill(values, 9); // the source may change now
            EXPECT_EQ(good(done.get(deadline())), Set());
            expect_code(member.groups->multicast({1}, words.at(0, 11), values).get(deadline()), ErrorCode::not_found);
            expect_code(member.groups->multicast({1}, global_ptr<std::uint64_t>(1, 99, 0), values).get(deadline()),
                        ErrorCode::not_found);
            expect_code(member.groups->multicast({1}, good(memory.allocate<std::uint64_t>(10)), values).get(deadline()),
                        ErrorCode::misuse, {"segment"});
        }
        settle(*member.engine);
        const bool is_member = channel.self() != 1;
        for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(words[i], is_member && i >= 5 && i < 15 ? 6u : 0u) << i;
        EXPECT_EQ(load_flag(flags[0]), is_member ? 4u : 0u);
        good(member.engine->barrier(deadline()));
    });
}

TEST_P(GroupsPromises, gather_has_the_answers_by_node_and_an_error_if_a_function_throws) {
    run(4, [](Channel& channel) {
        Member member;
        const int self = static_cast<int>(channel.self());
        const auto twice = member.handlers.function("twice", [self](int more) { return 2 * self + more; });
        const auto fail = member.handlers.function("fail", [self]() -> int {
            if (self == 2) throw std::runtime_error("not today");
            return self;
        });
        const auto add = member.handlers.function("add", [](int a, int b) { return a + b; });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        if (channel.self() == 3) {
            const group::Gathered<int> expected{{0, 1}, {2, 5}, {3, 7}};
            EXPECT_EQ(good(member.groups->gather({3, 0, 2}, twice, 1).get(deadline())), expected);
            const auto reduced = good(member.groups->reduce({0, 1, 2}, add, twice, 1).get(deadline()));
            EXPECT_EQ(reduced.value, 9);
            EXPECT_TRUE(reduced.missing.empty());
            expect_error(member.groups->gather({0, 1, 2}, fail).get(deadline()), {"node 2", "not today"});
            expect_error(member.groups->reduce({0, 1, 2}, add, fail).get(deadline()), {"node 2", "not today"});
        }
        settle(*member.engine);
    });
}

/// Throws what is no std::exception: when it is written, or when it is read.
struct Stubborn {
    int how = 0;
    template <class Archive>
    void save(Archive& archive) const {
        if (how == 1) throw 5;
        archive(how);
    }
    template <class Archive>
    void load(Archive& archive) {
        archive(how);
        if (how == 2) throw 5;
    }
};

TEST_P(GroupsPromises, gather_of_what_cannot_be_written_or_read_is_an_error_that_names_function_and_node) {
    run(2, [](Channel& channel) {
        Member member;
        const auto give = member.handlers.function("give", [](int how) { return Stubborn{how}; });
        const auto take = member.handlers.function("take", [](const Stubborn& one) { return one.how; });
        const auto keep = member.handlers.function("keep", [](Stubborn a, Stubborn) { return a; });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        auto& groups = *member.groups;
        EXPECT_EQ(good(groups.gather({0, 1}, give, 0).get(deadline())).size(), 2u);
        expect_code(groups.gather({1}, give, 2).get(deadline()), ErrorCode::refused,
                    {"function give on node 1", "what was thrown is no std::exception"});
        expect_code(groups.gather({1}, give, 1).get(deadline()), ErrorCode::refused, {"give", "no std::exception"});
        expect_code(groups.reduce({1}, keep, give, 2).get(deadline()), ErrorCode::refused,
                    {"function give on node 1", "what was thrown is no std::exception"});
        expect_code(groups.gather({0, 1}, take, Stubborn{1}).get(deadline()), ErrorCode::misuse,
                    {"function take on 0-1: its arguments cannot be sent: what was thrown is no std::exception"});
        settle(*member.engine);
    });
}

TEST_P(GroupsPromises, the_members_of_a_multicast_are_a_group_apart_from_all_others) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        auto& groups = *member.groups;
        Group all = good(groups.group(Set::range(0, 3)));
        auto under_way = all.start().allreduce(1, group::sum); // a call on the same nodes
        std::optional<Future<Set>> first, second;
        if (channel.self() == 0) {
            first = groups.multicast({0, 1, 2}, 1, Bytes());
            second = groups.multicast({0, 1, 2}, 2, Bytes());
        }
        const Arrival one = good(groups.next(deadline())), two = good(groups.next(deadline()));
        Group of_one = good(groups.group_of(one)), of_two = good(groups.group_of(two));
        // Each node has another order: were they one group, sizes would not fit.
        auto a = of_two.start().allreduce(10, group::sum);
        auto b = of_one.start().allreduce(std::int64_t{100}, group::sum);
        EXPECT_EQ(good(a.get(deadline())), 30);
        EXPECT_EQ(good(b.get(deadline())), 300);
        EXPECT_EQ(good(under_way.get(deadline())), 3);
        Arrival forged = one;
        forged.members = Set{channel.self() == 0 ? Node{1} : Node{0}};
        expect_code(groups.group_of(forged), ErrorCode::misuse, {"no member"});
        settle(*member.engine);
    });
}

TEST_P(GroupsPromises, a_member_that_has_left_is_missing_and_all_others_get_the_multicast) {
    run(4, [](Channel& channel) {
        std::atomic<int> handled{0}; // outlives the member: node 2 may get some while it leaves
        Member member;
        const auto take = member.handlers.add("take", [&](Call&) { ++handled; });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        if (channel.self() == 2) return;
        if (channel.self() == 0) {
            int complete = 0; // before its loss is known it may still take some
            for (const Instant end = deadline(); now() < end; ++complete) {
                const Set missing = good(member.groups->multicast({1, 2, 3}, take).get(deadline()));
                if (missing == Set{2}) break;
                EXPECT_EQ(missing, Set());
            }
            EXPECT_EQ(good(member.groups->multicast({1, 2, 3}, take).get(deadline())), Set{2});
            // What was sent to node 2 may have been on its way: sync() tells of the loss, too, and of nothing else.
            if (const auto told = member.engine->sync(deadline()); !told)
                expect_code(told, ErrorCode::node_lost, {"node 2"});
            good(member.engine->sync(deadline()));
        } else {
            EXPECT_TRUE(member.engine->wait_until([&] { return handled >= 2; }, deadline()));
        }
        good(member.engine->wait(good(member.engine->arrive(std::vector<Node>{0, 1, 3})), deadline()));
    });
}

TEST_P(GroupsPromises, costs_and_a_way_that_were_set_are_used_but_for_what_is_too_large_for_the_way) {
    run(2, [](Channel& channel) {
        Member member;
        const group::Costs costs{.overhead_us = 3, .latency_us = 9, .us_per_byte = 0.5};
        std::atomic<int> handled{0};
        const auto take = member.handlers.add("take", [&](Call&, Bytes content) {
            EXPECT_TRUE(is_pattern(content, 1));
            ++handled;
        });
        member.open(channel, {}, Topology({{0, 0}}), costs, group::Way::binomial);
        EXPECT_EQ(member.groups->costs().latency_us, 9);
        EXPECT_EQ(member.groups->costs().origin, group::Origin::given);
        EXPECT_EQ(member.groups->choice(100, 2).way, group::Way::binomial);
        EXPECT_EQ(member.groups->topology().levels(), 0u);
        if (channel.self() == 0) {
            const auto large = pattern(1'000'000, 1); // more than a message holds
            EXPECT_EQ(good(member.groups->multicast({0, 1}, take, Bytes(large)).get(deadline())), Set());
        }
        settle(*member.engine);
        EXPECT_EQ(handled, 1);
        good(member.engine->barrier(deadline()));
    });
}

TEST_P(GroupsPromises, after_sync_it_is_everywhere) {
    run(6, [](Channel& channel) {
        Member member;
        member.open(channel);
        const Set all = Set::range(0, channel.nodes());
        const auto memory = good(member.engine->memory().segment<std::byte>(100'000));
        for (std::uint64_t round = 1; round <= 10; ++round) {
            if (channel.self() == round % 6) {
                const auto content = pattern(memory.size(), round);
                auto done = member.groups->multicast(all, memory.at(0), content);
                good(member.engine->sync());
                EXPECT_TRUE(done.is_ready());
                std::vector<std::byte> got(memory.size());
                for (Node other = 0; other < 6; ++other) {
                    good(member.engine->memory().get(memory.at(other), got));
                    EXPECT_TRUE(is_pattern(got, round)) << "at node " << other;
                }
            }
            good(member.engine->barrier());
            EXPECT_TRUE(is_pattern(memory.local(), round));
            good(member.engine->barrier());
        }
    });
}

TEST_P(GroupsPromises, who_discards_is_left_alone_and_passes_it_on) {
    run(7, [](Channel& channel) {
        Member member;
        member.open(channel);
        const Set all = Set::range(0, channel.nodes());
        const auto memory = good(member.engine->memory().segment<std::byte>(100'000));
        const auto flags = good(member.engine->memory().segment<Flag>(1));
        for (std::uint64_t round = 1; round <= 8; ++round) {
            const bool discards = channel.self() != 0 && (channel.self() + round) % 3 != 0;
            member.groups->discard_stores(discards);
            std::ranges::fill(memory.local(), std::byte{0});
            good(member.engine->barrier());
            Future<Set> done;
            if (channel.self() == 0)
                done = member.groups->multicast(all, memory.at(0), pattern(memory.size(), round),
                                               Notice::set(flags.at(0), round));
            if (!discards) good(member.engine->memory().wait(flags[0], round, deadline()));
            if (channel.self() == 0) {
                EXPECT_TRUE(good(done.get(deadline())).empty());
            }
            settle(*member.engine);
            if (discards)
                EXPECT_TRUE(std::ranges::all_of(memory.local(), [](std::byte byte) { return byte == std::byte{0}; }));
            else EXPECT_TRUE(is_pattern(memory.local(), round));
            EXPECT_EQ(load_flag(flags[0]) == round, !discards);
            good(member.engine->barrier());
        }
    });
}

TEST_P(GroupsPromises, is_complete_when_it_was_taken_and_not_before) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        if (channel.self() == 0) {
            auto done = member.groups->multicast({1, 2}, 7, bytes_of(std::string_view("words")));
            EXPECT_FALSE(done.get(now() + std::chrono::milliseconds(20)));
            good(member.engine->barrier(deadline()));
            EXPECT_TRUE(good(done.get(deadline())).empty());
        } else {
            good(member.engine->barrier(deadline()));
            EXPECT_EQ(text_of(good(member.groups->next(deadline())).content), "words");
            expect_error(member.groups->next(now() + std::chrono::milliseconds(5)), {"no multicast", "time"});
        }
        settle(*member.engine);
    });
}

TEST_P(GroupsPromises, a_handler_that_throws_is_told_with_its_node_and_the_others_get_it) {
    run(5, [](Channel& channel) {
        Member member;
        int handled = 0;
        const auto fragile = member.handlers.add("fragile", [&](Call&, std::uint32_t) {
            if (channel.self() == 3) throw std::runtime_error("not today");
            ++handled;
        });
        member.open(channel);
        for (int round = 0; round < 3; ++round) {
            if (channel.self() == 1)
                expect_error(member.groups->multicast({0, 2, 3, 4}, fragile, 1u).get(deadline()),
                             {"multicast to 0,2-4", "node 3", "handler fragile threw", "not today"});
            good(member.engine->barrier(deadline()));
        }
        EXPECT_EQ(handled, channel.self() == 1 || channel.self() == 3 ? 0 : 3);
        settle(*member.engine);
    });
}

KUMI_ENGINE_WORLDS(GroupsPromises);

} // namespace
} // namespace kumi::group_test
