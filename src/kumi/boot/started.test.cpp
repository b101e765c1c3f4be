#include "kumi/boot/started.hpp"

#include "kumi/boot/alone.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace kumi::boot {
namespace {

/// The other end of a node's socket. What it says may lie there before the node asks.
struct Starter {
    Starter() {
        int pair[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        ours.reset(pair[0]);
        nodes.reset(pair[1]);
    }

    /// `names` of the job's hosts, each ended by a zero.
    Result<std::unique_ptr<Session>> welcome_node(const WelcomeBody& welcome, std::string_view names) {
        std::string body(text_of(bytes_of(welcome)));
        body += names;
        EXPECT_TRUE(send_frame(ours.get(), Kind::welcome, bytes_of(std::string_view(body))));
        return join_started_job(std::move(nodes));
    }

    /// The next frame that the node has sent.
    Frame heard() {
        EXPECT_TRUE(reader.read_from(ours.get()));
        auto frame = reader.next();
        if (frame && *frame) return std::move(**frame);
        ADD_FAILURE() << "nothing was said";
        return {};
    }

    base::Descriptor ours, nodes;
    FrameReader reader;
};

TEST(StartedSession, a_node_knows_what_the_welcome_said) {
    Starter starter;
    WelcomeBody welcome{};
    welcome.node = 3;
    welcome.nodes = 5;
    welcome.slot = 1;
    welcome.host = 1;
    welcome.hosts = 2;
    welcome.keys = *base::make_job_keys();
    auto session = starter.welcome_node(welcome, std::string_view("a0\0b0\0", 6));
    ASSERT_TRUE(session) << session.error().text();
    EXPECT_EQ((*session)->standing().node, 3u);
    EXPECT_EQ((*session)->standing().nodes, 5u);
    EXPECT_EQ((*session)->standing().slot, 1u);
    EXPECT_EQ((*session)->standing().host, "b0");
    EXPECT_EQ((*session)->standing().hosts, (std::vector<std::string>{"a0", "b0"}));
    EXPECT_EQ((*session)->standing().keys, welcome.keys);
    EXPECT_EQ(starter.heard().kind, Kind::join);
}

TEST(StartedSession, a_welcome_that_does_not_name_the_nodes_host_is_an_error) {
    for (const auto& [host, hosts] : {std::pair{0u, 1u}, {2u, 2u}, {0u, 3u}}) {
        Starter starter;
        WelcomeBody welcome{};
        welcome.nodes = 2;
        welcome.host = host;
        welcome.hosts = hosts;
        EXPECT_FALSE(starter.welcome_node(welcome, std::string_view("a0\0b0\0", 6)));
    }
}

TEST(StartedSession, what_a_node_counted_is_reported_as_it_stands) {
    Starter starter;
    WelcomeBody welcome{};
    welcome.nodes = 1;
    welcome.hosts = 1;
    welcome.stats_wanted = 1;
    auto session = starter.welcome_node(welcome, std::string_view("here\0", 5));
    ASSERT_TRUE(session) << session.error().text();
    EXPECT_TRUE((*session)->standing().stats_wanted);
    EXPECT_FALSE((*session)->standing().traffic_wanted);
    StatsEntry entry{.peer = whole_channel, .device = {}, .name = {}, .value = 42};
    put_text(entry.device, "udp");
    put_text(entry.name, "a_name_that_is_much_too_long_for_its_field");
    (*session)->report_stats({&entry, 1});
    EXPECT_EQ(starter.heard().kind, Kind::join);
    const Frame frame = starter.heard();
    EXPECT_EQ(frame.kind, Kind::stats);
    StatsEntry heard{};
    ASSERT_EQ(frame.body.size(), sizeof heard);
    ASSERT_TRUE(read_value(frame.body, heard));
    EXPECT_EQ(heard.peer, whole_channel);
    EXPECT_EQ(text_in(heard.device), "udp");
    EXPECT_EQ(text_in(heard.name), "a_name_that_is_much_too_long_fo");
    EXPECT_EQ(heard.value, 42u);
}

TEST(AloneSession, a_job_of_one_node_has_keys_of_its_own) {
    auto one = make_alone_session();
    auto other = make_alone_session();
    ASSERT_TRUE(one && other);
    EXPECT_NE((*one)->standing().keys.token, 0u);
    EXPECT_NE((*one)->standing().keys, (*other)->standing().keys);
}

} // namespace
} // namespace kumi::boot
