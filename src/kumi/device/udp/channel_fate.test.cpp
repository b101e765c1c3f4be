// What becomes of peers that die, stop or cannot be reached, and of the messages to them.
#include "kumi/device/udp/channel.hpp"

#include "kumi/device/udp/udp.hpp"
#include "kumi/lab/network/namespaces.hpp"
#include "kumi/pm/wait.hpp"
#include "loopback/ends.hpp"
#include "loopback/sanitized.hpp"
#include "skips.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kumi::device::udp {
namespace {

using namespace std::chrono_literals;
using loopback::patience;
using loopback::value_of;

using Channels = std::vector<std::unique_ptr<pm::Channel>>;

/// Sends back what comes until `done(answered)`. A handler must not wait for room, so answers may queue here.
void echo(pm::Channel& channel, base::FunctionRef<bool(std::uint64_t)> done) {
    std::deque<std::vector<std::byte>> answers;
    std::uint64_t answered = 0;
    const auto take = [&](pm::Message& message) {
        answers.emplace_back(message.bytes().begin(), message.bytes().end());
    };
    const auto answer = [&] {
        for (; !answers.empty() && channel.try_send(0, Bytes(answers.front())); ++answered) answers.pop_front();
        return done(answered);
    };
    for (const Instant deadline = now() + 2 * patience; now() < deadline;)
        if (pm::poll_until(channel, take, answer, {}, now() + 10ms)) return;
}

/// Node 1 in a process of its own, which echoes `messages` and ends without a word.
class OtherProcess {
public:
    OtherProcess(Channels& channels, std::uint64_t messages) {
        std::fflush(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            echo(*channels[1], [&](std::uint64_t answered) { return answered >= messages; });
            ::_exit(0);
        }
        channels[1].reset(); // it never talked, and so says no farewell
    }
    OtherProcess(const OtherProcess&) = delete;
    OtherProcess& operator=(const OtherProcess&) = delete;
    ~OtherProcess() {
        if (pid_ > 0) end();
    }

    void signal(int number) const { ::kill(pid_, number); }
    void end() {
        ::kill(pid_, SIGKILL);
        wait();
    }
    void wait() { ::waitpid(std::exchange(pid_, -1), nullptr, 0); }

private:
    pid_t pid_;
};

/// Sends numbers, and takes the answers.
struct Questions {
    pm::Channel& channel;
    std::uint64_t asked = 0;
    std::uint64_t answered = 0;

