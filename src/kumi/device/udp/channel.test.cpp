#include "kumi/device/udp/channel.hpp"

#include "kumi/device/udp/udp.hpp"
#include "kumi/pm/joint_sleep.hpp"
#include "kumi/pm/wait.hpp"
#include "loopback/ends.hpp"
#include "skips.hpp"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <set>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kumi::device::udp {
namespace {

using loopback::said_by;
using loopback::BareSocket;
using loopback::Ends;
using loopback::patience;
using loopback::value_of;

std::vector<std::string> here(std::size_t nodes) { return std::vector<std::string>(nodes, "127.0.0.1"); }

std::string refusal(const std::vector<std::string>& addresses, const Options& options = {}) {
    const auto channels = open_in_one_process(addresses, options);
    EXPECT_FALSE(channels);
    const std::string text = channels ? "" : channels.error().text();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// ---- opening

TEST(UdpChannel, a_port_that_is_taken_is_named_with_the_remedy) {
    const BareSocket other;
    const std::string text = refusal(here(1), {.port = other.address().port()});
    EXPECT_EQ(text.find("udp: opening " + other.address().text() + ": "), 0u) << text;
    EXPECT_TRUE(contains(text, "another program has this port: choose another, or 0 for any")) << text;
}

TEST(UdpChannel, two_nodes_of_one_host_cannot_have_one_port) {
    std::uint16_t port = 0;
    {
        const BareSocket free;
        port = free.address().port();
    }
    const std::string text = refusal(here(2), {.port = port});
    EXPECT_TRUE(contains(text, "127.0.0.1:" + std::to_string(port))) << text;
}

TEST(UdpChannel, an_address_of_another_host_is_refused) {
    const std::string text = refusal({"192.0.2.1"}); // which nobody has: it is for documents
    EXPECT_EQ(text.find("udp: opening 192.0.2.1:0: "), 0u) << text;
    EXPECT_TRUE(contains(text, "this host has no such address: see `ip address`")) << text;
}

TEST(UdpChannel, an_address_that_others_cannot_send_to_is_refused) {
    for (const char* any : {"0.0.0.0", "::"})
        EXPECT_EQ(refusal({any}),
                  std::string("udp: other nodes cannot send to ") + any + ": use the address of one interface");
    EXPECT_EQ(refusal({"localhost"}), "udp: localhost: write a numeric address such as 10.0.0.1 or fd00::1");
}

/// What node 0 says about what node 1 tells it.
std::string refusal_of(void (*change)(Hello&)) {
    const base::JobKeys keys{.token = 1};
    auto zero = UdpChannel::bind({}, 0, 2, keys), one = UdpChannel::bind({}, 1, 2, keys);
    EXPECT_TRUE(zero && one);
    Hello hellos[] = {(*zero)->hello(), (*one)->hello()};
    change(hellos[1]);
    const auto met = (*zero)->meet(hellos);
    EXPECT_FALSE(met);
    return met ? "" : met.error().text();
}

TEST(UdpChannel, nodes_of_a_host_that_hides_what_it_is_meet) {
    const base::JobKeys keys{.token = 1};
    auto zero = UdpChannel::bind({}, 0, 2, keys), one = UdpChannel::bind({}, 1, 2, keys);
    ASSERT_TRUE(zero && one);
    Hello hellos[] = {(*zero)->hello(), (*one)->hello()};
    hellos[1].host = {};
    EXPECT_TRUE((*zero)->meet(hellos));
    EXPECT_TRUE((*one)->meet(hellos));
}

TEST(UdpChannel, nodes_that_do_not_agree_are_told_about_what) {
    EXPECT_EQ(refusal_of([](Hello& hello) { hello.encrypt = 1; }),
              "udp: node 1 encrypts and this one does not: set encrypt alike on all nodes");
    EXPECT_TRUE(contains(refusal_of([](Hello& hello) { hello.version = 99; }), "use one version of Kumi"));
    if (base::host_id()) {
        EXPECT_EQ(refusal_of([](Hello& hello) { ++hello.host.network_inode; }),
                  "udp: node 1 at 127.0.0.1 is on another host than this one at 127.0.0.1: set KUMI_UDP_ADDRESS to the "
                  "address of a network card on each host, or name the networks in a cluster file and do not set "
                  "KUMI_DEVICE");
    }
    EXPECT_EQ(refusal_of([](Hello& hello) { hello.address.port = 0; }),
              "udp: node 1 sent an address that is not valid");
    EXPECT_TRUE(contains(refusal_of([](Hello& hello) { hello.address.family = 6; }), "use IPv4 on all nodes, or IPv6"));
}

TEST(UdpChannel, sixty_nodes_have_sixty_sockets_and_ports) {
    const auto sockets = [] {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            struct stat found {};
            count += ::stat(entry.path().c_str(), &found) == 0 && S_ISSOCK(found.st_mode) ? 1 : 0;
        }
        return count;
    };
    const std::size_t before = sockets();
    const auto channels = open_in_one_process(here(60));
    ASSERT_TRUE(channels) << channels.error().text();
    EXPECT_EQ(sockets(), before + 60);
    std::set<std::uint16_t> ports;
    for (const auto& channel : *channels) ports.insert(dynamic_cast<const UdpChannel&>(*channel).address().port());
    EXPECT_EQ(ports.size(), 60u);
}

// ---- buffers and offload

TEST(UdpChannel, a_buffer_that_the_system_refuses_is_a_warning_that_names_the_sysctl) {
    std::size_t most = 0;
    std::ifstream("/proc/sys/net/core/rmem_max") >> most;
    if (most == 0 || most > std::size_t{256} << 20) KUMI_SKIP(skips::system_lacks("a limit of socket buffers"));
    std::fflush(nullptr);
    const pid_t child = ::fork(); // as an ordinary user
    ASSERT_GE(child, 0);
    if (child == 0) {
        if (::geteuid() == 0 && (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0))
            ::_exit(2);
        const std::string said = said_by([&] {
            Ends ends(2, {.buffer_bytes = 2 * most});
            ends.talk(100, 10'000);
        });
        EXPECT_TRUE(contains(said, "kumi: warning: udp: the system grants a socket buffer of ")) << said;
        EXPECT_TRUE(contains(said, "sysctl -w net.core.rmem_max=" + std::to_string(2 * most) + " raises the limit\n"))
            << said;
        std::fflush(nullptr);
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) KUMI_SKIP(skips::system_lacks("other users"));
    EXPECT_EQ(status, 0);
}

TEST(UdpChannel, the_smallest_buffer_that_the_system_has_still_carries_everything) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{65'536}}) {
        SCOPED_TRACE(bytes);
        Ends ends(2, {.buffer_bytes = bytes, .packet_bytes_max = 1472});
        ends.talk(20, 100);
        ends.talk(3, 30'000);
    }
}

TEST(UdpChannel, bursts_that_vanish_are_given_up_with_a_warning_and_everything_arrives) {
    Options options{.packet_bytes_max = 1472};
    options.faults.burst_vanish = true;
    bool has_bursts = false;
    const std::string said = said_by([&] {
        Ends ends(2, options);
        ends.talk(20, 100'000);
        has_bursts = value_of(ends[0].counters(), "bursts_sent") > 0;
    });
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int burst_bytes = 1472;
    const bool can_burst = ::setsockopt(socket, IPPROTO_UDP, UDP_SEGMENT, &burst_bytes, sizeof burst_bytes) == 0;
    ::close(socket);
    if (!has_bursts && !can_burst) KUMI_SKIP(skips::system_lacks("UDP_SEGMENT"));
    EXPECT_TRUE(has_bursts);
    EXPECT_TRUE(contains(said,
                         "kumi: warning: udp: bursts to 127.0.0.1 get lost although single packets arrive: an offload "
                         "(UDP_SEGMENT) is broken; going on without bursts\n"))
        << said;
}

TEST(UdpChannel, without_offload_everything_arrives_too) {
    Ends ends(2, {.packet_bytes_max = 1472, .offload = false});
    ends.talk(5, 100'000);
    EXPECT_EQ(value_of(ends[0].counters(), "bursts_sent"), 0u);
}

TEST(UdpChannel, long_messages_have_a_checksum_where_it_is_wanted_and_nothing_else_protects_them) {
    using reliable::Checked;
    const std::pair<Options, Checked> cases[] = {
        {Options{}, Checked::heads},
        {Options{.checks_all = true}, Checked::everything},
        {Options{.encrypt = true, .checks_all = true}, Checked::nothing}};
    for (const auto& [options, checked] : cases) {
        if (options.encrypt && !crypto::is_available()) continue;
        Ends ends(2, options);
        ends.talk(3, 50'000);
        EXPECT_EQ(dynamic_cast<UdpChannel&>(ends[0]).endpoint().options().checked, checked);
    }
}

TEST(UdpChannel, every_fault_at_once_is_survived_in_the_clear_and_encrypted) {
    for (const bool encrypt : {false, true}) {
        if (encrypt && !crypto::is_available()) continue;
        SCOPED_TRACE(encrypt);
        Options options{.encrypt = encrypt, .packet_bytes_max = 1472};
        options.faults = {
            .loss = 0.05, .duplicate = 0.05, .reorder = 0.05, .corrupt = 0.05, .truncate = 0.05, .seed = 3};
        Ends ends(2, options);
        ends.talk(200, 100);
        ends.talk(3, 50'000);
        EXPECT_GT(value_of(ends[1].counters(0), "repairs_sent") + value_of(ends[1].counters(0), "timeouts"), 0u);
        EXPECT_GT(value_of(ends[1].counters(), "dropped_truncated"), 0u);
        EXPECT_GT(value_of(ends[1].counters(), encrypt ? "dropped_forged" : "dropped_damaged"), 0u);
        EXPECT_EQ(value_of(ends[1].counters(), "dropped_replayed") > 0, encrypt);
    }
}

// ---- sleeping

TEST(UdpChannel, a_refused_sender_for_whom_the_last_poll_made_room_does_not_sleep) {
    auto channels = open_in_one_process(std::vector<std::string>(2, "127.0.0.1"));
    ASSERT_TRUE(channels) << channels.error().text();
    pm::Channel& sender = *(*channels)[0];
    pm::Channel& receiver = *(*channels)[1];
    const std::vector<std::byte> content(100'000);
    std::size_t sent = 0;
    std::size_t received = 0;
    const auto ignore = [](pm::Message&) {};
    const auto count = [&](pm::Message&) { ++received; };
    const Instant end = now() + loopback::patience;
    while (sender.try_send(1, content)) ++sent;
    // The receiver takes what is under way and says so; the sender hears it in a poll that hands out nothing.
    while (received == 0 && now() < end) receiver.poll(count, pm::all_messages);
    for (Instant quiet = now() + std::chrono::milliseconds(20); now() < quiet;) receiver.poll(count, pm::all_messages);
    EXPECT_FALSE(sender.try_send(1, content)) << "it has not looked yet";
    EXPECT_EQ(sender.poll(ignore, pm::all_messages), 0u);
    EXPECT_FALSE(sender.arm()) << "there is room for what was refused";
    std::thread other([&] {
        while (received < sent && now() < end) receiver.poll(count, pm::all_messages);
    });
    (*channels)[0].reset(); // waits until all has arrived
    other.join();
    EXPECT_EQ(received, sent);
}

TEST(UdpChannel, no_wake_is_lost_however_many_there_are) {
    auto opened = open_in_one_process(here(1));
    ASSERT_TRUE(opened) << opened.error().text();
    pm::Channel& channel = *opened->front();
    constexpr int rounds = 2000;
    std::atomic<int> asked{0}, seen{0};
    std::thread waker([&] {
        for (int round = 1; round <= rounds; ++round) {
            asked = round;
            channel.wake();
            while (seen < round) std::this_thread::yield();
        }
    });
    const auto nothing = [](pm::Message&) { ADD_FAILURE() << "nobody sent this"; };
    for (int round = 1; round <= rounds; ++round) {
        const Instant start = now();
        while (asked < round)
            if (channel.poll(nothing, pm::all_messages) == 0 && asked < round && channel.arm())
                channel.sleep(start + patience);
        EXPECT_LT(now() - start, patience / 2) << "slept through the wake of round " << round;
        seen = round;
    }
    waker.join();
}

TEST(UdpChannel, wakes_from_many_threads_come_between_messages_and_disturb_none) {
    auto opened = open_in_one_process(here(2));
    ASSERT_TRUE(opened) << opened.error().text();
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&] {
            while (!done) opened->front()->wake(), std::this_thread::yield();
        });
    threads.emplace_back([&] {
        const auto echo = [&](pm::Message& message) { EXPECT_TRUE((*opened)[1]->try_send(0, message.bytes())); };
        pm::poll_until(*(*opened)[1], echo, [&] { return done.load(); }, {}, now() + patience);
    });
    std::uint64_t next = 0;
    const auto take = [&](pm::Message& message) {
        std::uint64_t number = 0;
        EXPECT_TRUE(read_value(message.bytes(), number) && number == next);
        ++next;
    };
    for (std::uint64_t number = 0; number < 500; ++number) {
        ASSERT_TRUE(opened->front()->try_send(1, bytes_of(number)));
        EXPECT_TRUE(pm::poll_until(*opened->front(), take, [&] { return next == number + 1; }, {}, now() + patience));
    }
    done = true;
    (*opened)[1]->wake();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(loopback::dropped(*opened->front()), 0u);
}

// ---- sizes

TEST(UdpChannel, packets_are_as_large_as_the_path_and_the_options_allow) {
    const auto packet_bytes = [](const Options& options) {
        Ends ends(2, options);
        return ends[0].endpoint().packet_bytes(1);
    };
    EXPECT_EQ(packet_bytes({.packet_bytes_max = 1472}), 1472u);
    EXPECT_EQ(packet_bytes({.packet_bytes_max = 1479}), 1472u) << "whole words";
    EXPECT_EQ(packet_bytes({.packet_bytes_max = 1480}), 1480u);
    EXPECT_EQ(packet_bytes({.packet_bytes_max = 1}), reliable::packet_bytes_min);
    EXPECT_LE(packet_bytes({}), reliable::packet_bytes_max);
    EXPECT_GE(packet_bytes({}), 1472u);
    if (!crypto::is_available()) return;
    EXPECT_EQ(packet_bytes({.encrypt = true, .packet_bytes_max = 1472}), 1472u - seal_bytes)
        << "with the seal it is as large as without";
    EXPECT_EQ(packet_bytes({.encrypt = true, .packet_bytes_max = 30}), reliable::packet_bytes_min);
}

TEST(UdpChannel, the_largest_message_is_a_part_of_256_mib_from_64_kib_to_16_mib) {
    const auto largest = [](Node nodes, std::size_t wanted = 0) {
        const auto channel = UdpChannel::bind({.message_bytes_max = wanted}, 0, nodes, {});
        EXPECT_TRUE(channel);
        return (*channel)->traits().message_bytes_max;
    };
    EXPECT_EQ(largest(2), std::size_t{16} << 20);
    EXPECT_EQ(largest(16), std::size_t{16} << 20);
    EXPECT_EQ(largest(17), (std::size_t{256} << 20) / 17);
    EXPECT_EQ(largest(4096), std::size_t{64} << 10);
    EXPECT_EQ(largest(5000), std::size_t{64} << 10);
    EXPECT_EQ(largest(5000, 1234), 1234u);
}

TEST(UdpChannel, messages_of_the_largest_size_and_of_none_arrive) {
    Ends ends(2, {.packet_bytes_max = 1472, .message_bytes_max = 30'001});
    for (const std::size_t bytes : {8u, 1407u, 1408u, 1409u, 30'000u, 30'001u}) ends.talk(3, bytes);
}

/// Packets without UDP's own checksum are not cut by the system.
void send_without_checksum(int descriptor) {
    const int without = 1;
    EXPECT_EQ(::setsockopt(descriptor, SOL_SOCKET, SO_NO_CHECK, &without, sizeof without), 0);
}

bool refuses_bursts_without_checksum() {
    auto socket = Socket::open(*Address::parse("127.0.0.1", 0), {.buffer_bytes = 1 << 20});
    if (!socket || !socket->has_bursts()) return false;
    send_without_checksum(socket->descriptor());
    const std::vector<std::byte> content(100);
    const std::vector<Datagram> two(2, Datagram{content, {}});
    return socket->send_burst(socket->local(), two) == Socket::Sent::burst_refused;
}

TEST(UdpChannel, bursts_that_the_system_refuses_are_given_up_with_a_warning_and_everything_arrives) {
    if (!refuses_bursts_without_checksum()) KUMI_SKIP(skips::system_lacks("bursts that it refuses"));
    std::uint64_t bursts = 0;
    std::uint64_t later = 0;
    const std::string said = said_by([&] {
        Ends ends(2, {.packet_bytes_max = 1472});
        for (const Node node : {0u, 1u}) {
            send_without_checksum(ends[node].joint_sleep()->begin_sleep().descriptor);
            ends[node].joint_sleep()->end_sleep();
        }
        ends.talk(3, 100'000);
        bursts = value_of(ends[0].counters(), "bursts_sent");
        ends.talk(3, 100'000);
        later = value_of(ends[0].counters(), "bursts_sent");
    });
    EXPECT_EQ(bursts, 1u) << "one was tried";
    EXPECT_EQ(later, 1u) << "and no more";
    EXPECT_TRUE(contains(said, "kumi: warning: udp: the system refuses to send bursts to 127.0.0.1 "
                               "(UDP_SEGMENT); going on without them\n"))
        << said;
}

TEST(UdpChannel, what_was_sent_is_counted_by_peer) {
    Ends ends(2);
    ends.talk(5, 100);
    EXPECT_EQ(ends[0].sent(1).messages, 5u);
    EXPECT_EQ(ends[0].sent(1).bytes, 500u);
    EXPECT_EQ(ends[0].sent(0).messages, 0u);
}

// ---- sleeping on it from outside

bool is_readable(int descriptor) {
    pollfd watched{descriptor, POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
}

TEST(UdpJointSleep, a_wake_rings_the_bell_of_whoever_sleeps_and_the_end_of_the_sleep_stops_it) {
    Ends ends(1);
    pm::JointSleep& sleep = *ends[0].joint_sleep();
    for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(ends[0].arm());
        const pm::Watched watched = sleep.begin_sleep();
        EXPECT_EQ(watched.deadline, never);
        EXPECT_FALSE(watched.or_writable);
        EXPECT_FALSE(is_readable(watched.bell));
        EXPECT_FALSE(is_readable(watched.descriptor));
        ends[0].wake();
        EXPECT_TRUE(is_readable(watched.bell));
        EXPECT_FALSE(is_readable(watched.descriptor)) << "polling would have to read it";
        sleep.end_sleep();
        EXPECT_FALSE(is_readable(watched.bell));
    }
}

TEST(UdpJointSleep, a_wake_before_the_sleep_ends_it_at_once_and_none_after_it_is_left) {
    Ends ends(1);
    pm::JointSleep& sleep = *ends[0].joint_sleep();
    ends[0].wake();
    EXPECT_EQ(sleep.begin_sleep().deadline, Instant::min());
    sleep.end_sleep();
    EXPECT_EQ(sleep.begin_sleep().deadline, never) << "one wake ends one sleep";
    sleep.end_sleep();
}

TEST(UdpJointSleep, it_ends_when_another_thread_sends_what_must_be_repeated_at_some_time) {
    Ends ends(2, {.watch_every = Duration{0}});
    pm::JointSleep& sleep = *ends[0].joint_sleep();
    ASSERT_TRUE(ends[0].arm());
    const pm::Watched watched = sleep.begin_sleep();
    ASSERT_EQ(watched.deadline, never);
    ends[0].flush();
    EXPECT_FALSE(is_readable(watched.bell)) << "nothing to say";
    ASSERT_TRUE(ends[0].try_send(1, bytes_of("hello")));
    EXPECT_TRUE(is_readable(watched.bell)) << "there is a deadline now that the sleeper does not know";
    sleep.end_sleep();
    ASSERT_TRUE(ends[0].arm());
    EXPECT_LT(sleep.begin_sleep().deadline, never);
    EXPECT_FALSE(is_readable(watched.bell));
    sleep.end_sleep();
    const auto take = [](pm::Message&) {};
    for (const Instant end = now() + patience; !ends[0].endpoint().all_arrived() && now() < end;)
        for (const Node node : {0u, 1u}) ends[node].poll(take, pm::all_messages);
}

TEST(UdpJointSleep, what_arrives_ends_it) {
    Ends ends(2);
    ASSERT_TRUE(ends[1].arm());
    const pm::Watched watched = ends[1].joint_sleep()->begin_sleep();
    ASSERT_TRUE(ends[0].try_send(1, bytes_of("hello")));
    pm::block(watched, now() + patience);
    EXPECT_TRUE(is_readable(watched.descriptor));
    ends[1].joint_sleep()->end_sleep();
    std::size_t came = 0;
    const auto take = [&](pm::Message&) { ++came; };
    for (const Instant end = now() + patience; !ends[0].endpoint().all_arrived() && now() < end;)
        for (const Node node : {0u, 1u}) ends[node].poll(take, pm::all_messages);
    EXPECT_EQ(came, 1u);
}

TEST(UdpChannel, who_waits_does_not_sleep_when_a_peer_has_gone_and_is_told_once) {
    Ends ends(2);
    ends.talk(3);
    ASSERT_TRUE(ends.run_until([&] { return ends[0].endpoint().all_arrived() && ends[1].endpoint().all_arrived(); }));
    ends.close(1);
    const auto nothing = [](pm::Message&) {};
    for (const Instant end = now() + patience; !ends[0].lost(1) && now() < end;)
        ends[0].poll(nothing, pm::all_messages);
    ASSERT_TRUE(ends[0].lost(1));
    EXPECT_FALSE(ends[0].arm()) << "it may wait for the one that is gone";
    EXPECT_TRUE(ends[0].arm());
}

TEST(UdpChannel, a_message_that_was_filled_in_place_counts_and_a_cancelled_one_does_not) {
    Ends ends(1);
    const pm::SendSlot cancelled = ends[0].try_reserve(0, 40);
    ASSERT_TRUE(cancelled);
    ends[0].cancel(cancelled);
    const pm::SendSlot slot = ends[0].try_reserve(0, 40);
    ASSERT_TRUE(slot);
    std::memset(slot.bytes().data(), 9, 40);
    ends[0].commit(slot);
    EXPECT_EQ(ends[0].sent(0).messages, 1u);
    EXPECT_EQ(ends[0].sent(0).bytes, 40u);
    std::size_t came = 0;
    const auto take = [&](pm::Message& message) { came += message.bytes().size(); };
    for (const Instant end = now() + patience; came == 0 && now() < end;) ends[0].poll(take, pm::all_messages);
    EXPECT_EQ(came, 40u);
}

} // namespace
} // namespace kumi::device::udp
