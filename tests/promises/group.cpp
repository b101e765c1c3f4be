// What group/group.hpp promises: each test is one promise, in every world.

#include "group/node.hpp"

#include "kumi/group/mail/mailbox.hpp"
#include "kumi/group/group.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>

namespace kumi::group_test {
namespace {

using group::Group;
using group::Order;
using namespace std::chrono_literals;

class GroupPromises : public GroupTest {};

using Numbers = std::vector<std::int64_t>;

TEST_P(GroupPromises, neighbours_exchange_values_and_at_the_ends_there_is_nobody) {
    run_group(3, [](Member&, Group& group) {
        const Node rank = group.rank(), last = group.size() - 1;
        const auto next = rank == last ? group::no_rank : rank + 1, before = rank == 0 ? group::no_rank : rank - 1;
        for (int round = 0; round < 3; ++round) {
            Numbers mine{rank + 10, round}, theirs{-1, -1};
            good(group.sendrecv(next, mine, before, theirs, deadline()));
            EXPECT_EQ(theirs, rank == 0 ? (Numbers{-1, -1}) : (Numbers{rank + 9, round}));
        }
        Numbers mine(rank + 1u, rank), theirs((rank + last) % group.size() + 1u);
        good(group.start()
                 .sendrecv((rank + 1) % group.size(), mine, (rank + last) % group.size(), theirs, deadline())
                 .get(deadline()));
        EXPECT_EQ(theirs, Numbers(theirs.size(), (rank + last) % group.size())) << "in a circle, of different sizes";
        Numbers own(1);
        good(group.sendrecv(rank, Numbers{rank + 5}, rank, own, deadline()));
        EXPECT_EQ(own[0], rank + 5);
        expect_code(group.sendrecv(3, mine, group::no_rank, own, deadline()), ErrorCode::not_found,
                    {"no rank 3", "0 to 2"}); // and the call is not made
        expect_code(group.start().sendrecv(rank, mine, group::no_rank, own).get(deadline()), ErrorCode::misuse,
                    {"itself"});
        good(group.barrier(deadline()));
    });
}

TEST_P(GroupPromises, two_roots_of_a_broadcast_are_blamed_though_the_next_call_finds_them) {
    run_group(2, [](Member&, Group& group) {
        int step = 1;
        good(group.broadcast(group.rank(), step, deadline())); // a root does not wait
        // A barrier does not receive what a root has sent; but the other node may be ahead, and tell.
        const auto arrived = group.barrier(deadline());
        if (!arrived) good(group.barrier(deadline())); // the same one
        const auto summed = group.allreduce(step, group::sum, deadline());
        expect_error(arrived ? Result<void>(summed.error()) : arrived,
                     {"has called broadcast with root", "before was broadcast with root", "one of the roots is wrong"});
    });
}

TEST_P(GroupPromises, one_value_is_sent_as_an_array_of_one_is) {
    run_group(3, [](Member&, Group& group) {
        const int rank = static_cast<int>(group.rank());
        const Node next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
        int step = rank == 1 ? 7 : 0, theirs = -1, sum = -1;
        good(group.broadcast(1, step, deadline()));
        EXPECT_EQ(step, 7);
        good(group.sendrecv(next, rank, before, theirs, deadline()));
        EXPECT_EQ(theirs, static_cast<int>(before));
        Numbers all(3);
        good(group.allgather(long{rank} * 10, all, deadline()));
        EXPECT_EQ(all, (Numbers{0, 10, 20}));
        long mine = -1;
        good(group.scatter(2, all, mine, deadline()));
        EXPECT_EQ(mine, 10 * rank);
        good(group.reduce(2, rank, sum, group::sum, deadline()));
        EXPECT_EQ(sum, rank == 2 ? 3 : -1);
        good(group.start().broadcast(0, step, deadline()).get(deadline()));
    });
}

TEST_P(GroupPromises, alltoallv_into_arrays_of_the_program_takes_what_fits_exactly) {
    run_group(3, [](Member&, Group& group) {
        const Node rank = group.rank();
        std::vector<Numbers> parts, rooms;
        for (Node other = 0; other < 3; ++other) {
            parts.emplace_back(rank + 2 * other, 100 * rank + other);
            rooms.emplace_back(other + 2 * rank);
        }
        good(group.alltoallv(parts, rooms, deadline()));
        for (Node other = 0; other < 3; ++other)
            EXPECT_EQ(rooms[other], Numbers(other + 2 * rank, 100 * other + rank)) << other;
        for (Numbers& room : rooms) std::ranges::fill(room, 0);
        good(group.start().alltoallv(parts, rooms, deadline()).get(deadline()));
        for (Node other = 0; other < 3; ++other)
            EXPECT_EQ(rooms[other], Numbers(other + 2 * rank, 100 * other + rank)) << other;
        if (rank == 1) rooms[2].resize(1);
        const auto done = group.alltoallv(parts, rooms, deadline());
        if (rank == 1) expect_error(done, {"alltoallv", "node 2", "32 bytes", "8 bytes"});
    });
}

TEST_P(GroupPromises, an_allreduce_of_values_may_return_them) {
    run_group(3, [](Member&, Group& group) {
        const Numbers mine{group.rank(), 1, -5};
        EXPECT_EQ(good(group.allreduce(mine, group::sum, deadline())), (Numbers{3, 3, -15}));
        EXPECT_EQ(good(group.allreduce(std::array<int, 2>{1, 2}, group::max, deadline())), (std::vector<int>{1, 2}));
        EXPECT_TRUE(good(group.allreduce(Numbers(), group::sum, deadline())).empty());
    });
}

TEST_P(GroupPromises, every_call_gives_each_member_what_the_header_says) {
    run_group(3, [](Member&, Group& group) {
        const auto rank = static_cast<std::int64_t>(group.rank());
        EXPECT_EQ(group.size(), 3u);
        EXPECT_EQ(group.set(), Set::range(0, 3));
        for (Node root = 0; root < 3; ++root) {
            const bool is_root = group.rank() == root;
            Numbers values{is_root ? 7 : 0, is_root ? 8 : 0};
            good(group.broadcast(root, values, deadline()));
            EXPECT_EQ(values, (Numbers{7, 8}));
            Numbers result(is_root ? 2 : 0), mine{rank, 1};
            good(group.reduce(root, mine, result, group::sum, deadline()));
            EXPECT_EQ(result, is_root ? (Numbers{3, 3}) : Numbers());
            Numbers all(is_root ? 6 : 0);
            good(group.gather(root, mine, all, deadline()));
            EXPECT_EQ(all, is_root ? (Numbers{0, 1, 1, 1, 2, 1}) : Numbers());
            Numbers part(2);
            good(group.scatter(root, all, part, deadline()));
            EXPECT_EQ(part, mine);
            const auto any = good(group.gatherv(root, Numbers(group.rank(), rank), deadline()));
            EXPECT_EQ(any, is_root ? (std::vector<Numbers>{{}, {1}, {2, 2}}) : std::vector<Numbers>());
            EXPECT_EQ(good(group.scatterv(root, any, deadline())), Numbers(group.rank(), rank));
        }
        Numbers mine{rank + 1}, one(1), three(3);
        good(group.allreduce(mine, one, group::product, deadline()));
        EXPECT_EQ(one[0], 6);
        EXPECT_EQ(good(group.allreduce(rank, group::max, deadline())), 2);
        good(group.allgather(mine, three, deadline()));
        EXPECT_EQ(three, (Numbers{1, 2, 3}));
        const Numbers sent{rank * 10, rank * 10 + 1, rank * 10 + 2};
        good(group.alltoall(sent, three, deadline()));
        EXPECT_EQ(three, (Numbers{rank, 10 + rank, 20 + rank}));
        good(group.scan(mine, one, group::sum, deadline()));
        EXPECT_EQ(one[0], (rank + 1) * (rank + 2) / 2);
        one[0] = -1;
        good(group.exclusive_scan(mine, one, group::sum, deadline()));
        EXPECT_EQ(one[0], rank == 0 ? -1 : rank * (rank + 1) / 2) << "at rank 0 the result is not changed";
        EXPECT_EQ(good(group.allgatherv(Numbers(group.rank(), 5), deadline())),
                  (std::vector<Numbers>{{}, {5}, {5, 5}}));
        const std::vector<Numbers> parts{{}, {rank}, {rank, rank}};
        const auto got = good(group.alltoallv(parts, deadline()));
        for (std::int64_t from = 0; from < 3; ++from)
            EXPECT_EQ(got[static_cast<std::size_t>(from)], Numbers(group.rank(), from));
    });
}

TEST_P(GroupPromises, values_of_no_size_are_values) {
    run_group(3, [](Member&, Group& group) {
        Numbers none;
        good(group.broadcast(1, none, deadline()));
        good(group.reduce(1, none, none, group::sum, deadline()));
        good(group.allreduce(none, none, group::sum, deadline()));
        good(group.gather(1, none, none, deadline()));
        good(group.scatter(1, none, none, deadline()));
        good(group.allgather(none, none, deadline()));
        good(group.alltoall(none, none, deadline()));
        good(group.scan(none, none, group::sum, deadline()));
        good(group.exclusive_scan(none, none, group::sum, deadline()));
        EXPECT_EQ(good(group.allgatherv(none, deadline())), std::vector<Numbers>(3));
        EXPECT_EQ(good(group.alltoallv(std::vector<Numbers>(3), deadline())), std::vector<Numbers>(3));
        EXPECT_EQ(good(group.gatherv(2, none, deadline())), std::vector<Numbers>(group.rank() == 2 ? 3 : 0));
        EXPECT_EQ(good(group.scatterv(2, std::vector<Numbers>(3), deadline())), Numbers());
        EXPECT_EQ(good(group.allreduce(1, group::sum, deadline())), 3);
    });
}

TEST_P(GroupPromises, mine_and_the_result_may_be_the_same_array) {
    run_group(4, [](Member&, Group& group) {
        for (const std::size_t count : {std::size_t{3}, std::size_t{20'000}}) {
            const std::int64_t rank = group.rank();
            Numbers values(count, rank + 1);
            good(group.allreduce(values, values, group::sum, deadline()));
            EXPECT_EQ(values, Numbers(count, 10));
            values.assign(count, rank + 1);
            good(group.scan(values, values, group::sum, deadline()));
            EXPECT_EQ(values, Numbers(count, (rank + 1) * (rank + 2) / 2));
            values.assign(count, rank + 1);
            good(group.reduce(2, values, values, group::sum, deadline()));
            EXPECT_EQ(values, Numbers(count, rank == 2 ? 10 : rank + 1));
            values.assign(4 * count, rank);
            good(group.alltoall(values, values, deadline()));
            for (std::size_t from = 0; from < 4; ++from)
                EXPECT_EQ(values[from * count], static_cast<std::int64_t>(from));
        }
    });
}

TEST_P(GroupPromises, an_allreduce_gives_the_same_bits_at_all_members_and_equal_calls_give_equal_results) {
    run_group(4, [](Member&, Group& group) {
        for (const std::size_t count : {std::size_t{5}, std::size_t{9000}}) {
            std::vector<float> mine(count), first(count), again(count), all(4 * count);
            for (std::size_t i = 0; i < count; ++i)
                mine[i] = std::pow(10.0f, static_cast<float>((i + group.rank()) % 9));
            good(group.allreduce(mine, first, group::sum, deadline()));
            good(group.allreduce(mine, again, group::sum, deadline()));
            EXPECT_EQ(std::memcmp(first.data(), again.data(), count * sizeof(float)), 0);
            good(group.allgather(first, all, deadline()));
            for (std::size_t other = 0; other < 4; ++other)
                EXPECT_EQ(std::memcmp(first.data(), all.data() + other * count, count * sizeof(float)), 0);
        }
    });
}

TEST_P(GroupPromises, an_exception_that_an_operation_throws_is_an_error_at_all_members) {
    run_group(3, [](Member&, Group& group) {
        for (const std::size_t count : {std::size_t{2}, std::size_t{9000}}) {
            Numbers values(count, 1);
            const auto throws = [](std::int64_t, std::int64_t) -> std::int64_t {
                throw std::runtime_error("not today");
            };
            const auto throws_oddly = [](std::int64_t, std::int64_t) -> std::int64_t { throw 5; };
            expect_code(group.allreduce(values, values, throws, deadline()), ErrorCode::refused, {"0-2", "not today"});
            expect_code(group.allreduce(values, values, throws_oddly, deadline()), ErrorCode::refused, {"0-2"});
            EXPECT_EQ(good(group.allreduce(1, group::sum, deadline())), 3) << "the next call works";
        }
    });
}

TEST_P(GroupPromises, a_root_that_is_no_rank_is_an_error_and_the_call_is_not_made) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        if (channel.self() != 1) {
            Group group = good(member.groups->group({0, 2}));
            Numbers one(1), two(2);
            for (const Node root : {Node{2}, ~Node{0}}) { // ranks, not nodes
                if (group.rank() == 1) continue; // the other member makes none of these calls
                expect_code(group.broadcast(root, one, deadline()), ErrorCode::not_found, {"0,2"});
                expect_code(group.reduce(root, one, one, group::sum, deadline()), ErrorCode::not_found);
                expect_code(group.gather(root, one, two, deadline()), ErrorCode::not_found);
                expect_code(group.scatter(root, two, one, deadline()), ErrorCode::not_found);
                expect_code(group.gatherv(root, one, deadline()), ErrorCode::not_found);
                expect_code(group.scatterv(root, std::vector<Numbers>(2), deadline()), ErrorCode::not_found);
            }
            EXPECT_EQ(good(group.allreduce(1, group::sum, deadline())), 2);
        }
        settle(*member.engine);
    });
}

TEST_P(GroupPromises, room_that_is_too_small_is_an_error_and_nothing_is_written_beyond_it) {
    run_group(3, [](Member&, Group& group) {
        for (const std::size_t count : {std::size_t{4}, std::size_t{5000}}) {
            Numbers mine(count, 5), guarded(4 * count, -1);
            const std::span<std::int64_t> small(guarded.data(), count - 1), all(guarded.data(), 3 * count - 1);
            EXPECT_FALSE(group.allreduce(mine, small, group::sum, deadline()));
            EXPECT_FALSE(group.scan(mine, small, group::sum, deadline()));
            EXPECT_FALSE(group.allgather(mine, all, deadline()));
            EXPECT_FALSE(group.alltoall(all, guarded, deadline())) << "parts of equal size";
            EXPECT_FALSE(group.alltoallv(std::vector<Numbers>(2), deadline())) << "one part for each rank";
            EXPECT_TRUE(std::ranges::all_of(guarded.begin() + static_cast<long>(3 * count - 1), guarded.end(),
                                            [](std::int64_t value) { return value == -1; }));
            EXPECT_EQ(good(group.allreduce(1, group::sum, deadline())), 3) << "the next call works";
        }
    });
}

TEST_P(GroupPromises, every_call_in_a_handler_is_misuse_and_is_not_made) {
    run(2, [](Channel& channel) {
        Member member;
        std::optional<Group> group;
        std::atomic<bool> was_refused{false};
        const auto misbehave = member.handlers.add("misbehave", [&](Call&) {
            Numbers one(1), two(2);
            expect_code(group->barrier(), ErrorCode::misuse, {"handler"});
            expect_code(group->broadcast(0, one), ErrorCode::misuse, {"handler"});
            expect_code(group->reduce(0, one, one, group::sum), ErrorCode::misuse, {"handler"});
            expect_code(group->allreduce(one, one, group::sum), ErrorCode::misuse, {"handler"});
            expect_code(group->allreduce(1, group::sum), ErrorCode::misuse, {"handler"});
            expect_code(group->gather(0, one, two), ErrorCode::misuse, {"handler"});
            expect_code(group->scatter(0, two, one), ErrorCode::misuse, {"handler"});
            expect_code(group->allgather(one, two), ErrorCode::misuse, {"handler"});
            expect_code(group->alltoall(two, two), ErrorCode::misuse, {"handler"});
            expect_code(group->scan(one, one, group::sum), ErrorCode::misuse, {"handler"});
            expect_code(group->exclusive_scan(one, one, group::sum), ErrorCode::misuse, {"handler"});
            expect_code(group->gatherv(0, one), ErrorCode::misuse, {"handler"});
            expect_code(group->scatterv(0, std::vector<Numbers>(2)), ErrorCode::misuse, {"handler"});
            expect_code(group->allgatherv(one), ErrorCode::misuse, {"handler"});
            expect_code(group->alltoallv(std::vector<Numbers>(2)), ErrorCode::misuse, {"handler"});
            was_refused = true;
        });
        member.open(channel);
        group = good(member.groups->group(Set::range(0, 2)));
        good(member.engine->send(channel.self(), misbehave));
        EXPECT_TRUE(member.engine->wait_until([&] { return was_refused.load(); }, deadline()));
        EXPECT_EQ(good(group->allreduce(1, group::sum, deadline())), 2);
        settle(*member.engine);
    });
}

TEST_P(GroupPromises, copies_refer_to_the_same_set_and_a_set_made_twice_is_one_set) {
    run_group(2, [](Member& member, Group& first) {
        Group copy = first, again = good(member.groups->group({1, 0}));
        for (int i = 0; i < 3; ++i) {
            Group& one = i == 0 ? first : i == 1 ? copy : again; // one sequence of calls at each node
            EXPECT_EQ(good((first.rank() == 0 ? one : first).allreduce(i, group::sum, deadline())), 2 * i);
        }
    });
}

TEST_P(GroupPromises, a_member_that_has_left_is_named_to_those_that_need_it) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group(Set::range(0, 3)));
        good(group.barrier(deadline()));
        if (channel.self() == 1) return;
        for (int i = 0; i < 2; ++i)
            expect_code(group.barrier(deadline()), ErrorCode::node_lost, {"0-2", "node 1"});
        Group others = good(member.groups->group({0, 2}));
        EXPECT_EQ(good(others.allreduce(1, group::sum, deadline())), 2);
        good(others.barrier(deadline()));
    });
}