    /// Asks when there is room: a slow sender puts each question into a packet of its own, and these are limited.
    bool ask() {
        bool sent = false;
        run([&] { return (sent = channel.try_send(1, bytes_of(asked))) || channel.lost(1); });
        asked += sent ? 1 : 0;
        return sent;
    }
    bool run(base::FunctionRef<bool()> done, Duration limit = patience) {
        const auto take = [&](pm::Message& message) {
            std::uint64_t number = 0;
            EXPECT_TRUE(read_value(message.bytes(), number) && number == answered) << "not the next answer";
            ++answered;
        };
        return pm::poll_until(channel, take, done, {}, now() + limit);
    }
    const char* fate() const { return reliable::name_of(dynamic_cast<UdpChannel&>(channel).endpoint().gone(1)); }
    bool all_answered() {
        return run([&] { return answered == asked || channel.lost(1); }) && answered == asked;
    }
};

TEST(UdpFate, a_killed_peer_is_lost_within_a_second_after_something_is_sent_to_it) {
    auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"), {.watch_every = 0s});
    ASSERT_TRUE(channels) << channels.error().text();
    OtherProcess other(*channels, ~std::uint64_t{0});
    Questions questions{*channels->front()};
    ASSERT_TRUE(questions.ask());
    ASSERT_TRUE(questions.all_answered());
    questions.run([] { return false; }, 50ms); // it has the acknowledgement of its answer
    other.end();
    questions.run([&] { return questions.channel.lost(1); }, 700ms);
    EXPECT_FALSE(questions.channel.lost(1)) << "nobody has asked";
    questions.ask();
    const Instant start = now();
    EXPECT_TRUE(questions.run([&] { return questions.channel.lost(1); }));
    EXPECT_GE(now() - start, 300ms) << "its host alone says so";
    EXPECT_LT(now() - start, sanitized ? 5s : 1s);
    EXPECT_FALSE(questions.ask());
    const Instant closing = now();
    channels->front().reset();
    EXPECT_LT(now() - closing, 3s) << "it waited for somebody who is gone";
}

TEST(UdpFate, a_peer_that_is_killed_is_lost_within_a_second_though_nothing_is_sent_to_it) {
    for (const bool encrypt : {false, true}) {
        if (encrypt && !crypto::is_available()) continue;
        auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"), {.encrypt = encrypt});
        ASSERT_TRUE(channels) << channels.error().text();
        OtherProcess other(*channels, ~std::uint64_t{0});
        Questions questions{*channels->front()};
        questions.run([&] { return questions.channel.lost(1); }, 700ms);
        ASSERT_FALSE(questions.channel.lost(1)) << "it lives, though nobody talks";
        other.end();
        const Instant start = now();
        EXPECT_TRUE(questions.run([&] { return questions.channel.lost(1); }));
        EXPECT_LT(now() - start, sanitized ? 5s : 1s);
    }
}

TEST(UdpFate, a_peer_that_leaves_without_a_look_at_what_it_was_sent_is_lost_at_once) {
    auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"), {.watch_every = 0s});
    ASSERT_TRUE(channels) << channels.error().text();
    Questions questions{*channels->front()};
    ASSERT_TRUE(questions.ask());
    questions.channel.flush();
    (*channels)[1].reset();
    EXPECT_TRUE(questions.run([&] { return questions.channel.lost(1); }, 200ms));
    EXPECT_STREQ(questions.fate(), "left");
}

TEST(UdpFate, a_peer_that_leaves_is_lost_at_once_to_those_that_have_all_though_another_is_stopped) {
    auto channels = open_in_one_process(std::vector<std::string>(3, "127.0.0.1"));
    ASSERT_TRUE(channels) << channels.error().text();
    pm::Channel &first = *(*channels)[0], &stopped = *(*channels)[2];
    const auto ignore = [](pm::Message&) {};
    const std::uint64_t word = 1;
    for (const Node to : {0u, 2u}) ASSERT_TRUE((*channels)[1]->try_send(to, bytes_of(word)));
    std::thread leaver([&] { (*channels)[1].reset(); });
    EXPECT_TRUE(pm::poll_until(first, ignore, [&] { return first.lost(1); }, {}, now() + (sanitized ? 5s : 1s)));
    EXPECT_TRUE(pm::poll_until(stopped, ignore, [&] { return stopped.lost(1); }, {}, now() + patience));
    leaver.join();
}

TEST(UdpFate, a_peer_that_leaves_is_lost_at_once_after_its_last_message) {
    auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"));
    ASSERT_TRUE(channels) << channels.error().text();
    std::thread other([&] {
        echo(*(*channels)[1], [](std::uint64_t answered) { return answered == 100; });
        (*channels)[1].reset();
    });
    Questions questions{*channels->front()};
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(questions.ask());
    EXPECT_TRUE(questions.run([&] { return questions.channel.lost(1); }));
    EXPECT_EQ(questions.answered, 100u);
    other.join();
}

TEST(UdpFate, a_peer_that_is_stopped_for_longer_than_silence_max_is_not_lost_and_answers_when_it_goes_on) {
    auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"), {.silence_max = 400ms});
    ASSERT_TRUE(channels) << channels.error().text();
    OtherProcess other(*channels, ~std::uint64_t{0});
    Questions questions{*channels->front()};
    ASSERT_TRUE(questions.ask());
    ASSERT_TRUE(questions.all_answered());
    other.signal(SIGSTOP);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(questions.ask());
    questions.run([&] { return questions.channel.lost(1); }, 1200ms);
    EXPECT_FALSE(questions.channel.lost(1)) << questions.fate();
    other.signal(SIGCONT);
    EXPECT_TRUE(questions.all_answered());
    EXPECT_FALSE(questions.channel.lost(1)) << questions.fate();
}

TEST(UdpFate, a_node_that_was_stopped_itself_finds_its_peers_as_they_were) {
    auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"), {.silence_max = 300ms});
    ASSERT_TRUE(channels) << channels.error().text();
    OtherProcess other(*channels, ~std::uint64_t{0});
    Questions questions{*channels->front()};
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 20; ++i) ASSERT_TRUE(questions.ask());
        std::this_thread::sleep_for(700ms); // as good as stopped: nothing happens in the background
        EXPECT_TRUE(questions.all_answered()) << questions.fate();
    }
    EXPECT_FALSE(questions.channel.lost(1));
}

