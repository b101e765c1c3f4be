#include "kumi/device/composite/channel.hpp"

#include "kumi/pm/wait.hpp"
#include "loopback/composites.hpp"
#include "loopback/sanitized.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;
using loopback::Channels;

/// Which thread of the sender, and how many it sent before. The rest of a message is filler.
struct Note {
    std::uint32_t thread;
    std::uint32_t count;
};

/// A channel that several threads use by turns, as they have the lock. One of those that wait sleeps, the lock
/// released; the others nap.
class SharedChannel {
public:
    explicit SharedChannel(pm::Channel& channel, Duration sleep_max = 10s) : channel_(channel), sleep_max_(sleep_max) {}

    template <class Use>
    auto with_lock(Use&& use) {
        const std::lock_guard lock(mutex_);
        return use(channel_);
    }

    /// Hands out messages until `done()`, which is called with the lock. False when the deadline came first.
    bool poll_until(pm::Handler handler, const std::function<bool()>& done, Instant deadline = never) {
        std::unique_lock lock(mutex_);
        while (!done()) {
            if (now() >= deadline) return false;
            if (channel_.poll(handler, pm::all_messages) != 0) continue;
            if (is_slept_on_) {
                lock.unlock();
                std::this_thread::sleep_for(100us);
                lock.lock();
            } else if (channel_.arm()) {
                is_slept_on_ = true;
                const pm::Watched watched = channel_.joint_sleep()->begin_sleep();
                lock.unlock();
                pm::block(watched, std::min(deadline, now() + sleep_max_));
                lock.lock();
                channel_.joint_sleep()->end_sleep();
                is_slept_on_ = false;
            }
        }
        channel_.wake(); // another thread that sleeps looks again at what it waits for
        return true;
    }

private:
    pm::Channel& channel_;
    Duration sleep_max_;
    std::mutex mutex_;
    bool is_slept_on_ = false;
};

void run_all(const std::vector<std::function<void()>>& parts) {
    std::vector<std::thread> threads;
    for (const auto& part : parts) threads.emplace_back(part);
    for (std::thread& thread : threads) thread.join();
}

TEST(CompositeChannel, many_threads_of_each_node_send_and_poll_by_turns) {
    constexpr Node nodes = 4;
    constexpr std::uint32_t threads = 3, messages = 300;
    Channels channels = loopback::two_hosts(nodes);
    std::deque<SharedChannel> shared;
    for (const auto& channel : channels) shared.emplace_back(*channel, 1ms); // who waits for other nodes
    // Who handled what: by receiver, source and thread of the source. Handlers of a node never run at once.
    std::array<std::array<std::array<std::uint32_t, threads>, nodes>, nodes> next{};
    std::array<std::atomic<std::uint32_t>, nodes> received{};
    constexpr std::uint32_t expected = nodes * threads * messages;
    std::vector<std::function<void()>> parts;
    for (Node node = 0; node < nodes; ++node)
        for (std::uint32_t thread = 0; thread < threads; ++thread)
            parts.push_back([&, node, thread] {
                const auto count = [&](pm::Message& message) {
                    Note note{};
                    std::memcpy(&note, message.bytes().data(), sizeof note);
                    ASSERT_LT(note.thread, threads);
                    ASSERT_EQ(note.count, next[node][message.source()][note.thread]++);
                    received[node].fetch_add(1);
                };
                std::vector<std::byte> bytes(3000);
                for (std::uint32_t i = 0; i < messages; ++i)
                    for (Node to = 0; to < nodes; ++to) {
                        const Note note{thread, i};
                        std::memcpy(bytes.data(), &note, sizeof note);
                        const Bytes message = Bytes(bytes).first(sizeof note + (i * 37 + to) % 2900);
                        shared[node].poll_until(count, [&] { return channels[node]->try_send(to, message); });
                    }
                // Until all nodes have theirs: whoever stops polling also stops sending what was held back for company.
                const auto is_over = [&] {
                    return std::all_of(received.begin(), received.end(),
                                       [](const auto& all_of_one) { return all_of_one.load() == expected; });
                };
                const bool all = shared[node].poll_until(count, is_over, now() + 60s);
                EXPECT_TRUE(all) << "node " << node << " got " << received[node] << " of " << expected;
            });
    run_all(parts);
}