TEST_P(GroupPromises, a_barrier_of_a_set_is_one_barrier_whichever_call_arrives_at_it) {
    run_group(3, [](Member& member, Group& all) {
        engine::Engine& engine = *member.engine;
        const std::array<Node, 3> listed{2, 0, 1};
        const std::array<Node, 2> some{1, 0};
        std::optional<Group> two;
        if (all.rank() < 2) two = good(member.groups->group({0, 1}));
        const auto words = good(engine.memory().segment<std::uint64_t>(1));
        for (std::uint64_t round = 0; round < 30; ++round) {
            std::atomic_ref(words[0]).store(round); // nodes of the round before may still read it
            switch ((round + all.rank()) % 5) {
            case 0: good(engine.barrier(deadline())); break;
            case 1: good(all.barrier(deadline())); break;
            case 2: good(all.start().barrier(deadline()).get(deadline())); break;
            case 3: good(engine.wait(good(engine.arrive(listed)), deadline())); break;
            default: good(engine.wait(engine.arrive(), deadline()));
            }
            for (Node node = 0; node < 3; ++node) EXPECT_GE(good(engine.memory().read(words.at(node))), round);
            if (!two) continue;
            if ((round + all.rank()) % 2 == 0) good(two->barrier(deadline()));
            else good(engine.wait(good(engine.arrive(some)), deadline()));
        }
    });
}

