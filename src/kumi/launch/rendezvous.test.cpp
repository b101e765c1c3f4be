#include "kumi/launch/rendezvous.hpp"

#include <cstring>
#include <gtest/gtest.h>

namespace kumi::launch {
namespace {

using boot::Frame;
using boot::Kind;

Frame frame(Kind kind, Bytes body = {}) {
    return {kind, {body.begin(), body.end()}, {}};
}

Frame join_frame() {
    const boot::JoinBody body{boot::wire_version, 1};
    return frame(Kind::join, bytes_of(body));
}

Kind kind_of(const Reply& reply) {
    boot::FrameHeader header{};
    EXPECT_TRUE(read_value(*reply.frame, header));
    return header.kind;
}

boot::WelcomeBody welcome_of(Rendezvous& rendezvous, std::uint32_t node) {
    const auto replies = rendezvous.on_frame(node, join_frame());
    boot::WelcomeBody welcome{};
    EXPECT_EQ(kind_of(replies.at(0)), Kind::welcome);
    EXPECT_TRUE(read_value(Bytes(*replies.at(0).frame).subspan(sizeof(boot::FrameHeader)), welcome));
    return welcome;
}

TEST(Rendezvous, a_node_that_joins_learns_who_it_is) {
    Rendezvous rendezvous({.parts = {{"here", 0, 3}}});
    rendezvous.set_cores(0, 8);
    const auto replies = rendezvous.on_frame(2, join_frame());
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].node, 2u);
    EXPECT_EQ(kind_of(replies[0]), Kind::welcome);
    boot::WelcomeBody welcome{};
    ASSERT_TRUE(read_value(Bytes(*replies[0].frame).subspan(sizeof(boot::FrameHeader)), welcome));
    EXPECT_EQ(welcome.node, 2u);
    EXPECT_EQ(welcome.nodes, 3u);
    EXPECT_EQ(welcome.cores_on_host, 8u);
    EXPECT_TRUE(rendezvous.has_joined(2));
    EXPECT_EQ(rendezvous.missing(), "0, 1 on here");
}

TEST(Rendezvous, nodes_learn_their_slots_and_the_jobs_hosts) {
    Rendezvous rendezvous({.parts = {{"a0", 0, 2}, {"a1", 2, 2}, {"b0", 4, 1}}});
    rendezvous.set_cores(1, 16);
    const auto replies = rendezvous.on_frame(3, join_frame());
    const Bytes body = Bytes(*replies.at(0).frame).subspan(sizeof(boot::FrameHeader));
    boot::WelcomeBody welcome{};
    ASSERT_TRUE(read_value(body, welcome));
    EXPECT_EQ(welcome.nodes, 5u);
    EXPECT_EQ(welcome.slot, 1u);
    EXPECT_EQ(welcome.nodes_on_host, 2u);
    EXPECT_EQ(welcome.cores_on_host, 16u);
    EXPECT_EQ(welcome.host, 1u);
    EXPECT_EQ(welcome.hosts, 3u);
    EXPECT_EQ(text_of(body.subspan(sizeof welcome)), std::string_view("a0\0a1\0b0\0", 9));
    EXPECT_EQ(rendezvous.missing(), "0, 1 on a0, 2 on a1, 4 on b0");
}

TEST(Rendezvous, all_nodes_of_a_job_get_its_keys_and_another_job_has_others) {
    Rendezvous job({.parts = {{"here", 0, 3}}, .keys = *base::make_job_keys()});
    Rendezvous other({.parts = {{"here", 0, 1}}, .keys = *base::make_job_keys()});
    const base::JobKeys keys = welcome_of(job, 0).keys;
    EXPECT_NE(keys.token, 0u);
    for (const std::uint32_t node : {1u, 2u}) EXPECT_EQ(welcome_of(job, node).keys, keys);
    const base::JobKeys others = welcome_of(other, 0).keys;
    EXPECT_NE(others.token, keys.token);
    EXPECT_NE(others.secret, keys.secret);
}

TEST(Rendezvous, another_version_and_a_second_join_are_refused) {
    Rendezvous rendezvous({.parts = {{"here", 0, 2}}});
    const boot::JoinBody other{boot::wire_version + 1, 1};
    EXPECT_EQ(kind_of(rendezvous.on_frame(0, frame(Kind::join, bytes_of(other))).at(0)), Kind::refused);
    EXPECT_FALSE(rendezvous.has_joined(0));
    EXPECT_EQ(kind_of(rendezvous.on_frame(0, join_frame()).at(0)), Kind::welcome);
    EXPECT_EQ(kind_of(rendezvous.on_frame(0, join_frame()).at(0)), Kind::refused);
    EXPECT_EQ(kind_of(rendezvous.on_frame(1, frame(Kind::join)).at(0)), Kind::refused) << "a body cut short";
}