TEST(CompositeChannel, a_thread_that_sleeps_learns_what_another_handled) {
    Channels channels = loopback::two_hosts(2);
    constexpr std::uint32_t rounds = 300;
    std::atomic<std::uint32_t> handled{0};
    SharedChannel shared(*channels[1]);
    // Two threads of node 1 wait for each message; whichever gets it, both go on.
    const auto wait = [&] {
        for (std::uint32_t round = 1; round <= rounds; ++round) {
            const bool came = shared.poll_until([&](pm::Message&) { handled.fetch_add(1); },
                                                [&] { return handled.load() >= round; }, now() + 20s);
            ASSERT_TRUE(came) << "round " << round;
        }
    };
    const auto send = [&] {
        for (std::uint32_t round = 0; round < rounds; ++round) {
            const std::byte byte{1};
            pm::poll_until(
                *channels[0], [](pm::Message&) {}, [&] { return channels[0]->try_send(1, Bytes(&byte, 1)); },
                pm::Patience{});
            channels[0]->flush();
            while (handled.load() <= round) std::this_thread::yield();
        }
    };
    run_all({wait, wait, send});
}

TEST(CompositeChannel, a_slot_that_is_out_keeps_other_senders_waiting_and_then_wakes_them) {
    Channels channels = loopback::two_hosts(4);
    for (const Node to : {Node{2}, Node{1}}) { // through memory, over the network
        SharedChannel shared(*channels[0]);
        const std::uint64_t first = 1, second = 2;
        const pm::SendSlot slot = shared.with_lock([&](pm::Channel& channel) { return channel.try_reserve(to, 8); });
        ASSERT_TRUE(slot);
        const auto try_second = [&] { return channels[0]->try_send(to, bytes_of(second)); };
        EXPECT_FALSE(shared.with_lock([&](pm::Channel&) { return try_second(); }));
        std::thread other([&] { shared.poll_until([](pm::Message&) {}, try_second); });
        std::this_thread::sleep_for(20ms);
        std::memcpy(slot.bytes().data(), &first, sizeof first);
        const Instant committed = now();
        shared.with_lock([&](pm::Channel& channel) { channel.commit(slot); });
        other.join();
        EXPECT_LT(now() - committed, 5s) << "sooner than the sleep of the other thread ends by itself";
        channels[0]->flush();
        std::vector<std::uint64_t> got;
        const auto take = [&](pm::Message& message) {
            std::uint64_t value = 0;
            std::memcpy(&value, message.bytes().data(), sizeof value);
            got.push_back(value);
        };
        pm::poll_until(*channels[to], take, [&] { return got.size() == 2; }, pm::Patience{}, now() + 10s);
        EXPECT_EQ(got, (std::vector<std::uint64_t>{first, second}));
    }
}

void handlers_send(Channels channels) {
    int answers = 0;
    const auto answer = [&](pm::Message& message) {
        EXPECT_EQ(channels[0]->poll([](pm::Message&) { FAIL(); }, 1), 0u); // nor does a poll in a handler hang
        for (const Node to : {Node{1}, Node{2}}) EXPECT_TRUE(channels[0]->try_send(to, message.bytes()));
        ++answers;
    };
    const std::uint64_t question = 7;
    for (const Node from : {Node{1}, Node{2}}) ASSERT_TRUE(channels[from]->try_send(0, bytes_of(question)));
    for (const Node from : {Node{1}, Node{2}}) channels[from]->flush();
    ASSERT_TRUE(pm::poll_until(*channels[0], answer, [&] { return answers == 2; }, pm::Patience{}, now() + 10s));
    channels[0]->flush();
    for (const Node to : {Node{1}, Node{2}}) {
        int got = 0;
        EXPECT_TRUE(pm::poll_until(
            *channels[to], [&](pm::Message&) { ++got; }, [&] { return got == 2; }, pm::Patience{}, now() + 10s));
    }
}

