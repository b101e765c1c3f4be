#include "kumi/boot/kumi_run.hpp"

#include "kumi/boot/alone.hpp"

#include <gtest/gtest.h>
#include <initializer_list>
#include <sys/socket.h>
#include <unistd.h>

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
    welcome.nodes_on_host = 2;
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
        welcome.nodes_on_host = 1;
        welcome.host = host;
        welcome.hosts = hosts;
        EXPECT_FALSE(starter.welcome_node(welcome, std::string_view("a0\0b0\0", 6)));
    }
}

TEST(StartedSession, what_a_node_counted_is_reported_as_it_stands) {
    Starter starter;
    WelcomeBody welcome{};
    welcome.nodes = 1;
    welcome.nodes_on_host = 1;
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

/// A node of a job of two, welcomed.
struct Joined : Starter {
    Joined() {
        WelcomeBody welcome{};
        welcome.nodes = 2;
        welcome.nodes_on_host = 1;
        welcome.hosts = 1;
        auto made = welcome_node(welcome, std::string_view("here\0", 5));
        EXPECT_TRUE(made) << made.error().text();
        if (made) session = *std::move(made);
        EXPECT_EQ(heard().kind, Kind::join);
    }
    void answer(Kind kind, std::string_view body, int descriptor = -1) {
        EXPECT_TRUE(send_frame(ours.get(), kind, bytes_of(body), descriptor));
    }

    std::unique_ptr<Session> session;
};

TEST(StartedSession, a_welcome_that_lacks_one_byte_is_an_error) {
    for (const std::size_t missing : {0u, 1u}) {
        Starter starter;
        WelcomeBody welcome{};
        welcome.nodes = welcome.nodes_on_host = 1;
        const std::string_view whole = text_of(bytes_of(welcome));
        EXPECT_TRUE(send_frame(starter.ours.get(), Kind::welcome, bytes_of(whole.substr(missing))));
        const auto session = join_started_job(std::move(starter.nodes));
        ASSERT_FALSE(session);
        EXPECT_EQ(session.error().text(), missing == 0 ? "kumi run's welcome names no hosts: versions differ?"
                                                       : "kumi run's welcome is cut short: versions differ?");
    }
    Starter starter;
    WelcomeBody welcome{};
    welcome.nodes = welcome.nodes_on_host = 1;
    welcome.hosts = 1;
    EXPECT_FALSE(starter.welcome_node(welcome, "here")) << "a name without its zero";
}

TEST(StartedSession, a_node_has_a_number_below_their_count_and_a_slot_below_that_of_its_host) {
    const auto joins = [](std::uint32_t node, std::uint32_t nodes, std::uint32_t slot, std::uint32_t nodes_on_host) {
        Starter starter;
        WelcomeBody welcome{};
        welcome.node = node;
        welcome.nodes = nodes;
        welcome.slot = slot;
        welcome.nodes_on_host = nodes_on_host;
        welcome.hosts = 1;
        return starter.welcome_node(welcome, std::string_view("here\0", 5)).has_value();
    };
    EXPECT_TRUE(joins(2, 3, 1, 2));
    EXPECT_FALSE(joins(3, 3, 1, 2));
    EXPECT_FALSE(joins(2, 3, 2, 2));
    EXPECT_TRUE(joins(2, 3, 2, 3));
    EXPECT_FALSE(joins(2, 3, 2, 4)) << "more on this host than there are";
    EXPECT_FALSE(joins(0, 0, 0, 0));
}

/// Lengths and as many bytes, as `exchanged` has them.
std::string exchanged(std::initializer_list<std::string_view> parts) {
    std::string body;
    for (const std::string_view part : parts) {
        const auto length = static_cast<std::uint32_t>(part.size());
        (body += text_of(bytes_of(length))) += part;
    }
    return body;
}

TEST(StartedSession, an_exchange_brings_the_bytes_of_every_node) {
    Joined joined;
    joined.answer(Kind::exchanged, exchanged({"", "theirs"}));
    const auto all = joined.session->exchange(bytes_of(std::string_view("mine")));
    ASSERT_TRUE(all) << all.error().text();
    ASSERT_EQ(all->size(), 2u);
    EXPECT_TRUE((*all)[0].empty());
    EXPECT_EQ(text_of((*all)[1]), "theirs");
    const Frame question = joined.heard();
    EXPECT_EQ(question.kind, Kind::exchange);
    EXPECT_EQ(text_of(question.body), "mine");
}

TEST(StartedSession, an_exchange_with_a_node_too_few_or_too_many_or_a_byte_too_few_is_an_error) {
    const std::string good = exchanged({"a", "bc"});
    const std::pair<std::string, int> cases[] = {{exchanged({"a"}), 1},
                                                 {exchanged({"a", "b", ""}), 3},
                                                 {good.substr(0, good.size() - 1), 1},
                                                 {good.substr(0, good.size() - 3), 1},
                                                 {"", 0}};
    for (const auto& [body, count] : cases) {
        Joined joined;
        joined.answer(Kind::exchanged, body);
        const auto all = joined.session->exchange({});
        ASSERT_FALSE(all) << body.size() << " bytes";
        EXPECT_EQ(all.error().text(), fmt::format("kumi run passed on {} addresses instead of 2", count));
    }
}

TEST(StartedSession, a_descriptor_is_given_and_got) {
    Joined joined;
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const base::Descriptor out(ends[0]);
    base::Descriptor in(ends[1]);
    joined.answer(Kind::shared, "", in.get());
    const auto got = joined.session->share_on_host(base::Descriptor(::dup(out.get())));
    ASSERT_TRUE(got) << got.error().text();
    in.reset();
    ASSERT_EQ(::write(got->get(), "x", 1), 1);
    const Frame given = joined.heard();
    EXPECT_EQ(given.kind, Kind::share);
    char byte = 0;
    ASSERT_EQ(::read(given.descriptor.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
}

TEST(StartedSession, who_is_refused_knows_that_the_user_was_told) {
    Starter starter;
    ASSERT_TRUE(send_frame(starter.ours.get(), Kind::refused, bytes_of(std::string_view("the job is over"))));
    const auto session = join_started_job(std::move(starter.nodes));
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().text(), "the job is over");
    EXPECT_TRUE(session.error().told());
}

TEST(StartedSession, an_answer_to_another_question_is_an_error) {
    Joined joined;
    joined.answer(Kind::shared, "");
    const auto all = joined.session->exchange({});
    ASSERT_FALSE(all);
    EXPECT_NE(all.error().text().find("out of turn"), std::string::npos) << all.error().text();
    EXPECT_FALSE(all.error().told());
}

TEST(StartedSession, an_answer_that_came_before_the_end_counts_and_then_kumi_run_is_gone) {
    Joined joined;
    joined.answer(Kind::exchanged, exchanged({"", ""}));
    ASSERT_EQ(::shutdown(joined.ours.get(), SHUT_WR), 0);
    EXPECT_TRUE(joined.session->exchange({}));
    const auto gone = joined.session->exchange({});
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().text(), "kumi run, which started this node, is gone");
}

TEST(StartedSession, a_failure_is_reported_while_somebody_listens) {
    Joined joined;
    EXPECT_TRUE(joined.session->report_failure(error("no room")));
    const Frame failed = joined.heard();
    EXPECT_EQ(failed.kind, Kind::failed);
    EXPECT_EQ(text_of(failed.body), "no room");
    const TrafficEntry entry{.to = 1, .device = {}, .messages = 2, .bytes = 3};
    joined.session->report_traffic({&entry, 1});
    const Frame traffic = joined.heard();
    EXPECT_EQ(traffic.kind, Kind::traffic);
    EXPECT_EQ(traffic.body.size(), sizeof entry);
    joined.session->leave();
    EXPECT_EQ(joined.heard().kind, Kind::leave);
    joined.ours.reset();
    EXPECT_FALSE(joined.session->report_failure(error("no room")));
}

} // namespace
} // namespace kumi::boot
