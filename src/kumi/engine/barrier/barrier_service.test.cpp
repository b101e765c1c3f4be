// Barriers as one node sees them: what it tells whom when it comes, and what it takes for complete.

#include "kumi/engine/dispatcher.hpp"

#include "loopback/victim.hpp"
#include "loopback/windows.hpp"

#include <gtest/gtest.h>
#include <thread>

namespace kumi::engine::barriers_test {
namespace {

using loopback::Victim;
using loopback::Windows;

constexpr std::uint64_t set_of_all = 0, set_of_firsts = 2;

BarrierStep step_of(std::uint64_t set, std::uint32_t sequence, std::uint32_t round) {
    return {set, sequence, round, 0, 0};
}

void hears_step(Victim& victim, Node source, std::uint64_t set, std::uint32_t sequence, std::uint32_t round) {
    victim.hears(source, Kind::step, step_of(set, sequence, round), {}, false);
    victim.poll();
}

bool has(const Result<void>& result, std::string_view word) {
    return !result && result.error().text().find(word) != std::string::npos;
}

/// Polls so often that losses are noticed, and then known for good.
void notice_losses(Victim& victim) {
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
}

// ---- of nodes that share nothing: node 0 of three hears from 2, and then from 1

TEST(DispatcherBarriers, one_is_complete_when_all_have_come_and_not_before) {
    Victim victim;
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    EXPECT_EQ(victim.sent(Kind::step).size(), 1u);
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
    hears_step(victim, 1, set_of_all, 0, 1);
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(token, now()), "not all nodes have come"));
    hears_step(victim, 2, set_of_all, 0, 0);
    EXPECT_TRUE(victim.dispatcher->barriers().test(token));
    EXPECT_TRUE(victim.dispatcher->barriers().wait(token, now()));
}

TEST(DispatcherBarriers, steps_of_others_are_kept_until_this_node_comes) {
    Victim victim;
    hears_step(victim, 2, set_of_all, 0, 0);
    hears_step(victim, 1, set_of_all, 0, 1);
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    EXPECT_EQ(victim.sent(Kind::step).size(), 2u) << "the others wait for these";
    EXPECT_TRUE(victim.dispatcher->barriers().test(token));
    EXPECT_FALSE(victim.dispatcher->barriers().test(victim.dispatcher->barriers().arrive()))
        << "the next one has steps of its own";
}

TEST(DispatcherBarriers, sets_are_checked_before_anybody_is_told) {
    Victim victim;
    const auto arrive = [&](std::vector<Node> members) {
        return victim.dispatcher->barriers().arrive(members).has_value();
    };
    EXPECT_FALSE(arrive({}));
    EXPECT_FALSE(arrive({1, 2}));
    EXPECT_FALSE(arrive({0, 1, 1}));
    EXPECT_FALSE(arrive({0, 3}));
    EXPECT_TRUE(victim.channel.take_sent().empty());
    EXPECT_TRUE(arrive({2, 0}));
    EXPECT_EQ(victim.sent(Kind::step).size(), 1u);
}

TEST(DispatcherBarriers, so_many_sets_may_have_one_under_way_and_barriers_of_all_need_no_leave) {
    Victim victim({}, {.nodes = 300});
    std::size_t sets = 0;
    for (Node other = 1; other < 300; ++other, ++sets)
        if (const Node pair[2] = {0, other}; !victim.dispatcher->barriers().arrive(pair)) break;
    EXPECT_EQ(sets, Barriers::busy_sets_max - 3);
    const Node first[2] = {0, 1}, last[2] = {0, 299};
    EXPECT_TRUE(victim.dispatcher->barriers().arrive(first)) << "this set has one under way already";
    const auto refused = victim.dispatcher->barriers().arrive(last);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::no_memory);
    victim.channel.take_sent();
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    EXPECT_EQ(victim.sent(Kind::step).size(), 1u);
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
}

// ---- lost members