TEST(Rendezvous, an_exchange_ends_when_the_last_has_given_its_bytes) {
    Rendezvous rendezvous({.parts = {{"here", 0, 2}}});
    for (int round = 0; round < 2; ++round) {
        EXPECT_TRUE(rendezvous.on_frame(1, frame(Kind::exchange, bytes_of(std::string_view("bb")))).empty());
        const auto replies = rendezvous.on_frame(0, frame(Kind::exchange, bytes_of(std::string_view("a"))));
        ASSERT_EQ(replies.size(), 1u);
        EXPECT_EQ(replies[0].node, host::every_node);
        const Bytes body = Bytes(*replies[0].frame).subspan(sizeof(boot::FrameHeader));
        EXPECT_EQ(text_of(body), std::string_view("\1\0\0\0a\2\0\0\0bb", 11));
    }
}

TEST(Rendezvous, traffic_that_names_nodes_which_do_not_exist_is_dropped) {
    Rendezvous rendezvous({.parts = {{"here", 0, 2}}});
    const boot::TrafficEntry entries[] = {{1, "shmem", 5, 40}, {77, "shmem", 5, 40}};
    rendezvous.on_frame(0, frame(Kind::traffic, std::as_bytes(std::span(entries))));
    ASSERT_EQ(rendezvous.traffic()[0].size(), 1u);
    EXPECT_EQ(rendezvous.traffic()[0][0].to, 1u);
}

TEST(Rendezvous, a_node_is_asked_for_its_counters_only_if_they_are_wanted) {
    Rendezvous wanted({.parts = {{"here", 0, 1}}, .stats_wanted = true});
    Rendezvous not_wanted({.parts = {{"here", 0, 1}}, .traffic_wanted = true});
    EXPECT_EQ(welcome_of(wanted, 0).stats_wanted, 1u);
    EXPECT_EQ(welcome_of(not_wanted, 0).stats_wanted, 0u);
}

TEST(Rendezvous, counters_about_nodes_which_do_not_exist_are_dropped) {
    Rendezvous rendezvous({.parts = {{"here", 0, 2}}});
    const boot::StatsEntry entries[] = {
        {1, "udp", "resent", 5}, {2, "udp", "resent", 6}, {boot::whole_channel, "udp", "lost", 7}};
    rendezvous.on_frame(1, frame(Kind::stats, std::as_bytes(std::span(entries))));
    EXPECT_FALSE(rendezvous.stats()[0]);
    ASSERT_TRUE(rendezvous.stats()[1]);
    ASSERT_EQ(rendezvous.stats()[1]->size(), 2u);
    EXPECT_EQ(rendezvous.stats()[1]->at(0).value, 5u);
    EXPECT_EQ(rendezvous.stats()[1]->at(1).value, 7u);
}

TEST(Rendezvous, a_report_of_counters_that_is_cut_or_too_long_is_no_report) {
    Rendezvous rendezvous({.parts = {{"here", 0, 2}}});
    const std::vector<boot::StatsEntry> most(3 * boot::stats_per_peer_max);
    const Bytes bytes = std::as_bytes(std::span(most));
    rendezvous.on_frame(0, frame(Kind::stats, bytes.first(bytes.size() - 1)));
    EXPECT_FALSE(rendezvous.stats()[0]);
    const std::vector<boot::StatsEntry> too_many(most.size() + 1);
    rendezvous.on_frame(0, frame(Kind::stats, std::as_bytes(std::span(too_many))));
    EXPECT_FALSE(rendezvous.stats()[0]);
    rendezvous.on_frame(0, frame(Kind::stats, bytes));
    ASSERT_TRUE(rendezvous.stats()[0]);
    EXPECT_EQ(rendezvous.stats()[0]->size(), most.size());
}

TEST(Rendezvous, many_missing_nodes_are_counted_and_not_listed) {
    Rendezvous rendezvous({.parts = {{"here", 0, 20}}});
    rendezvous.on_frame(1, join_frame());
    EXPECT_EQ(rendezvous.missing(), "0, 2, 3, 4, 5, 6, 7, 8 on here and 11 more");
}

TEST(Rendezvous, what_was_asked_for_on_the_command_line_reaches_every_node) {
    Rendezvous quiet({.parts = {{"here", 0, 1}}});
    const boot::WelcomeBody nothing = welcome_of(quiet, 0);
    EXPECT_EQ(nothing.traffic_wanted, 0u);
    EXPECT_EQ(nothing.answer_seconds_max, 0u);
    Rendezvous asked({.parts = {{"a", 0, 1}, {"b", 1, 1}}, .traffic_wanted = true, .answer_seconds_max = 90});
    for (const std::uint32_t node : {0u, 1u}) {
        const boot::WelcomeBody welcome = welcome_of(asked, node);
        EXPECT_EQ(welcome.traffic_wanted, 1u);
        EXPECT_EQ(welcome.stats_wanted, 0u);
        EXPECT_EQ(welcome.answer_seconds_max, 90u);
        EXPECT_EQ(welcome.cores_on_host, 1u) << "unless a host says otherwise";
    }
}