// ---- what the user is told

std::size_t times_in(const std::string& text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

/// The seconds that are told behind `part`; -1 unless `text` has it exactly once.
double seconds_behind(const std::string& text, std::string_view part) {
    return times_in(text, part) == 1 ? std::atof(text.c_str() + text.find(part) + part.size()) : -1;
}

/// The other node answers a question, is stopped, and is asked again.
void ask_one_that_stops(Questions& questions, const OtherProcess& other) {
    ASSERT_TRUE(questions.ask());
    ASSERT_TRUE(questions.all_answered());
    other.signal(SIGSTOP);
    ASSERT_TRUE(questions.ask());
}

constexpr std::string_view not_answered = "udp: node 1 at 127.0.0.1 has not answered for ";

TEST(UdpFate, a_peer_that_does_not_answer_for_two_seconds_is_told_of_and_when_it_answers_again) {
    auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"));
    ASSERT_TRUE(channels) << channels.error().text();
    OtherProcess other(*channels, ~std::uint64_t{0});
    Questions questions{*channels->front()};
    ASSERT_NO_FATAL_FAILURE(ask_one_that_stops(questions, other));
    const std::string before = loopback::said_by([&] { questions.run([] { return false; }, 1500ms); });
    EXPECT_EQ(before, "") << "it is too early";
    // A node that sleeps looks for silent peers when a timer ends, and timers are up to a second apart.
    const std::string silent = loopback::said_by([&] { questions.run([] { return false; }, 2000ms); });
    EXPECT_GE(seconds_behind(silent, not_answered), 2.0) << silent;
    EXPECT_LT(seconds_behind(silent, not_answered), 3.5) << silent;
    EXPECT_EQ(times_in(silent, "\n"), 1u) << silent;
    other.signal(SIGCONT);
    const std::string back = loopback::said_by([&] {
        EXPECT_TRUE(questions.all_answered());
        questions.run([] { return false; }, 500ms);
    });
    const double seconds = seconds_behind(back, "udp: node 1 at 127.0.0.1 answers again, after ");
    EXPECT_GE(seconds, 3.5) << back;
    EXPECT_LT(seconds, 4.5) << back;
    EXPECT_EQ(times_in(back, "\n"), 1u) << back;
}

TEST(UdpFate, a_silent_peer_that_dies_is_not_said_to_answer_again) {
    auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"));
    ASSERT_TRUE(channels) << channels.error().text();
    OtherProcess other(*channels, ~std::uint64_t{0});
    Questions questions{*channels->front()};
    ASSERT_NO_FATAL_FAILURE(ask_one_that_stops(questions, other));
    const std::string said = loopback::said_by([&] {
        questions.run([] { return false; }, 3500ms);
        other.end();
        questions.run([&] { return channels->front()->lost(1); }, patience);
        questions.run([] { return false; }, 300ms);
    });
    EXPECT_TRUE(channels->front()->lost(1));
    EXPECT_EQ(times_in(said, not_answered), 1u) << said;
    EXPECT_EQ(times_in(said, "answers again"), 0u) << said;
}

/// Node 0 sends 1 MiB to node 1 and both poll until one is given up, and then for a moment.
std::string said_when_memory_is_short_on(Node node) {
    const auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"), {.memory_wait_max = 1s});
    EXPECT_TRUE(channels);
    dynamic_cast<UdpChannel&>(*(*channels)[node]).limit_memory(1000);
    pm::Channel &sender = *(*channels)[0], &receiver = *(*channels)[1];
    const std::vector<std::byte> message(std::size_t{1} << 20);
    return loopback::said_by([&] {
        bool is_sent = false;
        const auto refuse = [](pm::Message&) { ADD_FAILURE() << "there was no memory for it"; };
        const auto step = [&] {
            if (!is_sent) is_sent = sender.try_send(1, Bytes(message));
            sender.poll(refuse, pm::all_messages);
            receiver.poll(refuse, pm::all_messages);
        };
        const Instant deadline = now() + patience;
        while (!sender.lost(1) && now() < deadline) step();
        EXPECT_TRUE(sender.lost(1));
        for (const Instant end = now() + 200ms; now() < end;) step();
    });
}

TEST(UdpFate, a_receiver_without_memory_for_a_message_and_its_sender_say_so_once) {
    const std::string said = said_when_memory_is_short_on(1);
    EXPECT_EQ(times_in(said, "udp: there has been no memory for a message of 1 MiB from node 0 at 127.0.0.1 for 1 s, "
                             "so that node is given up"),
              1u)
        << said;
    EXPECT_EQ(times_in(said, "udp: node 1 at 127.0.0.1 has no memory for a message, and has given this node up"),
              1u)
        << said;
    EXPECT_EQ(times_in(said, "\n"), 2u) << said;
}

TEST(UdpFate, a_sender_without_memory_for_a_message_says_so_once) {
    const std::string said = said_when_memory_is_short_on(0);
    EXPECT_EQ(times_in(said, "udp: there has been no memory for a message of 1 MiB to node 1 at 127.0.0.1 for 1 s, so "
                             "that node is given up"),
              1u)
        << said;
}

// ---- between two hosts

class UdpHosts : public testing::Test {
protected:
    void SetUp() override {
        if (const auto reason = probes::no_two_hosts()) KUMI_SKIP(*reason);
        ASSERT_TRUE(hosts_) << hosts_.error().text();
    }
    void TearDown() override {
        if (other_.joinable()) stop();
        if (!hosts_) return;
        EXPECT_TRUE(hosts_->leave());
    }

    /// Node 0 on host 0 asks here; node 1 on host 1 answers in a thread until stop().
    void start(const Options& options) {
        const std::vector<std::string> addresses{hosts_->address(0), hosts_->address(1)};
        auto opened = open_in_one_process(addresses, options, [&](pm::Node node) { return hosts_->enter(node); });
        ASSERT_TRUE(opened) << opened.error().text();
        channels_ = *std::move(opened);
        other_ = std::thread([this] {
            EXPECT_TRUE(hosts_->enter(1));
            echo(*channels_[1], [&](std::uint64_t) { return stopped_.load(); });
            channels_[1].reset();
            closed_ = true;
            channels_[0]->wake();
        });
        ASSERT_TRUE(hosts_->enter(0));
    }
    void stop() {
        stopped_ = true;
        // It waits for the acknowledgement of its last answers.
        pm::poll_until(*channels_[0], [](pm::Message&) {}, [&] { return closed_.load(); }, {}, now() + patience);
        other_.join();
        channels_.clear();
    }

    Result<lab::TwoHosts> hosts_ = lab::TwoHosts::make();
    Channels channels_;
    std::atomic<bool> stopped_{false}, closed_{false};
    std::thread other_;
};

TEST_F(UdpHosts, a_cable_that_was_out_for_a_while_costs_no_message) {
    start({});
    if (HasFatalFailure()) return;
    Questions questions{*channels_[0]};
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(questions.ask());
    EXPECT_TRUE(questions.all_answered());
    for (const unsigned host : {0u, 1u}) { // its own end, and that of the other
        ASSERT_TRUE(hosts_->link(host, false));
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(questions.ask());
        questions.run([] { return false; }, 300ms);
        ASSERT_TRUE(hosts_->link(host, true));
        EXPECT_TRUE(questions.all_answered()) << questions.answered << " of " << questions.asked;
    }
    EXPECT_FALSE(questions.channel.lost(1));
}

TEST_F(UdpHosts, a_peer_whose_host_does_not_answer_is_lost_after_the_stated_time) {
    start({.silence_max = 500ms});
    if (HasFatalFailure()) return;
    Questions questions{*channels_[0]};
    ASSERT_TRUE(questions.ask());
    EXPECT_TRUE(questions.all_answered());
    ASSERT_TRUE(hosts_->link(1, false));
    questions.ask();
    const Instant start = now();
    EXPECT_TRUE(questions.run([&] { return questions.channel.lost(1); }));
    EXPECT_GE(now() - start, 400ms);
}

/// Messages to the other host that come back, and must be as they were.
struct Echoed {
    pm::Channel& channel;
    std::uint64_t asked = 0, arrived = 0, wrong = 0;

    void ask_and_wait(int messages) {
        const auto take = [&](pm::Message& message) {
            wrong += std::ranges::equal(message.bytes(), loopback::message_of(0, arrived, 20'000)) ? 0 : 1;
            ++arrived;
        };
        for (int i = 0; i < messages; ++i) {
            const auto message = loopback::message_of(0, asked, 20'000);
            EXPECT_TRUE(pm::poll_until(
                channel, take, [&] { return channel.try_send(1, Bytes(message)); }, {}, now() + patience));
            ++asked;
        }
        EXPECT_TRUE(pm::poll_until(
            channel, take, [&] { return arrived == asked; }, {}, now() + patience))
            << arrived << " of " << asked;
        EXPECT_EQ(wrong, 0u);
    }
    std::uint32_t packet_bytes() const { return dynamic_cast<UdpChannel&>(channel).endpoint().packet_bytes(1); }
};

TEST_F(UdpHosts, a_path_that_carries_less_than_before_costs_no_message) {
    start({});
    if (HasFatalFailure()) return;
    Echoed echoed{*channels_[0]};
    echoed.ask_and_wait(20);
    for (const unsigned host : {0u, 1u}) {
        const auto narrowed = hosts_->set_mtu(host, 1000);
        EXPECT_TRUE(narrowed) << narrowed.error().text();
    }
    echoed.ask_and_wait(20);
    EXPECT_LE(echoed.packet_bytes(), 1000u - 28);
}

/// Host 1 drops frames of more than its 1,500 bytes without a word, as a switch does.
TEST_F(UdpHosts, large_packets_that_vanish_on_the_way_are_not_used_and_the_user_is_told_once) {
    for (const bool encrypt : {false, true}) {
        if (encrypt && !crypto::is_available()) continue;
        SCOPED_TRACE(encrypt);
        ASSERT_TRUE(hosts_->set_mtu(0, 9000));
        std::uint32_t bytes = 0;
        const std::string said = loopback::said_by([&] {
            start({.encrypt = encrypt, .offload = false});
            if (HasFatalFailure()) return;
            Echoed echoed{*channels_[0]};
            const Instant deadline = now() + patience;
            const auto& endpoint = dynamic_cast<UdpChannel&>(*channels_[0]).endpoint();
            while (endpoint.path(1).bytes() + 40 < endpoint.path(1).too_large() && now() < deadline)
                echoed.ask_and_wait(1);
            for (int i = 0; i < 20; ++i) echoed.ask_and_wait(1);
            bytes = echoed.packet_bytes() + (encrypt ? std::uint32_t{seal_bytes} : 0u);
            stop();
        });
        EXPECT_LE(bytes, 1472u);
        EXPECT_GT(bytes, 1472u - 40);
        EXPECT_EQ(times_in(said, fmt::format("kumi: warning: udp: from {} to node 1 at {} only packets of up to {} "
                                             "bytes arrive, and the hosts send up to 89",
                                             hosts_->address(0), hosts_->address(1), bytes)),
                  1u)
            << said;
        EXPECT_EQ(times_in(said, "warning"), 1u) << said;
        stopped_ = closed_ = false;
        ASSERT_TRUE(hosts_->leave());
    }
}

TEST_F(UdpHosts, packets_that_begin_to_vanish_while_they_are_under_way_cost_no_message) {
    for (const unsigned host : {0u, 1u}) ASSERT_TRUE(hosts_->set_mtu(host, 9000));
    start({.offload = false});
    if (HasFatalFailure()) return;
    Echoed echoed{*channels_[0]};
    echoed.ask_and_wait(20);
    EXPECT_GT(echoed.packet_bytes(), 8900u);
    ASSERT_TRUE(hosts_->set_mtu(1, 1500));
    const Instant start = now();
    echoed.ask_and_wait(20);
    EXPECT_LT(now() - start, 2s);
    EXPECT_LE(echoed.packet_bytes(), 1472u);
    EXPECT_FALSE(echoed.channel.lost(1));
}

} // namespace
} // namespace kumi::device::udp