TEST_P(GroupPromises, a_barrier_that_timed_out_is_gone_on_with_by_the_next_of_any_form) {
    run_group(2, [](Member& member, Group& all) {
        engine::Engine& engine = *member.engine;
        const auto words = good(engine.memory().segment<std::uint64_t>(2)); // the second: rounds timed out at node 0
        for (std::uint64_t round = 1; round <= 3; ++round) {
            if (all.rank() == 0) {
                expect_code(all.barrier(now() - 1s), ErrorCode::timed_out, {"barrier among 0-1", "node 1"});
                expect_code(all.start().barrier(now() + 2ms).get(deadline()), ErrorCode::timed_out, {"barrier among"});
                expect_code(engine.barrier(now() + 2ms), ErrorCode::timed_out);
                good(engine.memory().fetch_add(words.at(1, 1), 1));
                if (round == 1) good(all.barrier(deadline()));
                else if (round == 2) good(all.start().barrier().get(deadline()));
                else good(engine.barrier(deadline()));
                EXPECT_EQ(good(engine.memory().read(words.at(1))), round) << "node 1 had not come";
            } else {
                const std::atomic_ref timed_out(words[1]);
                EXPECT_TRUE(engine.wait_until([&] { return timed_out.load() == round; }, deadline()));
                words[0] = round;
                good(all.barrier(deadline()));
            }
            EXPECT_EQ(good(all.allreduce(1, group::sum, deadline())), 2) << "the members are in step";
        }
    });
}