TEST(Rendezvous, why_a_node_was_refused_or_gave_up_is_kept) {
    Rendezvous rendezvous({.parts = {{"here", 0, 3}}});
    EXPECT_FALSE(rendezvous.failure(0));
    const auto text_in_frame = [](const Reply& reply) {
        return std::string(text_of(Bytes(*reply.frame).subspan(sizeof(boot::FrameHeader))));
    };
    const boot::JoinBody older{boot::wire_version - 1, 1};
    const std::string told = text_in_frame(rendezvous.on_frame(0, frame(Kind::join, bytes_of(older))).at(0));
    EXPECT_EQ(told, "this program and the kumi command are of different versions: use the same for both");
    EXPECT_EQ(rendezvous.failure(0), told);
    rendezvous.on_frame(1, join_frame());
    EXPECT_FALSE(rendezvous.failure(1));
    EXPECT_EQ(text_in_frame(rendezvous.on_frame(1, join_frame()).at(0)),
              "node 1 has joined already: a node is one process, and joins once");
    EXPECT_EQ(rendezvous.failure(1), "node 1 has joined already: a node is one process, and joins once");
    EXPECT_TRUE(rendezvous.on_frame(2, frame(Kind::failed, bytes_of(std::string_view("no memory")))).empty());
    EXPECT_EQ(rendezvous.failure(2), "no memory");
}

TEST(Rendezvous, who_leaves_has_left_and_nobody_else) {
    Rendezvous rendezvous({.parts = {{"here", 0, 2}}});
    rendezvous.on_frame(1, join_frame());
    EXPECT_EQ(rendezvous.joined_count(), 1u);
    EXPECT_FALSE(rendezvous.has_left(1));
    EXPECT_TRUE(rendezvous.on_frame(1, frame(Kind::leave)).empty());
    EXPECT_TRUE(rendezvous.has_left(1));
    EXPECT_FALSE(rendezvous.has_left(0));
    EXPECT_FALSE(rendezvous.has_joined(0));
}

TEST(Rendezvous, a_node_that_gives_twice_in_a_round_does_not_stand_for_another) {
    Rendezvous rendezvous({.parts = {{"here", 0, 3}}});
    for (const std::uint32_t node : {0u, 0u, 0u, 1u, 1u})
        EXPECT_TRUE(rendezvous.on_frame(node, frame(Kind::exchange)).empty()) << node;
    EXPECT_EQ(rendezvous.on_frame(2, frame(Kind::exchange)).size(), 1u);
}

TEST(Rendezvous, what_only_kumi_run_says_is_not_answered) {
    Rendezvous rendezvous({.parts = {{"here", 0, 1}}});
    for (const Kind kind :
         {Kind::welcome, Kind::refused, Kind::shared, Kind::exchanged, static_cast<Kind>(0), static_cast<Kind>(99)})
        EXPECT_TRUE(rendezvous.on_frame(0, frame(kind, bytes_of(std::string_view("text")))).empty());
    EXPECT_FALSE(rendezvous.failure(0));
    EXPECT_FALSE(rendezvous.has_joined(0));
}

TEST(Rendezvous, traffic_to_the_last_node_counts_and_to_the_one_behind_it_does_not) {
    Rendezvous rendezvous({.parts = {{"a", 0, 1}, {"b", 1, 2}}});
    const boot::TrafficEntry entries[] = {{3, "udp", 1, 1}, {2, "udp", 2, 2}, {0, "shmem", 3, 3}};
    const Bytes bytes = std::as_bytes(std::span(entries));
    rendezvous.on_frame(1, frame(Kind::traffic, bytes));
    ASSERT_EQ(rendezvous.traffic()[1].size(), 2u);
    EXPECT_EQ(rendezvous.traffic()[1][0].to, 2u);
    EXPECT_EQ(rendezvous.traffic()[1][1].messages, 3u);
    rendezvous.on_frame(1, frame(Kind::traffic, bytes.first(bytes.size() - 1))); // the last entry is cut off
    EXPECT_EQ(rendezvous.traffic()[1].size(), 1u);
    rendezvous.on_frame(1, frame(Kind::traffic, {}));
    EXPECT_TRUE(rendezvous.traffic()[1].empty());
}