TEST(DispatcherBarriers, a_lost_member_that_has_not_come_ends_the_wait_and_those_that_hear_from_this_node_are_told) {
    Victim victim;
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    hears_step(victim, 2, set_of_all, 0, 0);
    victim.channel.take_sent();
    victim.channel.lose(1);
    notice_losses(victim);
    const auto told = victim.sent(Kind::hopeless);
    ASSERT_EQ(told.size(), 1u) << "though no thread waits";
    EXPECT_EQ(told[0].to, 2u) << "not the lost one";
    const Hopeless what = told[0].head<Hopeless>();
    EXPECT_EQ(what.set, set_of_all);
    EXPECT_EQ(what.sequence, token.sequence);
    EXPECT_EQ(what.lost, 1u);
    for (int again = 0; again < 2; ++again) {
        const auto lost = victim.dispatcher->barriers().wait(token, now() + loopback::far_away);
        EXPECT_TRUE(has(lost, "node 1"));
        EXPECT_EQ(lost.error().code(), ErrorCode::node_lost);
    }
    EXPECT_TRUE(has(victim.dispatcher->barriers().barrier(now() + loopback::far_away), "node 1"))
        << "nor will any later one be complete";
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(victim.dispatcher->barriers().arrive(), now()), "node 1"));
    EXPECT_TRUE(victim.channel.take_sent().empty()) << "all know";
}

TEST(DispatcherBarriers, a_node_that_was_lost_before_is_missed_when_this_node_comes_and_not_sooner) {
    Victim victim;
    hears_step(victim, 1, set_of_all, 0, 1);
    victim.channel.lose(1);
    notice_losses(victim);
    EXPECT_TRUE(victim.sent(Kind::hopeless).empty()) << "nodes that leave at the end are not missed";
    const BarrierToken first = victim.dispatcher->barriers().arrive();
    EXPECT_TRUE(victim.sent(Kind::hopeless).empty()) << "it had come to this one";
    const BarrierToken second = victim.dispatcher->barriers().arrive();
    const auto told = victim.sent(Kind::hopeless);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].head<Hopeless>().sequence, second.sequence);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(second, now() + loopback::far_away), "node 1"));
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(first, now()), "not all nodes have come"));
    hears_step(victim, 2, set_of_all, 0, 0);
    EXPECT_TRUE(victim.dispatcher->barriers().wait(first, now()));
}

TEST(DispatcherBarriers, what_a_later_loss_costs_is_noticed_though_later_ones_are_given_up_already) {
    Victim victim;
    const BarrierToken first = victim.dispatcher->barriers().arrive(), second = victim.dispatcher->barriers().arrive();
    hears_step(victim, 1, set_of_all, 0, 1);
    victim.channel.lose(1);
    notice_losses(victim);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(first, now()), "not all nodes have come"));
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(second, now() + loopback::far_away), "node 1"));
    victim.channel.lose(2);
    notice_losses(victim);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(first, now() + loopback::far_away), "node 2"));
}

TEST(DispatcherBarriers, a_lost_member_that_has_come_is_not_missed) {
    Victim victim;
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    hears_step(victim, 1, set_of_all, 0, 1);
    victim.channel.lose(1);
    notice_losses(victim);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(token, now()), "not all nodes have come"))
        << "it waits for node 2 alone";
    hears_step(victim, 2, set_of_all, 0, 0);
    EXPECT_TRUE(victim.dispatcher->barriers().wait(token, now()));
}

TEST(DispatcherBarriers, a_barrier_of_others_is_not_touched_by_a_loss) {
    Victim victim;
    const Node pair[2] = {0, 2};
    const auto token = victim.dispatcher->barriers().arrive(pair);
    ASSERT_TRUE(token);
    victim.channel.lose(1);
    notice_losses(victim);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(*token, now()), "not all nodes have come"));
    hears_step(victim, 2, token->set, 0, 0);
    EXPECT_TRUE(victim.dispatcher->barriers().wait(*token, now()));
}