TEST_P(GroupPromises, a_member_in_a_barrier_is_told_of_one_in_another_call) {
    run_group(3, [](Member&, Group& group) {
        if (group.rank() == 1) {
            expect_code(group.allreduce(1, group::sum, deadline()), ErrorCode::misuse, {"allreduce", "barrier"});
        } else {
            expect_code(group.barrier(deadline()), ErrorCode::misuse,
                        {"barrier among 0-2", " has called ", "allreduce"});
        }
    });
}

TEST_P(GroupPromises, after_the_end_of_the_job_calls_are_errors) {
    run(2, [](Channel& channel) {
        std::optional<Group> group;
        {
            Member member;
            member.open(channel);
            group = good(member.groups->group(Set::range(0, 2)));
            good(group->barrier(deadline()));
            settle(*member.engine);
        }
        Numbers one(1);
        EXPECT_EQ(group->rank(), channel.self());
        EXPECT_EQ(group->size(), 2u);
        expect_code(group->barrier(), ErrorCode::ended);
        expect_code(group->allreduce(one, one, group::sum), ErrorCode::ended);
        expect_code(group->allgatherv(one), ErrorCode::ended);
        expect_code(group->start().barrier().get(), ErrorCode::ended);
    });
}

TEST_P(GroupPromises, by_rank_add_numbers_in_the_same_order_whatever_their_count) {
    run_group(7, [](Member&, Group& group) {
        const auto own = [](Node rank) { return 1.0 / (1 + rank * rank) * (rank % 2 == 0 ? 1e10 : 1e-5); };
        double expected = own(0);
        for (Node rank = 1; rank < 7; ++rank) expected += own(rank);
        for (const std::size_t count : {1u, 5u, 4000u}) {
            const std::vector<double> mine(count, own(group.rank()));
            std::vector<double> result(count);
            good(group.allreduce(mine, result, group::sum, deadline(), Order::by_rank));
            EXPECT_EQ(result, std::vector<double>(count, expected));
        }
    });
}