TEST(Rendezvous, of_missing_nodes_on_several_hosts_eight_are_named) {
    Rendezvous rendezvous({.parts = {{"a", 0, 3}, {"b", 3, 5}, {"c", 8, 2}}});
    EXPECT_EQ(rendezvous.missing(), "0, 1, 2 on a, 3, 4, 5, 6, 7 on b and 2 more");
    rendezvous.on_frame(8, join_frame());
    rendezvous.on_frame(0, join_frame());
    EXPECT_EQ(rendezvous.missing(), "1, 2 on a, 3, 4, 5, 6, 7 on b, 9 on c");
    for (std::uint32_t node = 1; node < 9; ++node)
        if (node != 8) rendezvous.on_frame(node, join_frame());
    EXPECT_EQ(rendezvous.missing(), "9 on c");
}

// ---- MPI processes

TEST(Rendezvous, mpi_processes_join_and_leave_as_nodes_do) {
    Rendezvous rendezvous({.parts = {{"here", 0, 3}}});
    EXPECT_TRUE(rendezvous.on_frame(1, frame(Kind::mpi_joined)).empty());
    EXPECT_TRUE(rendezvous.has_joined(1));
    EXPECT_FALSE(rendezvous.has_left(1));
    EXPECT_TRUE(rendezvous.is_in_mpi(1));
    EXPECT_FALSE(rendezvous.is_of_kumi(1));
    EXPECT_EQ(rendezvous.joined_count(), 1u);
    EXPECT_EQ(rendezvous.missing(), "0, 2 on here");
    rendezvous.on_frame(1, frame(Kind::mpi_left));
    EXPECT_TRUE(rendezvous.has_left(1));
    EXPECT_FALSE(rendezvous.is_in_mpi(1));
}

TEST(Rendezvous, a_process_that_joins_both_ways_has_left_when_it_has_left_both) {
    Rendezvous rendezvous({.parts = {{"here", 0, 2}}});
    rendezvous.on_frame(0, frame(Kind::mpi_joined));
    EXPECT_EQ(kind_of(rendezvous.on_frame(0, join_frame()).at(0)), Kind::welcome);
    EXPECT_EQ(rendezvous.joined_count(), 1u);
    EXPECT_TRUE(rendezvous.is_of_kumi(0));
    rendezvous.on_frame(0, frame(Kind::mpi_left));
    EXPECT_FALSE(rendezvous.has_left(0));
    rendezvous.on_frame(0, frame(Kind::leave));
    EXPECT_TRUE(rendezvous.has_left(0));
    rendezvous.on_frame(1, frame(Kind::mpi_joined));
    rendezvous.on_frame(1, join_frame());
    rendezvous.on_frame(1, frame(Kind::leave));
    EXPECT_FALSE(rendezvous.has_left(1));
}

TEST(Rendezvous, a_fence_is_answered_to_one_node_of_each_host) {
    Rendezvous rendezvous({.parts = {{"a", 0, 2}, {"b", 2, 2}}});
    const auto fence = host::encode(host::Fence{"x*", {std::byte{7}}});
    EXPECT_TRUE(rendezvous.on_frame(1, frame(Kind::fence, fence)).empty());
    const auto replies = rendezvous.on_frame(3, frame(Kind::fence, fence));
    ASSERT_EQ(replies.size(), 2u);
    EXPECT_EQ(replies[0].node, 0u);
    EXPECT_EQ(replies[1].node, 2u);
    for (const Reply& reply : replies) {
        EXPECT_EQ(kind_of(reply), Kind::fenced);
        const auto met = host::decode_fence(Bytes(*reply.frame).subspan(sizeof(boot::FrameHeader)));
        ASSERT_TRUE(met);
        EXPECT_EQ(met->key, "x*");
        EXPECT_EQ(met->content, (std::vector{std::byte{7}, std::byte{7}}));
    }
    EXPECT_TRUE(rendezvous.on_frame(0, frame(Kind::fence)).empty()) << "garbage";
}

TEST(Rendezvous, a_question_goes_to_the_host_of_its_node_and_the_answer_back) {
    Rendezvous rendezvous({.parts = {{"a", 0, 2}, {"b", 2, 2}}});
    const auto ask = [&](Kind kind, std::uint32_t asker, std::uint32_t target) {
        const auto replies = rendezvous.on_frame(0, frame(kind, host::encode(host::Fetch{5, asker, target, 0, {}})));
        for (const Reply& reply : replies) EXPECT_EQ(kind_of(reply), kind);
        return replies.empty() ? -1 : static_cast<int>(replies.at(0).node);
    };
    EXPECT_EQ(ask(Kind::fetch, 0, 3), 3);
    EXPECT_EQ(ask(Kind::fetched, 0, 3), 0);
    EXPECT_EQ(ask(Kind::fetch, 0, 4), -1);
    EXPECT_EQ(ask(Kind::fetched, 4, 3), -1);
    EXPECT_TRUE(rendezvous.on_frame(0, frame(Kind::fetch)).empty());
}

} // namespace
} // namespace kumi::launch
