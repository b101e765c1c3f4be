#include "kumi/launch/remote/remote_host.hpp"

#include "kumi/launch/host/processes/environment.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kumi::launch::remote {
namespace {

/// Writes down all that a host tells.
class Heard final : public RemoteListener {
public:
    void on_started(std::uint32_t node, pid_t pid) override { add("started {} {}", node, pid); }
    void on_frame(std::uint32_t node, boot::Frame frame) override {
        add("frame {} {} {}", node, static_cast<int>(frame.kind), text_of(frame.body));
    }
    void on_output(std::uint32_t node, host::Stream stream, std::string_view text) override {
        add("{} {} {}", stream == host::Stream::out ? "out" : "err", node, text);
    }
    void on_end(std::uint32_t node, int status) override { add("end {} {}", node, status); }
    void on_host_started(std::uint32_t host, std::uint32_t cores) override { add("host {} has {} cores", host, cores); }
    void on_host_lost(std::uint32_t host, const std::string& why) override { add("lost {}: {}", host, why); }
    void on_clock_difference(std::uint32_t host, std::int64_t nanoseconds) override {
        add("clock {} {} s", host, (nanoseconds + (nanoseconds > 0 ? 1 : -1) * 500'000'000) / 1'000'000'000);
    }
    void on_input_taken(std::uint32_t bytes) override { add("taken {}", bytes); }

    std::vector<std::string> said;

private:
    template <class... Arguments>
    void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        said.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    }
};

/// Host 4 of a job, with its nodes 2 and 3. Its agent is a script: what it prints is what the host says.
class Remote : public testing::Test {
protected:
    Remote() {
        ::signal(SIGPIPE, SIG_IGN);
        std::filesystem::create_directory(folder_);
    }
    ~Remote() override {
        host_.reset();
        children_.reset(); // agents are gone, which write to the folder
        std::filesystem::remove_all(folder_);
    }

    void say(Bytes bytes) { std::ofstream(folder_ / "said", std::ios::app | std::ios::binary) << text_of(bytes); }
    void say(std::string_view text) { say(bytes_of(text)); }
    void say(LinkKind kind, std::uint32_t node = 0, std::uint32_t value = 0, std::string_view body = {}) {
        say(Bytes(encode(kind, node, value, bytes_of(body))));
    }
    void say_hello(std::int64_t seconds_ahead = 0) {
        const std::chrono::nanoseconds clock =
            std::chrono::system_clock::now().time_since_epoch() + std::chrono::seconds(seconds_ahead);
        say(encode(Hello{full_version("1.0"), clock.count(), 6}));
    }
    void say_started(std::vector<pid_t> pids) {
        say(Bytes(encode(LinkKind::started, 0, 0, std::as_bytes(std::span(pids)))));
    }