TEST(CompositeChannel, a_handler_may_send_by_the_link_that_it_is_called_from_and_by_others) {
    handlers_send(loopback::two_hosts(3));
}

TEST(CompositeChannel, sleeps_are_long_whatever_the_number_of_threads) {
    Channels channels = loopback::two_hosts(2);
    pm::Channel& channel = *channels[0];
    std::thread([&] { channel.poll([](pm::Message&) {}, 1); }).join();
    channel.poll([](pm::Message&) {}, 1);
    Duration longest{0};
    for (int i = 0; i < 20 && longest < 50ms; ++i) { // some may end for no reason
        const Instant start = now();
        if (channel.arm()) channel.sleep(start + 100ms);
        longest = std::max(longest, Duration(now() - start));
    }
    EXPECT_GE(longest, 50ms);
}

/// The descriptors in the set of an epoll descriptor.
std::size_t descriptors_in(int epoll) {
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(epoll));
    std::size_t count = 0;
    for (std::string line; std::getline(info, line);) count += line.starts_with("tfd:") ? 1 : 0;
    return count;
}

TEST(CompositeChannel, a_node_that_polls_for_long_has_no_socket_watched_until_it_sleeps_again) {
    Channels channels = loopback::two_hosts(2);
    pm::Channel& channel = *channels[0];
    const auto ignore = [](pm::Message&) {};
    const auto sleep_once = [&] {
        for (int i = 0; i < 100 && !channel.arm(); ++i) channel.poll(ignore, pm::all_messages);
        const pm::Watched watched = channel.joint_sleep()->begin_sleep();
        const std::size_t asleep = descriptors_in(watched.descriptor);
        std::thread poller([&] { // polls of other threads leave a sleeping thread its descriptors
            for (const Instant end = now() + 50ms; now() < end;) channel.poll(ignore, pm::all_messages);
        });
        poller.join();
        EXPECT_EQ(descriptors_in(watched.descriptor), asleep);
        channel.joint_sleep()->end_sleep();
        EXPECT_EQ(descriptors_in(watched.descriptor), asleep) << "it may sleep again soon";
        return std::pair(watched.descriptor, asleep);
    };
    const auto [descriptor, asleep] = sleep_once();
    for (const Instant end = now() + 50ms; now() < end;) channel.poll(ignore, pm::all_messages);
    EXPECT_LT(descriptors_in(descriptor), asleep);
    EXPECT_EQ(sleep_once().second, asleep);
}

TEST(CompositeChannel, is_slept_on_from_outside) { EXPECT_NE(loopback::two_hosts(2)[0]->joint_sleep(), nullptr); }

TEST(CompositeChannel, each_pair_uses_the_device_that_is_planned_for_it) {
    Channels channels = loopback::two_hosts(4);
    EXPECT_EQ(channels[0]->carrier(2), "shmem");
    EXPECT_EQ(channels[0]->carrier(1), "udp");
    EXPECT_EQ(channels[0]->carrier(0), "shmem");
    EXPECT_EQ(channels[0]->traits().device, "composite");
}