TEST(DispatcherBarriers, what_another_node_knows_to_be_hopeless_is_given_up_from_there_on_and_passed_on_once) {
    Victim victim;
    const BarrierToken first = victim.dispatcher->barriers().arrive(), second = victim.dispatcher->barriers().arrive();
    victim.channel.take_sent();
    const auto hears_hopeless = [&](std::uint32_t sequence, Node lost) {
        victim.hears(2, Kind::hopeless, Hopeless{set_of_all, sequence, lost}, {}, false);
        victim.poll();
        return victim.sent(Kind::hopeless).size();
    };
    testing::internal::CaptureStderr();
    EXPECT_EQ(hears_hopeless(0, 3), 0u) << "there is no such node";
    testing::internal::GetCapturedStderr();
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(first, now()), "not all nodes have come"));
    EXPECT_EQ(hears_hopeless(1, 1), 2u) << "others may wait through this node";
    EXPECT_EQ(hears_hopeless(1, 1), 0u);
    EXPECT_EQ(hears_hopeless(2, 1), 0u) << "that is known";
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(first, now()), "not all nodes have come"))
        << "an earlier one may still be complete";
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(second, now() + loopback::far_away), "node 1"));
    EXPECT_TRUE(victim.sent(Kind::hopeless).empty());
    hears_step(victim, 2, set_of_all, 1, 0);
    hears_step(victim, 1, set_of_all, 1, 1);
    EXPECT_FALSE(victim.dispatcher->barriers().test(second)) << "what comes for it is dropped";
    EXPECT_EQ(hears_hopeless(0, 1), 2u) << "an earlier one";
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(first, now() + loopback::far_away), "node 1"));
    EXPECT_EQ(hears_hopeless(0, 1), 0u);
    const Node pair[2] = {0, 2};
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(*victim.dispatcher->barriers().arrive(pair), now()),
                    "not all nodes have come"))
        << "other sets go on";
}

/// What node 0 of eight hears, and passes on: it is heard by 1, 2 and 4, and of the set by 3 and 6.
class DispatcherGivenUp : public testing::Test {
protected:
    static constexpr std::uint32_t some[] = {0, 3, 6};

    /// Whom it tells; the message names these members.
    std::vector<Node> hears(std::uint64_t set, std::vector<std::uint32_t> members, std::uint32_t lost = 6) {
        victim.hears_bytes(3, Kind::hopeless, bytes_of(Hopeless{set, 0, lost}), std::as_bytes(std::span(members)),
                           false);
        victim.poll();
        std::vector<Node> told;
        for (const auto& message : victim.sent(Kind::hopeless)) {
            told.push_back(message.to);
            EXPECT_EQ(message.head<Hopeless>().set, set);
            EXPECT_EQ(message.data<Hopeless>().size(), set == set_of_all ? 0 : sizeof some);
        }
        return told;
    }

    Victim victim{{}, {.nodes = 8}};
    std::uint64_t set = Barriers::set_of(some);
};

TEST_F(DispatcherGivenUp, is_told_to_as_many_nodes_as_a_barrier_has_rounds) {
    EXPECT_EQ(hears(set_of_all, {}), (std::vector<Node>{1, 2, 4}));
    EXPECT_EQ(hears(set_of_all, {}), std::vector<Node>{});
}

TEST_F(DispatcherGivenUp, a_set_that_this_node_has_not_come_to_is_known_by_its_members) {
    EXPECT_EQ(hears(set, {0, 3, 6}), (std::vector<Node>{3, 6}));
    const auto token = victim.dispatcher->barriers().arrive(some);
    ASSERT_TRUE(token);
    EXPECT_TRUE(victim.sent(Kind::step).empty());
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(*token, now() + loopback::far_away), "node 6"));
}

TEST_F(DispatcherGivenUp, a_set_that_is_not_what_its_number_says_is_refused) {
    testing::internal::CaptureStderr();
    for (const auto& members : std::vector<std::vector<std::uint32_t>>{
             {}, {0, 3}, {0, 3, 6, 7}, {3, 6}, {6, 3, 0}, {0, 3, 3, 6}, {0, 3, 6, 8}})
        EXPECT_EQ(hears(set, members), std::vector<Node>{});
    EXPECT_EQ(hears(Barriers::set_of(std::vector<Node>{0, 3, 8}), {0, 3, 8}), std::vector<Node>{}) << "no such node";
    EXPECT_EQ(hears(Barriers::set_of(std::vector<Node>{3, 6}), {3, 6}), std::vector<Node>{}) << "this is no member";
    EXPECT_EQ(hears(set, {0, 3, 6}, 5), std::vector<Node>{}) << "nor is the lost one";
    EXPECT_EQ(hears(set_of_firsts, {0, 3, 6}), std::vector<Node>{});
    testing::internal::GetCapturedStderr();
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(*victim.dispatcher->barriers().arrive(some), now()),
                    "not all nodes have come"));
}