    /// Starts the agent: a shell that runs `script` in the folder. Unless told otherwise it says all that was to be
    /// said and stays as long as it is listened to.
    void start(const std::string& script = "cat said; exec cat > heard") {
        RemoteOptions options{.index = 4,
                              .name = "b0",
                              .helper = {},
                              .agent = "agent",
                              .kumi_path = "/opt/kumi",
                              .version = "1.0",
                              .order = {}};
        options.helper.program = "/bin/sh";
        options.helper.arguments = {"-c", fmt::format("cd '{}' && {}", folder_.string(), script)};
        options.helper.environment = host::own_environment();
        options.order.first = 2;
        options.order.count = 2;
        options.order.program = "program";
        host_.emplace(std::move(options), *poller_, *children_, heard_);
        const auto started = host_->start();
        ASSERT_TRUE(started) << started.error().text();
    }
    /// Serves events until `done`.
    template <class Done>
    bool comes(Done&& done) {
        for (const Instant deadline = now() + std::chrono::seconds(20); !done() && now() < deadline;) {
            for (const host::Event& event : poller_->wait(now() + std::chrono::milliseconds(2)))
                host_->on_event(event.source, event.index);
            children_->reap([&](pid_t pid, int status) { host_->on_child_end(pid, status); });
        }
        return done();
    }
    bool hears(const std::string& text) {
        return comes([&] { return !heard_.said.empty() && heard_.said.back() == text; });
    }
    /// What the host was told, when its agent has ended.
    std::vector<LinkFrame> told() {
        EXPECT_TRUE(comes([&] { return host_->is_over(); }));
        std::ifstream file(folder_ / "heard", std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        LinkReader reader;
        reader.add(bytes_of(std::string_view(text)));
        std::vector<LinkFrame> frames;
        for (auto frame = reader.next(); frame && *frame; frame = reader.next()) frames.push_back(std::move(**frame));
        return frames;
    }

    const std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("kumi-test-remote-" + std::to_string(::getpid()));
    Result<host::Poller> poller_ = host::Poller::open();
    std::optional<host::Children> children_{*host::Children::open()};
    Heard heard_;
    std::optional<RemoteHost> host_;
};

using Lines = std::vector<std::string>;

TEST_F(Remote, what_its_nodes_do_is_told_and_what_others_would_do_is_not) {
    say("Welcome!\n");
    say_hello();
    say(LinkKind::out, 2, 0, "too early");
    say_started({11, 12});
    say_started({13, 14}); // again
    for (const std::uint32_t node : {1u, 2u, 3u, 4u, 0xffffffffu}) {
        say(LinkKind::frame, node, 6, "bytes");
        say(LinkKind::out, node, 0, "o");
        say(LinkKind::err, node, 0, "e");
        say(LinkKind::ended, node, 256);
    }
    say(LinkKind::hold); // which only kumi run says
    say(LinkKind::taken, 0, 17);
    start();
    EXPECT_TRUE(hears("taken 17"));
    EXPECT_EQ(heard_.said,
              (Lines{"started 2 11", "started 3 12", "host 4 has 6 cores", "frame 2 6 bytes", "out 2 o", "err 2 e",
                     "end 2 256", "frame 3 6 bytes", "out 3 o", "err 3 e", "end 3 256", "taken 17"}));
    EXPECT_TRUE(host_->has_started());
    EXPECT_FALSE(host_->is_over());
}

TEST_F(Remote, a_list_of_processes_that_is_too_short_or_too_long_starts_nothing) {
    say_hello();
    say_started({11});
    say_started({11, 12, 13});
    say(LinkKind::taken, 0, 1);
    start();
    EXPECT_TRUE(hears("taken 1"));
    EXPECT_EQ(heard_.said, Lines{"taken 1"});
    EXPECT_FALSE(host_->has_started());
}

TEST_F(Remote, noise_before_the_hello_has_a_limit) {
    say(std::string(noise_bytes_max, 'x')); // as much as may be
    say_hello();
    say_started({11, 12});
    start();
    EXPECT_TRUE(hears("host 4 has 6 cores"));
}

TEST_F(Remote, more_noise_than_that_is_not_kumi) {
    say("Who is there?\nx");
    say(std::string(noise_bytes_max - 14, 'x')); // one more than may be
    start();
    EXPECT_TRUE(
        hears("lost 4: host b0: not Kumi's helper answers by agent, but something that starts with \"Who is there?\""));
    EXPECT_TRUE(comes([&] { return host_->is_over(); })) << "its agent is ended";
}

TEST_F(Remote, another_version_is_refused_and_the_agent_ended) {
    say(encode(Hello{full_version("1.1"), 0, 6}));
    say_started({11, 12});
    start();
    EXPECT_TRUE(comes([&] { return host_->is_over(); }));
    EXPECT_EQ(heard_.said,
              Lines{fmt::format(
                  "lost 4: host b0 has Kumi {} in /opt/kumi, and this is Kumi {}: install the same on all hosts",
                  full_version("1.1"), full_version("1.0"))});
}

TEST_F(Remote, garbage_after_the_hello_loses_the_host) {
    say_hello();
    say(std::string(16, '\xff'));
    start();
    EXPECT_TRUE(hears("lost 4: host b0 is lost: what came is no frame of this version of Kumi"));
}

TEST_F(Remote, a_refusal_is_told_with_the_hosts_name) {
    say_hello();
    say(LinkKind::refused, 0, 0, "no such program");
    start();
    EXPECT_TRUE(hears("lost 4: host b0: no such program"));
}

TEST_F(Remote, a_clock_that_differs_by_more_than_two_seconds_is_told) {
    for (const std::int64_t seconds : {-60, -1, 1, 60}) {
        heard_.said.clear();
        std::filesystem::remove(folder_ / "said");
        say_hello(seconds);
        say_started({11, 12});
        start();
        EXPECT_TRUE(hears("host 4 has 6 cores"));
        EXPECT_EQ(heard_.said.size(), seconds == 60 || seconds == -60 ? 4u : 3u) << seconds;
        if (heard_.said.size() == 4) {
            EXPECT_TRUE(heard_.said[0].starts_with(seconds > 0 ? "clock 4 " : "clock 4 -")) << heard_.said[0];
        }
        host_.reset();
    }
}

TEST_F(Remote, how_its_agent_ended_is_told_with_the_last_that_it_said) {
    const auto end_of = [&](const std::string& script) {
        heard_.said.clear();
        start(script);
        EXPECT_TRUE(comes([&] { return host_->is_over(); }));
        return heard_.said.size() == 1 ? heard_.said[0] : fmt::format("{} things", heard_.said.size());
    };
    EXPECT_EQ(end_of("echo first >&2; echo 'last line ' >&2; echo >&2; exit 255"),
              "lost 4: host b0: agent ended with code 255: last line");
    EXPECT_EQ(end_of("exit 0"), "lost 4: host b0: agent ended with code 0");
    EXPECT_EQ(end_of("kill -9 $$"), "lost 4: host b0: agent was killed by signal 9 (Killed)");
    EXPECT_EQ(end_of("exit 127"), "lost 4: host b0: /opt/kumi cannot be run there, install Kumi at the same place on "
                                  "all hosts (agent ended with code 127)");
    EXPECT_EQ(end_of("exit 126").find("lost 4: host b0: /opt/kumi cannot be run there"), 0u);
    EXPECT_EQ(end_of("exit 125"), "lost 4: host b0: agent ended with code 125");
    const std::string endless = end_of("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1");
    EXPECT_EQ(endless, "lost 4: host b0: agent ended with code 1: " + std::string(4096, 'x'))
        << "no more of it is kept";
}

TEST_F(Remote, an_agent_that_ends_after_all_was_said_is_no_loss) {
    say_hello();
    say_started({11, 12});
    say(LinkKind::ended, 2, 0);
    say(LinkKind::ended, 3, 0);
    say(LinkKind::done);
    start("cat said; exit 1");
    EXPECT_TRUE(comes([&] { return host_->is_over(); }));
    EXPECT_EQ(heard_.said.back(), "end 3 0");
}

TEST_F(Remote, an_agent_that_ends_before_that_is_a_loss_though_its_last_words_are_heard) {
    say_hello();
    say_started({11, 12});
    say(LinkKind::ended, 2, 0);
    start("cat said; exit 1");
    EXPECT_TRUE(comes([&] { return host_->is_over(); }));
    ASSERT_GE(heard_.said.size(), 2u);
    EXPECT_EQ(heard_.said[heard_.said.size() - 2], "end 2 0");
    EXPECT_EQ(heard_.said.back(), "lost 4: host b0 is lost: agent ended with code 1");
}

TEST_F(Remote, an_agent_that_stays_after_all_was_said_is_ended_at_its_deadline) {
    say_hello();
    say_started({11, 12});
    say(LinkKind::done);
    start("cat said; exec sleep 1000");
    EXPECT_TRUE(hears("host 4 has 6 cores"));
    EXPECT_TRUE(comes([&] { return host_->deadline() != never; }));
    host_->on_deadline(host_->deadline() - Duration{1});
    EXPECT_NE(host_->deadline(), never) << "not before";
    host_->on_deadline(host_->deadline());
    EXPECT_TRUE(comes([&] { return host_->is_over(); }));
    EXPECT_EQ(heard_.said.back(), "host 4 has 6 cores") << "no loss";
    EXPECT_EQ(host_->deadline(), never);
}

TEST_F(Remote, it_is_told_its_order_at_once_and_then_what_comes) {
    say_hello();
    say_started({11, 12});
    start("cat said; exec head -c 1000000 > heard");
    ASSERT_TRUE(hears("host 4 has 6 cores"));
    host_->hold_output(false); // as it is
    host_->hold_output(true);
    host_->hold_output(true);
    host_->hold_output(false);
    host_->signal(SIGUSR1);
    host_->signal(SIGTERM);
    host_->send_input(bytes_of(std::string_view("typed")));
    host_->send_input({});
    const auto welcome = boot::encode(boot::Kind::welcome, bytes_of(std::string_view("you")));
    host_->send(3, std::make_shared<const std::vector<std::byte>>(welcome));
    host_->send_input(std::vector<std::byte>(1'000'000)); // ends what listens
    const auto frames = told();
    std::string text;
    for (const LinkFrame& frame : frames)
        text += fmt::format("{} {} {} {}; ", static_cast<int>(frame.kind), frame.node, frame.value,
                            frame.kind == LinkKind::job ? "" : text_of(frame.body));
    const auto number = [](LinkKind kind) { return static_cast<int>(kind); };
    EXPECT_EQ(text,
              fmt::format("{} 0 0 ; {} 0 0 ; {} 0 0 ; {} 0 {} ; {} 0 {} ; {} 0 0 typed; {} 0 0 ; {} 3 {} you; ",
                          number(LinkKind::job), number(LinkKind::hold), number(LinkKind::resume),
                          number(LinkKind::signal), SIGUSR1, number(LinkKind::signal), SIGTERM, number(LinkKind::input),
                          number(LinkKind::input), number(LinkKind::frame), static_cast<int>(boot::Kind::welcome)));
    const auto order = decode_order(frames.at(0).body);
    ASSERT_TRUE(order);
    EXPECT_EQ(order->first, 2u);
    EXPECT_EQ(order->count, 2u);
    EXPECT_EQ(order->program, "program");
}

TEST_F(Remote, a_host_that_has_not_answered_is_ended_by_signals_that_end_and_by_no_others) {
    for (const int ends : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGKILL}) {
        start("exec sleep 1000");
        host_->signal(SIGUSR1);
        host_->signal(SIGCONT);
        const Instant soon = now() + std::chrono::milliseconds(20);
        comes([&] { return now() > soon; });
        EXPECT_FALSE(host_->is_over());
        host_->signal(ends);
        EXPECT_TRUE(comes([&] { return host_->is_over(); })) << ends;
        EXPECT_EQ(heard_.said.back(), "lost 4: host b0: agent was killed by signal 9 (Killed)");
    }
}

} // namespace
} // namespace kumi::launch::remote