TEST_P(GroupPromises, of_two_threads_on_two_sets_do_not_wait_for_each_other) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        const auto work = [&](const Set& set, std::uint64_t add) {
            if (!set.contains(channel.self())) return;
            try {
                Group group = good(member.groups->group(set));
                for (std::uint64_t i = 0; i < 50; ++i)
                    EXPECT_EQ(good(group.allreduce(i + add, group::sum, deadline())), (i + add) * set.size());
            } catch (const engine_test::Stop&) {
            }
        };
        std::thread other([&] { work({0, 1, 2}, 7); });
        work({0, 2}, 1000);
        other.join();
        settle(*member.engine);
    });
}

TEST_P(GroupPromises, a_root_that_is_far_ahead_waits_for_the_others) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        const Set set{0, 2};
        std::vector<std::uint32_t> values(1000);
        std::uint32_t given = 0;
        if (channel.self() == 0) {
            Group group = good(member.groups->group(set));
            for (;; ++given) {
                std::ranges::fill(values, given);
                if (!group.broadcast(0, values, now() + std::chrono::milliseconds(50))) break;
                ASSERT_LT(given, 1000u);
            }
            EXPECT_LE(given * 4000, group::Windows::window_bytes);
            EXPECT_GE(given, 10u); // but it need not wait for each
        }
        good(member.engine->barrier(deadline()));
        if (channel.self() == 2) {
            Group group = good(member.groups->group(set));
            std::uint32_t taken = 0;
            for (;; ++taken) {
                const auto got = group.broadcast(0, values, deadline());
                if (!got) {
                    expect_error(got, {"broadcast among 0,2: node 0", "given up", "node 2",
                                       "has not come within the time given"});
                    break;
                }
                EXPECT_EQ(values, std::vector<std::uint32_t>(1000, taken));
            }
        }
        // And it is in step again.
        if (set.contains(channel.self())) {
            EXPECT_EQ(good(good(member.groups->group(set)).allreduce(21, group::sum, deadline())), 42);
        }
        settle(*member.engine);
    });
}