// ---- trying again

TEST(DispatcherBarriers, one_that_timed_out_is_gone_on_with_by_the_next_call) {
    Victim victim;
    for (int again = 0; again < 3; ++again) {
        const auto late = victim.dispatcher->barriers().barrier(now());
        EXPECT_TRUE(has(late, "not all nodes have come"));
        EXPECT_EQ(late.error().code(), ErrorCode::timed_out);
    }
    EXPECT_EQ(victim.sent(Kind::step).size(), 1u) << "this node has come once";
    // The next barrier of others does not count for this one.
    hears_step(victim, 2, set_of_all, 0, 0);
    hears_step(victim, 2, set_of_all, 1, 0);
    hears_step(victim, 1, set_of_all, 1, 1);
    EXPECT_TRUE(has(victim.dispatcher->barriers().barrier(now()), "not all nodes have come"));
    hears_step(victim, 1, set_of_all, 0, 1);
    victim.channel.take_sent();
    EXPECT_TRUE(victim.dispatcher->barriers().barrier(now()));
    EXPECT_TRUE(victim.sent(Kind::step).empty()) << "nor has it come to the next one by that";
    EXPECT_TRUE(victim.dispatcher->barriers().barrier(now())) << "to which all others had come";
    EXPECT_EQ(victim.sent(Kind::step).size(), 2u);
    EXPECT_FALSE(victim.dispatcher->barriers().barrier(now()));
}

TEST(DispatcherBarriers, who_arrives_after_one_that_timed_out_does_not_try_it_again) {
    Victim victim;
    EXPECT_FALSE(victim.dispatcher->barriers().barrier(now()));
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    EXPECT_EQ(token.sequence, 1u);
    for (std::uint32_t sequence = 0; sequence < 2; ++sequence) {
        hears_step(victim, 2, set_of_all, sequence, 0);
        hears_step(victim, 1, set_of_all, sequence, 1);
    }
    EXPECT_TRUE(victim.dispatcher->barriers().wait(token, now()));
    EXPECT_FALSE(victim.dispatcher->barriers().barrier(now())) << "nobody has come to the third";
}

TEST(DispatcherBarriers, several_threads_that_timed_out_go_on_with_one_each_oldest_first) {
    Victim other;
    {
        // Two at once: the second thread comes while the first waits.
        std::thread first([&] {
            EXPECT_FALSE(other.dispatcher->barriers().barrier(now() + std::chrono::milliseconds(500)));
        });
        EXPECT_TRUE(loopback::comes_true([&] { return other.sent(Kind::step).size() == 1; }));
        EXPECT_FALSE(other.dispatcher->barriers().barrier(now()));
        first.join();
    }
    hears_step(other, 2, set_of_all, 0, 0);
    hears_step(other, 1, set_of_all, 0, 1);
    EXPECT_TRUE(other.dispatcher->barriers().barrier(now())) << "the older one, which failed last";
    EXPECT_FALSE(other.dispatcher->barriers().barrier(now()));
    hears_step(other, 2, set_of_all, 1, 0);
    hears_step(other, 1, set_of_all, 1, 1);
    EXPECT_TRUE(other.dispatcher->barriers().barrier(now()));
}

TEST(DispatcherBarriers, errors_have_the_code_of_their_cause) {
    Victim victim;
    const auto code_of = [&](std::vector<Node> members) {
        return victim.dispatcher->barriers().arrive(members).error().code();
    };
    EXPECT_EQ(code_of({1, 2}), ErrorCode::misuse);
    EXPECT_EQ(code_of({0, 1, 1}), ErrorCode::misuse);
    EXPECT_EQ(code_of({0, 3}), ErrorCode::not_found);
    const auto turn = victim.dispatcher->take_turn(); // as a handler has it
    EXPECT_EQ(victim.dispatcher->barriers().barrier(now()).error().code(), ErrorCode::misuse);
    EXPECT_EQ(victim.dispatcher->barriers().wait({}, now()).error().code(), ErrorCode::misuse);
}