TEST(CompositeChannel, messages_in_pieces_keep_their_place_among_others_and_may_be_kept) {
    Channels channels = loopback::two_rails(2);
    constexpr std::uint32_t messages = 100;
    const auto bytes_of_message = [](std::uint32_t i) {
        return i % 2 == 0 ? std::size_t{8} : std::size_t{1000} + i * 7000;
    };
    std::vector<pm::KeptMessage> kept;
    std::atomic<bool> is_over{false};
    const auto send = [&] {
        for (std::uint32_t i = 0; i < messages; ++i) {
            const std::vector<std::byte> message(bytes_of_message(i), std::byte(i));
            pm::poll_until(
                *channels[0], [](pm::Message&) {}, [&] { return channels[0]->try_send(1, message); }, pm::Patience{});
        }
        pm::poll_until(*channels[0], [](pm::Message&) {}, [&] { return is_over.load(); }, pm::Patience{}, now() + 30s);
    };
    const auto take = [&] {
        pm::poll_until(
            *channels[1], [&](pm::Message& message) { kept.push_back(message.keep()); },
            [&] { return kept.size() == messages; }, pm::Patience{}, now() + 30s);
        is_over = true;
        channels[0]->wake();
    };
    run_all({send, take});
    ASSERT_EQ(kept.size(), messages);
    for (std::uint32_t i = 0; i < messages; ++i) {
        ASSERT_EQ(kept[i].bytes().size(), bytes_of_message(i));
        for (const std::byte byte : kept[i].bytes()) ASSERT_EQ(byte, std::byte(i));
    }
    kept.clear();
    const std::vector<pm::Counter> counters = channels[0]->counters();
    const auto striped = std::find_if(counters.begin(), counters.end(),
                                      [](const pm::Counter& counter) { return counter.name == "striped"; });
    ASSERT_NE(striped, counters.end());
    EXPECT_EQ(striped->value, messages / 2);
}

TEST(CompositeChannel, a_relay_that_leaves_is_lost_to_all_also_to_its_own_host_and_passes_on) {
    Assembly composites(4);
    loopback::add_network(composites, {0, 1, 3}, "one");
    loopback::add_network(composites, {1, 2, 3}, "other");
    const auto shmem = composites.add({1, 3}, [](auto wakers) { return shmem::open_in_one_process(2, {}, wakers); });
    ASSERT_TRUE(shmem) << shmem.error().text();
    composites.add_relay(0, 1, 2);
    composites.add_relay(2, 1, 0);
    Channels channels = loopback::finish(composites);
    ASSERT_EQ(channels.size(), 4u);
    ASSERT_EQ(channels[3]->carrier(1), "shmem");
    std::thread leaver([&, leaving = std::move(channels[1])]() mutable { leaving.reset(); });
    std::string heard;
    const auto take = [&](pm::Message& message) { heard += text_of(message.bytes()); };
    const auto comes_true = [&](const std::function<bool()>& what) {
        for (const Instant end = now() + (sanitized ? 10s : 1s); !what();) {
            if (now() > end) return false;
            for (const Node node : {0u, 2u, 3u}) channels[node]->poll(take, pm::all_messages);
        }
        return true;
    };
    for (const Node node : {0u, 2u, 3u})
        EXPECT_TRUE(comes_true([&] { return channels[node]->lost(1); })) << "to node " << node;
    for (const Node node : {0u, 2u, 3u}) EXPECT_FALSE(channels[node]->try_send(1, bytes_of(std::string_view("x"))));
    for (const Node node : {0u, 2u}) {
        EXPECT_TRUE(comes_true([&] { return channels[node]->try_send(2 - node, bytes_of(std::string_view("y"))); }));
    }
    EXPECT_TRUE(comes_true([&] { return heard == "yy"; }));
    EXPECT_FALSE(channels[0]->lost(2) || channels[0]->lost(3) || channels[2]->lost(0));
    std::vector<std::thread> others;
    for (const Node node : {0u, 2u, 3u}) others.emplace_back([&, node] { channels[node].reset(); });
    for (std::thread& other : others) other.join();
    leaver.join();
}

TEST(CompositeChannel, a_link_that_is_quiet_is_still_heard) {
    Channels channels = loopback::two_hosts(4);
    // UDP is asked rarely by now
    for (int i = 0; i < 100'000; ++i) channels[0]->poll([](pm::Message&) { FAIL(); }, pm::all_messages);
    const std::uint64_t word = 1;
    ASSERT_TRUE(channels[1]->try_send(0, bytes_of(word)));
    channels[1]->flush();
    int got = 0;
    for (int i = 0; i < 10'000 && got == 0; ++i) channels[0]->poll([&](pm::Message&) { ++got; }, pm::all_messages);
    EXPECT_EQ(got, 1);
}

} // namespace
} // namespace kumi::device::composite
