#include "kumi/launch/rendezvous.hpp"

#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>

namespace kumi::launch {
namespace {

using boot::Frame;
using boot::Kind;

Frame frame(Kind kind, Bytes body = {}, int descriptor = -1) {
    return {kind, {body.begin(), body.end()}, base::Descriptor(descriptor)};
}

Frame join_frame() {
    const boot::JoinBody body{boot::wire_version, 1};
    return frame(Kind::join, bytes_of(body));
}

Kind kind_of(const Reply& reply) {
    boot::FrameHeader header{};
    EXPECT_TRUE(read_value(reply.frame, header));
    return header.kind;
}

boot::WelcomeBody welcome_of(Rendezvous& rendezvous, std::uint32_t node) {
    const auto replies = rendezvous.on_frame(node, join_frame());
    boot::WelcomeBody welcome{};
    EXPECT_EQ(kind_of(replies.at(0)), Kind::welcome);
    EXPECT_TRUE(read_value(Bytes(replies.at(0).frame).subspan(sizeof(boot::FrameHeader)), welcome));
    return welcome;
}

TEST(Rendezvous, a_node_that_joins_learns_who_it_is) {
    Rendezvous rendezvous({.nodes = 3, .host = "here", .cores = 8});
    const auto replies = rendezvous.on_frame(2, join_frame());
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].node, 2u);
    EXPECT_EQ(kind_of(replies[0]), Kind::welcome);
    boot::WelcomeBody welcome{};
    ASSERT_TRUE(read_value(Bytes(replies[0].frame).subspan(sizeof(boot::FrameHeader)), welcome));
    EXPECT_EQ(welcome.node, 2u);
    EXPECT_EQ(welcome.nodes, 3u);
    EXPECT_EQ(welcome.cores_on_host, 8u);
    EXPECT_TRUE(rendezvous.has_joined(2));
    EXPECT_EQ(rendezvous.missing(), "0, 1");
}

TEST(Rendezvous, all_nodes_of_a_job_get_its_keys_and_another_job_has_others) {
    Rendezvous job({.nodes = 3, .host = "here", .keys = *base::make_job_keys()});
    Rendezvous other({.nodes = 1, .host = "here", .keys = *base::make_job_keys()});
    const base::JobKeys keys = welcome_of(job, 0).keys;
    EXPECT_NE(keys.token, 0u);
    for (const std::uint32_t node : {1u, 2u}) EXPECT_EQ(welcome_of(job, node).keys, keys);
    const base::JobKeys others = welcome_of(other, 0).keys;
    EXPECT_NE(others.token, keys.token);
    EXPECT_NE(others.secret, keys.secret);
}

TEST(Rendezvous, another_version_and_a_second_join_are_refused) {
    Rendezvous rendezvous({.nodes = 2, .host = "here"});
    const boot::JoinBody other{boot::wire_version + 1, 1};
    EXPECT_EQ(kind_of(rendezvous.on_frame(0, frame(Kind::join, bytes_of(other))).at(0)), Kind::refused);
    EXPECT_FALSE(rendezvous.has_joined(0));
    EXPECT_EQ(kind_of(rendezvous.on_frame(0, join_frame()).at(0)), Kind::welcome);
    EXPECT_EQ(kind_of(rendezvous.on_frame(0, join_frame()).at(0)), Kind::refused);
    EXPECT_EQ(kind_of(rendezvous.on_frame(1, frame(Kind::join)).at(0)), Kind::refused) << "a body cut short";
}

TEST(Rendezvous, everybody_gets_the_descriptor_of_node_zero_whoever_comes_first) {
    Rendezvous rendezvous({.nodes = 3, .host = "here"});
    EXPECT_TRUE(rendezvous.on_frame(2, frame(Kind::share)).empty());
    const auto replies = rendezvous.on_frame(0, frame(Kind::share, {}, ::open("/dev/null", O_RDONLY)));
    ASSERT_EQ(replies.size(), 2u);
    for (const Reply& reply : replies) EXPECT_EQ(reply.descriptor != nullptr, reply.node == 2);
    const auto late = rendezvous.on_frame(1, frame(Kind::share));
    ASSERT_EQ(late.size(), 1u);
    EXPECT_TRUE(late[0].descriptor);
}

TEST(Rendezvous, an_exchange_ends_when_the_last_has_given_its_bytes) {
    Rendezvous rendezvous({.nodes = 2, .host = "here"});
    for (int round = 0; round < 2; ++round) {
        EXPECT_TRUE(rendezvous.on_frame(1, frame(Kind::exchange, bytes_of(std::string_view("bb")))).empty());
        const auto replies = rendezvous.on_frame(0, frame(Kind::exchange, bytes_of(std::string_view("a"))));
        ASSERT_EQ(replies.size(), 2u);
        const Bytes body = Bytes(replies[1].frame).subspan(sizeof(boot::FrameHeader));
        EXPECT_EQ(text_of(body), std::string_view("\1\0\0\0a\2\0\0\0bb", 11));
    }
}

TEST(Rendezvous, traffic_that_names_nodes_which_do_not_exist_is_dropped) {
    Rendezvous rendezvous({.nodes = 2, .host = "here"});
    const boot::TrafficEntry entries[] = {{1, "shmem", 5, 40}, {77, "shmem", 5, 40}};
    rendezvous.on_frame(0, frame(Kind::traffic, std::as_bytes(std::span(entries))));
    ASSERT_EQ(rendezvous.traffic()[0].size(), 1u);
    EXPECT_EQ(rendezvous.traffic()[0][0].to, 1u);
}

TEST(Rendezvous, a_node_is_asked_for_its_counters_only_if_they_are_wanted) {
    Rendezvous wanted({.nodes = 1, .host = "here", .stats_wanted = true});
    Rendezvous not_wanted({.nodes = 1, .host = "here", .traffic_wanted = true});
    EXPECT_EQ(welcome_of(wanted, 0).stats_wanted, 1u);
    EXPECT_EQ(welcome_of(not_wanted, 0).stats_wanted, 0u);
}

TEST(Rendezvous, counters_about_nodes_which_do_not_exist_are_dropped) {
    Rendezvous rendezvous({.nodes = 2, .host = "here"});
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
    Rendezvous rendezvous({.nodes = 2, .host = "here"});
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
    Rendezvous rendezvous({.nodes = 20, .host = "here"});
    rendezvous.on_frame(1, join_frame());
    EXPECT_EQ(rendezvous.missing(), "0, 2, 3, 4, 5, 6, 7, 8 and 11 more");
}

} // namespace
} // namespace kumi::launch