TEST(DispatcherBarriers, who_agrees_again_and_again_without_a_lost_node_is_refused_each_time) {
    Victim victim;
    victim.channel.lose(2);
    notice_losses(victim);
    for (int i = 0; i < 100; ++i) {
        const auto agreed = victim.dispatcher->barriers().agree(5);
        ASSERT_FALSE(agreed);
        EXPECT_EQ(agreed.error().code(), ErrorCode::node_lost);
    }
    EXPECT_EQ(victim.sent(Kind::step).size(), 1u) << "it has come once";
}

// ---- hosts: nodes 0 and 1 share one, 2 and 3 another; each shows the page of its first node

class DispatcherHosts : public testing::Test {
protected:
    explicit DispatcherHosts(Node self = 0) : victim({}, {.nodes = 4, .self = self, .memory = &windows}) {
        victim.dispatcher->set_agreement({{}, {}, {}, {0, 0, 2, 2}});
        victim.channel.take_sent();
    }
    /// As the other node of this host would come: by a store.
    Arrival other_arrives(std::uint32_t sequence) {
        return HostBarrier<base::MachineMemory>(page(0).barrier, 2).arrive(sequence);
    }
    SharedPage& page(Node node) { return *reinterpret_cast<SharedPage*>(windows.direct(node, 0)); }
    std::uint32_t completed() { return page(0).barrier.completed.word; }

    Windows windows{4, 1 << 20, {0, 1}};
    Victim victim;
};

TEST_F(DispatcherHosts, hosts_tell_each_other_when_all_their_nodes_have_come_and_not_before) {
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    EXPECT_TRUE(victim.sent(Kind::step).empty()) << "node 1 has not come";
    hears_step(victim, 2, set_of_firsts, 0, 0);
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
    EXPECT_EQ(other_arrives(0), Arrival::last);
    EXPECT_FALSE(victim.dispatcher->barriers().test(token)) << "nobody has told";
    victim.hears(1, Kind::host_arrived, HostArrived{0, 0}, {}, false);
    page(1).watching = 1;
    victim.poll();
    const auto sent = victim.channel.take_sent();
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent[0].peer, 2u) << "the first of the other host";
    EXPECT_EQ(sent[1].peer, 1u) << "is nudged, because it sleeps";
    EXPECT_EQ(completed(), 1u);
    EXPECT_TRUE(victim.dispatcher->barriers().test(token));
}

TEST_F(DispatcherHosts, the_last_of_a_host_tells_and_the_barrier_waits_for_the_other_host) {
    EXPECT_EQ(other_arrives(0), Arrival::counted);
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    EXPECT_EQ(victim.sent(Kind::step).size(), 1u);
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
    EXPECT_EQ(completed(), 0u);
    hears_step(victim, 2, set_of_firsts, 0, 0);
    EXPECT_TRUE(victim.dispatcher->barriers().test(token));
}

TEST_F(DispatcherHosts, only_nodes_of_this_host_tell_that_it_has_come) {
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    testing::internal::CaptureStderr();
    for (const Node stranger : {2u, 3u}) victim.hears(stranger, Kind::host_arrived, HostArrived{0, 0}, {}, false);
    victim.hears(1, Kind::host_arrived, std::uint32_t{0}, {}, false); // cut
    victim.poll();
    testing::internal::GetCapturedStderr();
    EXPECT_TRUE(victim.sent(Kind::step).empty());
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
}