TEST_P(GroupPromises, of_members_with_different_sizes_fail_where_that_shows_and_the_next_one_works) {
    run_group(5, [](Member&, Group& group) {
        std::mt19937_64 random(seed());
        const std::array<std::size_t, 4> counts{1, 3, 5000, 30'000};
        for (int round = 0; round < 30; ++round) {
            const auto odd = static_cast<Node>(random() % 5);
            const auto root = static_cast<Node>(random() % 5);
            const std::size_t usual = counts[random() % 4];
            std::size_t other = counts[random() % 4];
            if (other == usual) ++other;
            const std::size_t count = group.rank() == odd ? other : usual;
            std::vector<std::uint32_t> mine(count), all(count * 5), result(count);
            const auto call = [&](std::uint64_t what) {
                switch (what) {
                case 0: return group.broadcast(root, mine, deadline());
                case 1: return group.reduce(root, mine, result, group::sum, deadline());
                case 2: return group.allreduce(mine, result, group::sum, deadline());
                case 3: return group.allreduce(mine, result, group::sum, deadline(), Order::by_rank);
                case 4: return group.gather(root, mine, all, deadline());
                case 5: return group.scatter(root, all, mine, deadline());
                case 6: return group.allgather(mine, all, deadline());
                case 7: return group.alltoall(all, all, deadline());
                default: return group.scan(mine, result, group::sum, deadline());
                }
            };
            const auto what = random() % 9;
            const auto done = call(what);
            if (!done)
                expect_error(done, {"among 0-4: ", "came with", std::to_string(usual * 4), std::to_string(other * 4)});
            const int failures = good(group.allreduce(done ? 0 : 1, group::sum, deadline()));
            EXPECT_GE(failures, 1) << "call " << what << " with " << usual << " and " << other << " of rank " << odd
                                   << ", root " << root;
        }
    });
}

TEST_P(GroupPromises, that_one_member_cannot_do_are_errors_at_those_who_need_it) {
    run_group(3, [](Member&, Group& group) {
        std::vector<int> four(4), three(3), twelve(12);
        const auto done = group.allreduce(four, group.rank() == 1 ? three : four, group::sum, deadline());
        expect_error(done, {"allreduce among 0-2: ", "the result has room for 12 bytes, and 16 are needed"});
        if (group.rank() != 1) expect_error(done, {"node 1"});
        const auto thrown = group.allreduce(
            four, four, [&](int, int) -> int { throw std::runtime_error("not today"); }, deadline());
        expect_error(thrown, {"allreduce among 0-2: the operation threw on node", "not today"});
        const auto gathered = group.gather(0, four, group.rank() == 0 ? four : twelve, deadline());
        EXPECT_EQ(gathered.has_value(), group.rank() != 0);
        expect_error(group.broadcast(3, four, deadline()), {"broadcast among 0-2: there is no rank 3"});
        EXPECT_EQ(good(group.allreduce(2, group::product, deadline())), 8);
    });
}

TEST_P(GroupPromises, that_a_member_does_not_come_to_end_with_the_deadline_and_the_next_one_works) {
    run_group(4, [](Member& member, Group& group) {
        for (int round = 0; round < 3; ++round) {
            std::vector<std::uint32_t> values(round == 1 ? 50'000 : 10, 1);
            if (group.rank() == 3) {
                good(member.engine->barrier(deadline()));
                // Of a small one it has all that it needs: the others have given theirs.
                const auto done = group.allreduce(values, values, group::sum, deadline());
                if (done) EXPECT_EQ(values, std::vector<std::uint32_t>(values.size(), 4));
                else expect_error(done, {"allreduce among 0-3: ", "has not come within the time given"});
            } else {
                expect_error(group.allreduce(values, values, group::sum, now() + std::chrono::milliseconds(20)),
                             {"allreduce among 0-3: ", "has not come within the time given"});
                good(member.engine->barrier(deadline()));
            }
            EXPECT_EQ(good(group.allreduce(1, group::sum, deadline())), 4);
        }
    });
}

TEST_P(GroupPromises, are_refused_to_those_who_are_no_members_and_in_handlers) {
    run(3, [](Channel& channel) {
        Member member;
        std::optional<Group> group;
        bool was_refused = false;
        const auto try_it = member.handlers.add("try it", [&](Call&) {
            expect_error(group->barrier(deadline()), {"barrier among 0,2: a handler must not wait"});
            was_refused = true;
        });
        member.open(channel);
        expect_error(member.groups->group({}), {"group of nobody"});
        expect_error(member.groups->group({channel.self(), 9}), {"there is no node 9", "0 to 2"});
        expect_error(member.groups->group({channel.self(), 3}), {"there is no node 3", "0 to 2"});
        if (channel.self() == 1) {
            expect_error(member.groups->group({0, 2}), {"group of 0,2: node 1 is no member"});
        } else {
            group = good(member.groups->group({0, 2}));
            good(member.engine->send(channel.self(), try_it));
            EXPECT_TRUE(member.engine->wait_until([&] { return was_refused; }, deadline()));
            good(group->barrier(deadline()));
        }
        settle(*member.engine);
    });
}

TEST_P(GroupPromises, of_one_member_are_done_at_once) {
    run(2, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group({channel.self()}));
        EXPECT_EQ(group.rank(), 0u);
        good(group.barrier(deadline()));
        std::vector<int> mine{1, 2}, result(2);
        good(group.alltoall(mine, result, deadline()));
        EXPECT_EQ(result, mine);
        EXPECT_EQ(good(group.allgatherv(mine, deadline())), std::vector<std::vector<int>>{mine});
        EXPECT_EQ(good(group.allreduce(5, group::min, deadline())), 5);
        settle(*member.engine);
    });
}

KUMI_ENGINE_WORLDS(GroupPromises);

} // namespace
} // namespace kumi::group_test