TEST_F(DispatcherHosts, a_node_that_is_far_ahead_comes_later_and_is_not_complete_meanwhile) {
    std::vector<BarrierToken> tokens;
    for (int i = 0; i < 66; ++i) tokens.push_back(victim.dispatcher->barriers().arrive());
    for (const BarrierToken& token : tokens) EXPECT_FALSE(victim.dispatcher->barriers().test(token));
    EXPECT_EQ(page(0).barrier.arrivals[0].word, 1u) << "two are not counted yet: the ring is full";
    for (std::uint32_t i = 0; i < 2; ++i) {
        EXPECT_EQ(other_arrives(i), Arrival::last);
        victim.hears(1, Kind::host_arrived, HostArrived{i, 0}, {}, false);
        hears_step(victim, 2, set_of_firsts, i, 0);
        EXPECT_TRUE(victim.dispatcher->barriers().test(tokens[i]));
        EXPECT_FALSE(victim.dispatcher->barriers().test(tokens[i + 1]));
        EXPECT_EQ(page(0).barrier.arrivals[i].word, 1u) << "there is room for one more";
    }
    for (std::size_t i = 2; i < tokens.size(); ++i) EXPECT_FALSE(victim.dispatcher->barriers().test(tokens[i]));
}

TEST_F(DispatcherHosts, a_lost_first_node_of_another_host_ends_the_wait_and_a_lost_other_one_does_not) {
    EXPECT_EQ(other_arrives(0), Arrival::counted);
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    victim.channel.lose(3);
    notice_losses(victim);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(token, now()), "not all nodes have come"))
        << "its host knows, and will tell";
    victim.channel.lose(2);
    notice_losses(victim);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(token, now() + loopback::far_away), "node 2"));
}

TEST_F(DispatcherHosts, a_lost_node_of_this_host_is_missed_from_where_it_has_not_come) {
    EXPECT_EQ(other_arrives(0), Arrival::counted);
    page(1).barriers_arrived = 1;
    const BarrierToken first = victim.dispatcher->barriers().arrive();
    EXPECT_EQ(page(0).barriers_arrived, 1u) << "so that others see it";
    victim.channel.take_sent();
    victim.channel.lose(1);
    notice_losses(victim);
    EXPECT_TRUE(victim.sent(Kind::hopeless).empty()) << "it has come";
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(first, now()), "not all nodes have come"));
    const BarrierToken second = victim.dispatcher->barriers().arrive();
    const auto told = victim.sent(Kind::hopeless);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].to, 2u) << "the first of the other host; there is nobody else on this one";
    EXPECT_EQ(told[0].head<Hopeless>().set, set_of_all);
    EXPECT_EQ(told[0].head<Hopeless>().sequence, 1u);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(second, now() + loopback::far_away), "node 1"));
    hears_step(victim, 2, set_of_firsts, 0, 0);
    EXPECT_TRUE(victim.dispatcher->barriers().wait(first, now()));
}

TEST_F(DispatcherHosts, what_another_host_lacks_is_told_to_this_host_too) {
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    victim.hears(2, Kind::hopeless, Hopeless{set_of_all, 0, 3}, {}, false);
    victim.poll();
    const auto told = victim.sent(Kind::hopeless);
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[0].to, 2u);
    EXPECT_EQ(told[1].to, 1u);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(token, now() + loopback::far_away), "node 3"));
}

TEST_F(DispatcherHosts, arrivals_that_found_no_room_are_not_waited_for_when_they_are_given_up) {
    for (int i = 0; i < 66; ++i) victim.dispatcher->barriers().arrive();
    const auto has_uncounted = [&] {
        return victim.dispatcher->barriers().wants_completion(victim.dispatcher->take_turn());
    };
    EXPECT_TRUE(has_uncounted());
    victim.channel.lose(1);
    notice_losses(victim);
    EXPECT_FALSE(has_uncounted());
}

/// Node 1, which is not the first of its host.
class DispatcherHostsSecond : public DispatcherHosts {
protected:
    DispatcherHostsSecond() : DispatcherHosts(1) {}
};

TEST_F(DispatcherHostsSecond, the_last_of_a_host_that_is_not_its_first_tells_that_one) {
    EXPECT_EQ(other_arrives(0), Arrival::counted);
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    const auto told = victim.sent(Kind::host_arrived);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].to, 0u);
    EXPECT_EQ(told[0].head<HostArrived>().sequence, 0u);
    testing::internal::CaptureStderr();
    victim.hears(0, Kind::host_arrived, HostArrived{0, 0}, {}, false); // that is not this node's affair
    victim.poll();
    testing::internal::GetCapturedStderr();
    EXPECT_TRUE(victim.sent(Kind::step).empty());
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
    HostBarrier<base::MachineMemory>(page(0).barrier, 2).complete(0); // by node 0
    EXPECT_TRUE(victim.dispatcher->barriers().test(token));
    EXPECT_TRUE(victim.dispatcher->barriers().wait(token, now()));
}

TEST_F(DispatcherHostsSecond, without_the_first_node_of_its_host_a_node_hears_nothing_of_others) {
    EXPECT_EQ(other_arrives(0), Arrival::counted);
    page(0).barriers_arrived = 1;
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    victim.channel.lose(0);
    notice_losses(victim);
    EXPECT_TRUE(has(victim.dispatcher->barriers().wait(token, now() + loopback::far_away), "node 0"));
}

TEST_F(DispatcherHostsSecond, who_is_not_the_last_tells_nobody) {
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    EXPECT_TRUE(victim.channel.take_sent().empty());
    EXPECT_FALSE(victim.dispatcher->barriers().test(token));
}

TEST(DispatcherOneHost, a_node_that_left_after_its_last_barrier_is_missed_at_the_next_one) {
    Windows windows(5, 1 << 20, {0, 1, 2, 3, 4});
    Victim victim({}, {.nodes = 5, .memory = &windows});
    const auto page = [&](Node node) -> SharedPage& { return *reinterpret_cast<SharedPage*>(windows.direct(node, 0)); };
    HostBarrier<base::MachineMemory> others(page(0).barrier, 5);
    for (Node node = 1; node < 5; ++node) {
        EXPECT_EQ(others.arrive(0), Arrival::counted);
        page(node).barriers_arrived = 1;
    }
    EXPECT_TRUE(victim.dispatcher->barriers().barrier(now()));
    for (const Node node : {0u, 3u}) {
        if (node != 0) victim.channel.lose(node);
        notice_losses(victim);
        EXPECT_TRUE(victim.sent(Kind::hopeless).empty());
    }
    EXPECT_TRUE(has(victim.dispatcher->barriers().barrier(now() + loopback::far_away), "node 3"));
    std::vector<Node> told;
    for (const auto& message : victim.sent(Kind::hopeless)) told.push_back(message.to);
    EXPECT_EQ(told, (std::vector<Node>{1, 2})) << "of 0, 1, 2 and 4 they hear from this one";
    victim.channel.lose(1);
    notice_losses(victim);
    told.clear();
    for (const auto& message : victim.sent(Kind::hopeless)) told.push_back(message.to);
    EXPECT_EQ(told, (std::vector<Node>{2, 4})) << "node 1 may have told nobody";
    notice_losses(victim);
    EXPECT_TRUE(victim.sent(Kind::hopeless).empty());
}

TEST(DispatcherOneHost, the_last_node_completes_it_and_nudges_those_that_sleep) {
    Windows windows(2, 1 << 20, {0, 1});
    Victim victim({}, {.nodes = 2, .memory = &windows});
    auto& first = *reinterpret_cast<SharedPage*>(windows.direct(0, 0));
    auto& second = *reinterpret_cast<SharedPage*>(windows.direct(1, 0));
    HostBarrier<base::MachineMemory> other(first.barrier, 2);
    EXPECT_EQ(other.arrive(0), Arrival::counted);
    second.watching = 1;
    const BarrierToken token = victim.dispatcher->barriers().arrive();
    EXPECT_TRUE(other.is_complete(0));
    EXPECT_TRUE(victim.dispatcher->barriers().test(token));
    EXPECT_EQ(victim.sent(Kind::nudge).size(), 1u);
    const BarrierToken next = victim.dispatcher->barriers().arrive();
    EXPECT_FALSE(victim.dispatcher->barriers().test(next));
    EXPECT_FALSE(other.is_complete(1));
    EXPECT_EQ(other.arrive(1), Arrival::last);
    other.complete(1);
    EXPECT_TRUE(victim.dispatcher->barriers().test(next));
}

} // namespace
} // namespace kumi::engine::barriers_test
