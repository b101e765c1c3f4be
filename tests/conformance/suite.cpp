// The PM contract as tests. Each runs in every world.

#include "conformance/world.hpp"

#include "kumi/pm/wait.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kumi::conformance {
namespace {

using namespace std::chrono_literals;
using pm::Channel;
using pm::KeptMessage;
using pm::Message;
using pm::Node;

constexpr pm::Patience spin{50us};
constexpr pm::Patience sleep_at_once{};

#if defined(KUMI_THREAD_SANITIZER) || defined(KUMI_ADDRESS_SANITIZER)
constexpr long scale = 1;
#else
constexpr long scale = 5;
#endif

void ignore(Message&) {}

/// Sends, waiting for room and handling what comes meanwhile.
void send(Channel& channel, Node to, Bytes bytes, pm::Handler handler = ignore) {
    bool sent = false;
    const auto try_once = [&] { return sent = sent || channel.try_send(to, bytes); };
    ASSERT_TRUE(pm::poll_until(channel, handler, try_once, spin, deadline())) << "no room within the deadline";
}

void wait(Channel& channel, pm::Handler handler, base::FunctionRef<bool()> done, pm::Patience patience = spin) {
    ASSERT_TRUE(pm::poll_until(channel, handler, done, patience, deadline())) << "nothing came within the deadline";
}

/// Bytes that tell their size and number, so that a mix-up shows: one block of prime length, again and again.
constexpr std::size_t block_bytes = 4099;

std::vector<std::byte> pattern_block(std::size_t bytes, std::uint64_t number) {
    std::vector<std::byte> block(std::min(bytes, block_bytes));
    for (std::size_t i = 0; i < block.size(); ++i)
        block[i] = static_cast<std::byte>(i * 7 + (i >> 8) + number * 13 + bytes);
    return block;
}

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t number) {
    const auto block = pattern_block(bytes, number);
    std::vector<std::byte> content(bytes);
    for (std::size_t at = 0; at < bytes; at += block_bytes)
        std::memcpy(&content[at], block.data(), std::min(block_bytes, bytes - at));
    return content;
}

bool is_pattern(Bytes bytes, std::uint64_t number) {
    const auto block = pattern_block(bytes.size(), number);
    for (std::size_t at = 0; at < bytes.size(); at += block_bytes)
        if (std::memcmp(&bytes[at], block.data(), std::min(block_bytes, bytes.size() - at)) != 0) return false;
    return true;
}

/// Every size up to some hundreds, those around what devices like to cut at, and the largest. Under a sanitizer only
/// the largest is above 1 MiB: with one packet of ten lost, each such message takes seconds there.
std::vector<std::size_t> interesting_sizes(std::size_t largest) {
    std::vector<std::size_t> sizes(600);
    std::iota(sizes.begin(), sizes.end(), std::size_t{0});
    const std::size_t power_max = scale == 1 ? std::min(largest, std::size_t{1} << 20) : largest;
    const auto add_around = [&](std::size_t power, std::initializer_list<std::ptrdiff_t> offsets) {
        for (const std::ptrdiff_t off : offsets)
            if (const std::size_t size = power + static_cast<std::size_t>(off); size <= largest) sizes.push_back(size);
    };
    for (std::size_t power = 1024; power <= power_max; power *= 2)
        if (power < (std::size_t{1} << 20)) add_around(power, {-65, -9, -8, -7, -1, 0, 1, 8, 57});
        else add_around(power, {-8, 0, 1}); // cut at the same places as smaller ones, only more often
    sizes.push_back(largest);
    return sizes;
}

class Conformance : public testing::TestWithParam<World> {
protected:
    Conformance() : trace_(__FILE__, __LINE__, "KUMI_SEED=" + std::to_string(seed())) {}

    void run(Node nodes, const Body& body) { GetParam().run(nodes, body); }

    /// By how much rounds take longer in this world, where each waits for the one before: every tenth for a repair.
    static std::uint64_t slowness() { return GetParam().name.ends_with("loss_10") ? 4 * scale : 1; }

    /// Within this time nodes know that another has left or died. Where much is lost, so may be what tells of it.
    static Duration told_max() {
        const bool is_lossy = GetParam().name.ends_with("loss_10");
        return sanitized ? Duration{5s} : GetParam().told_max * (is_lossy ? 2 : 1);
    }

private:
    testing::ScopedTrace trace_;
};

/// For the optional powers: these run only in worlds that have them, so that none passes without a check.
class JointSleepConformance : public Conformance {};
class RemoteMemoryConformance : public Conformance {};
class LeavingConformance : public Conformance {};
class DyingConformance : public Conformance {};

TEST_P(Conformance, a_channel_has_exactly_the_optional_powers_that_its_world_promises) {
    for (const Node nodes : {1u, 4u})
        run(nodes, [](Channel& channel) {
            EXPECT_EQ(channel.joint_sleep() != nullptr, GetParam().has_joint_sleep);
            EXPECT_EQ(channel.remote_memory() != nullptr, GetParam().has_remote_memory);
        });
}

TEST_P(Conformance, a_message_of_every_size_arrives_as_it_was_sent) {
    run(2, [](Channel& channel) {
        const auto sizes = interesting_sizes(channel.traits().message_bytes_max);
        if (channel.self() == 0) {
            for (std::size_t i = 0; i < sizes.size(); ++i) send(channel, 1, pattern(sizes[i], i));
            return;
        }
        std::size_t next = 0;
        const auto check = [&](Message& message) {
            ASSERT_LT(next, sizes.size());
            EXPECT_EQ(message.source(), 0u);
            EXPECT_EQ(message.bytes().size(), sizes[next]);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(message.bytes().data()) % 8, 0u);
            EXPECT_TRUE(is_pattern(message.bytes(), next)) << sizes[next] << " bytes";
            ++next;
        };
        while (next < sizes.size()) {
            const std::size_t before = next;
            ASSERT_NO_FATAL_FAILURE(wait(channel, check, [&] { return next > before; }));
        }
    });
}

TEST_P(Conformance, messages_of_a_pair_arrive_once_and_in_order) {
    run(2, [](Channel& channel) {
        const std::uint64_t count = 4'000 * scale;
        std::mt19937_64 random(seed()); // the same choices on both sides
        std::uint64_t next = 0;
        const auto size_of_next = [&] { return 8 + (random() % 50 == 0 ? random() % 20'000 : random() % 200); };
        if (channel.self() == 0) {
            for (; next < count; ++next) {
                auto bytes = pattern(size_of_next(), next);
                std::memcpy(bytes.data(), &next, sizeof next);
                send(channel, 1, bytes);
            }
            return;
        }
        const auto check = [&](Message& message) {
            std::uint64_t number = 0;
            ASSERT_TRUE(read_value(message.bytes(), number));
            EXPECT_EQ(number, next);
            EXPECT_EQ(message.bytes().size(), size_of_next());
            ++next;
        };
        wait(channel, check, [&] { return next == count; });
        std::size_t more = 0;
        for (int i = 0; i < 1000; ++i) more += channel.poll(ignore, pm::all_messages);
        EXPECT_EQ(more, 0u) << "a message came twice";
    });
}

TEST_P(Conformance, many_senders_to_one_receiver_lose_nothing) {
    const Node nodes = 9;
    run(nodes, [](Channel& channel) {
        const std::uint64_t count = 400 * scale;
        if (channel.self() != 0) {
            for (std::uint64_t i = 0; i < count; ++i) send(channel, 0, bytes_of(i));
            return;
        }
        std::vector<std::uint64_t> next(channel.nodes());
        std::uint64_t total = 0;
        const auto check = [&](Message& message) {
            std::uint64_t number = 0;
            ASSERT_TRUE(read_value(message.bytes(), number));
            EXPECT_EQ(number, next[message.source()]++) << "from node " << message.source();
            ++total;
        };
        wait(channel, check, [&] { return total == count * (channel.nodes() - 1); });
    });
}

TEST_P(Conformance, everybody_talks_to_everybody_and_to_itself) {
    run(5, [](Channel& channel) {
        const std::uint64_t count = 200 * scale;
        std::vector<std::uint64_t> next(channel.nodes());
        std::uint64_t total = 0;
        const auto check = [&](Message& message) {
            std::uint64_t number = 0;
            ASSERT_TRUE(read_value(message.bytes(), number));
            EXPECT_EQ(number, next[message.source()]++);
            ++total;
        };
        for (std::uint64_t i = 0; i < count; ++i)
            for (Node to = 0; to < channel.nodes(); ++to) send(channel, to, bytes_of(i), check);
        wait(channel, check, [&] { return total == count * channel.nodes(); });
    });
}

/// Sends numbers until the channel refuses for good; answers how many it took.
std::uint64_t fill(Channel& channel, Node to, std::size_t bytes) {
    constexpr std::uint64_t sent_max = 10'000'000;
    std::vector<std::byte> content(bytes);
    std::uint64_t sent = 0;
    for (unsigned refused_in_a_row = 0; refused_in_a_row < 1000 && sent < sent_max;) {
        std::memcpy(content.data(), &sent, sizeof sent);
        channel.try_send(to, content) ? (refused_in_a_row = 0, ++sent) : ++refused_in_a_row;
    }
    EXPECT_LT(sent, sent_max) << "nothing bounds what a channel holds";
    return sent;
}

TEST_P(Conformance, a_full_channel_refuses_the_next_message_and_keeps_the_old_ones) {
    run(1, [](Channel& channel) {
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{1000}, std::size_t{100'000}}) {
            for (int round = 0; round < 3; ++round) {
                const std::uint64_t sent = fill(channel, 0, bytes);
                EXPECT_GT(sent, 0u);
                std::uint64_t next = 0;
                const auto check = [&](Message& message) {
                    std::uint64_t number = 0;
                    ASSERT_TRUE(read_value(message.bytes(), number));
                    EXPECT_EQ(number, next++);
                };
                wait(channel, check, [&] { return next == sent; });
                for (int i = 0; i < 1000; ++i) channel.poll(check, pm::all_messages);
                EXPECT_EQ(next, sent);
            }
        }
    });
}

TEST_P(Conformance, a_slow_receiver_holds_the_sender_back_and_gets_everything) {
    run(2, [](Channel& channel) {
        const std::uint64_t count = 20'000;
        std::uint64_t next = 0;
        if (channel.self() == 0) {
            for (std::uint64_t i = 0; i < count; ++i) send(channel, 1, bytes_of(i));
            return;
        }
        std::this_thread::sleep_for(50ms);
        const auto check = [&](Message& message) {
            std::uint64_t number = 0;
            ASSERT_TRUE(read_value(message.bytes(), number));
            EXPECT_EQ(number, next++);
        };
        const auto pausing = [&] {
            if (next % 4096 == 1) std::this_thread::sleep_for(1ms);
            return next == count;
        };
        wait(channel, check, pausing);
    });
}

TEST_P(Conformance, a_refused_sender_that_sleeps_is_woken_when_there_is_room) {
    run(2, [](Channel& channel) {
        for (const std::size_t bytes : {std::size_t{64}, std::size_t{100'000}}) {
            const std::uint64_t count = bytes < 1000 ? 20'000 : 1'000;
            const std::vector<std::byte> content(bytes);
            if (channel.self() == 0) {
                bool go = false;
                for (std::uint64_t sent = 0; sent < count;)
                    wait(
                        channel, ignore, [&] { return channel.try_send(1, content) ? ++sent, true : false; },
                        sleep_at_once);
                wait(channel, [&](Message&) { go = true; }, [&] { return go; }, sleep_at_once);
                continue;
            }
            std::uint64_t received = 0;
            const auto slowly = [&](Message&) {
                if (++received % 500 == 0) std::this_thread::sleep_for(1ms);
            };
            wait(channel, slowly, [&] { return received == count; }, sleep_at_once);
            send(channel, 0, bytes_of(received));
        }
    });
}

TEST_P(Conformance, poll_hands_out_at_most_what_it_is_asked_for) {
    run(1, [](Channel& channel) {
        for (int i = 0; i < 8; ++i) send(channel, 0, bytes_of(i), [](Message&) { FAIL() << "handled too early"; });
        int handled = 0;
        const auto count = [&](Message&) { ++handled; };
        EXPECT_EQ(channel.poll(count, 0), 0u);
        const Instant end = deadline();
        while (handled < 8 && now() < end) {
            const int before = handled;
            const std::size_t answer = channel.poll(count, 3);
            EXPECT_LE(answer, 3u);
            EXPECT_EQ(handled - before, static_cast<int>(answer));
        }
        EXPECT_EQ(handled, 8);
    });
}

TEST_P(Conformance, a_kept_message_outlives_its_handler_and_the_traffic_after_it) {
    run(2, [](Channel& channel) {
        const std::vector<std::size_t> sizes{0, 1, 56, 57, 1000, 5000, 100'000, channel.traits().message_bytes_max / 8};
        if (channel.self() == 0) {
            for (std::uint64_t i = 0; i < sizes.size(); ++i) send(channel, 1, pattern(sizes[i], i));
            for (std::uint64_t i = 0; i < 5'000; ++i) send(channel, 1, pattern(40 + i % 6000, i + 77));
            send(channel, 1, {});
            bool over = false;
            wait(channel, [&](Message&) { over = true; }, [&] { return over; });
            return;
        }
        std::deque<KeptMessage> kept;
        std::size_t others = 0;
        const auto keep = [&](Message& message) {
            if (kept.size() < sizes.size()) kept.push_back(message.keep());
            else ++others;
        };
        wait(channel, keep, [&] { return others == 5'001; });
        for (std::uint64_t i = 0; i < sizes.size(); ++i) {
            EXPECT_TRUE(kept[i]);
            EXPECT_EQ(kept[i].source(), 0u);
            EXPECT_EQ(kept[i].bytes().size(), sizes[i]);
            EXPECT_TRUE(is_pattern(kept[i].bytes(), i));
        }
        // Given back in another order, by another thread.
        std::thread([&] {
            std::shuffle(kept.begin(), kept.end(), std::mt19937_64(seed()));
            kept.clear();
        }).join();
        send(channel, 0, {});
    });
}

TEST_P(Conformance, kept_messages_that_are_given_back_make_room_again) {
    run(1, [](Channel& channel) {
        const std::size_t bytes = channel.traits().message_bytes_max / 4;
        const std::vector<std::byte> content(bytes);
        std::deque<KeptMessage> kept;
        for (int round = 0; round < 40; ++round) {
            const std::size_t before = kept.size();
            send(channel, 0, content, [](Message&) { FAIL(); });
            wait(
                channel, [&](Message& message) { kept.push_back(message.keep()); },
                [&] { return kept.size() > before; });
            if (kept.size() == 3) kept.pop_front(); // never all of the room
        }
    });
}

TEST_P(Conformance, messages_are_filled_in_place_for_several_destinations_at_once) {
    run(3, [](Channel& channel) {
        if (channel.self() == 0) {
            pm::SendSlot slots[3];
            const auto reserve = [&] {
                for (Node to = 0; to < 3; ++to)
                    if (!slots[to]) slots[to] = channel.try_reserve(to, 100 + to * 50'000);
                return slots[0] && slots[1] && slots[2];
            };
            wait(channel, ignore, reserve);
            for (Node to = 0; to < 3; ++to) {
                ASSERT_EQ(slots[to].bytes().size(), 100u + to * 50'000u);
                const auto content = pattern(slots[to].bytes().size(), to);
                std::copy(content.begin(), content.end(), slots[to].bytes().begin());
            }
            for (const Node to : {2u, 0u, 1u}) channel.commit(slots[to]);
        }
        bool received = false;
        const auto check = [&](Message& message) {
            EXPECT_TRUE(is_pattern(message.bytes(), channel.self()));
            received = true;
        };
        wait(channel, check, [&] { return received; });
    });
}

TEST_P(Conformance, a_cancelled_reservation_sends_nothing_and_takes_no_room) {
    run(1, [](Channel& channel) {
        for (const std::size_t bytes : {std::size_t{8}, channel.traits().message_bytes_max / 2}) {
            for (int i = 0; i < 200; ++i) {
                pm::SendSlot slot;
                wait(channel, ignore, [&] { return static_cast<bool>(slot = channel.try_reserve(0, bytes)); });
                channel.cancel(slot);
            }
        }
        send(channel, 0, pattern(8, 1));
        int received = 0;
        const auto check = [&](Message& message) {
            EXPECT_TRUE(is_pattern(message.bytes(), 1));
            ++received;
        };
        wait(channel, check, [&] { return received > 0; });
        EXPECT_EQ(received, 1);
    });
}

TEST_P(Conformance, a_handler_may_send) {
    run(2, [](Channel& channel) {
        const std::uint64_t count = 5'000 * scale;
        std::uint64_t answers = 0;
        std::deque<std::uint64_t> unanswered; // found no room
        const auto echo = [&](Message& message) {
            std::uint64_t number = 0;
            ASSERT_TRUE(read_value(message.bytes(), number));
            if (channel.self() == 0) {
                EXPECT_EQ(number, answers);
                ++answers;
            } else if (!unanswered.empty() || !channel.try_send(0, bytes_of(number))) {
                unanswered.push_back(number);
            } else {
                ++answers;
            }
        };
        if (channel.self() == 0) {
            for (std::uint64_t i = 0; i < count; ++i) send(channel, 1, bytes_of(i), echo);
            wait(channel, echo, [&] { return answers == count; });
            return;
        }
        const auto catch_up = [&] {
            while (!unanswered.empty() && channel.try_send(0, bytes_of(unanswered.front())))
                unanswered.pop_front(), ++answers;
            return answers == count;
        };
        wait(channel, echo, catch_up);
    });
}

/// Both sleep at every chance; pauses of random length make every order of sleeping and sending happen.
TEST_P(Conformance, a_sleeping_receiver_always_wakes) {
    run(2, [](Channel& channel) {
        const std::uint64_t count = 1'000 * scale / slowness();
        std::mt19937_64 random(seed() + channel.self());
        std::uint64_t received = 0;
        const auto take = [&](Message&) { ++received; };
        for (std::uint64_t i = 0; i < count; ++i) {
            if (channel.self() == 1) wait(channel, take, [&] { return received > i; }, sleep_at_once);
            for (auto spins = random() % (i % 8 == 0 ? 20'000 : 200); spins > 0; --spins) pm::relax();
            send(channel, 1 - channel.self(), bytes_of(i), take);
            if (channel.self() == 0) wait(channel, take, [&] { return received > i; }, sleep_at_once);
            if (testing::Test::HasFatalFailure()) return;
        }
    });
}

TEST_P(Conformance, a_receiver_of_many_wakes_for_each_of_them) {
    run(6, [](Channel& channel) {
        const std::uint64_t count = 120 * scale / slowness();
        std::mt19937_64 random(seed() + channel.self());
        std::uint64_t received = 0;
        const auto take = [&](Message&) { ++received; };
        for (std::uint64_t i = 0; i < count; ++i) {
            if (channel.self() != 0) {
                for (auto spins = random() % 3'000; spins > 0; --spins) pm::relax();
                send(channel, 0, bytes_of(i), take);
                wait(channel, take, [&] { return received > i; }, sleep_at_once);
                continue;
            }
            wait(channel, take, [&] { return received == (i + 1) * (channel.nodes() - 1); }, sleep_at_once);
            for (Node to = 1; to < channel.nodes(); ++to) send(channel, to, bytes_of(i), take);
            if (testing::Test::HasFatalFailure()) return;
        }
    });
}

TEST_P(Conformance, a_sleep_ends_at_its_deadline) {
    run(1, [](Channel& channel) {
        const Instant end = now() + 30ms;
        EXPECT_FALSE(pm::poll_until(channel, ignore, [] { return false; }, sleep_at_once, end));
        EXPECT_GE(now(), end);
        EXPECT_LT(now(), end + 5s);
    });
}

TEST_P(Conformance, wake_ends_a_sleep_or_the_next_one) {
    run(1, [](Channel& channel) {
        for (int i = 0; i < 300; ++i) {
            std::atomic<bool> flag{false};
            std::thread other([&] {
                if (i % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 100));
                flag = true;
                channel.wake();
            });
            EXPECT_TRUE(pm::poll_until(channel, ignore, [&] { return flag.load(); }, sleep_at_once, deadline()));
            other.join();
        }
    });
}

/// One channel that two threads of a node use in turns, as they have the lock.
struct Shared {
    explicit Shared(Channel& used) : channel(used), sleep(*used.joint_sleep()) {}

    /// Until `is_over`: hands out what comes, and sleeps when there is nothing. Others may use the channel meanwhile.
    void serve(pm::Handler handler) {
        std::unique_lock lock(mutex);
        while (!is_over) {
            if (channel.poll(handler, all_at_once ? pm::all_messages : 1) != 0) continue;
            if (channel.arm()) {
                const pm::Watched watched = sleep.begin_sleep();
                lock.unlock();
                pm::block(watched, deadline());
                lock.lock();
                sleep.end_sleep();
            }
            changed.notify_all(); // who was refused tries again
        }
    }

    /// For others than the one that serves: until `done()`, polling by itself or not.
    void wait(std::unique_lock<std::mutex>& lock, bool polls, pm::Handler handler, base::FunctionRef<bool()> done) {
        const Instant end = deadline();
        while (!done() && !testing::Test::HasFatalFailure()) {
            ASSERT_LT(now(), end) << "nothing came within the deadline";
            if (polls) {
                if (channel.poll(handler, 1) != 0) changed.notify_all();
                lock.unlock();
                std::this_thread::yield(); // or the others, who want the lock and a core, wait for the end of its turn
                lock.lock();
            } else {
                changed.wait_until(lock, end);
            }
        }
    }

    Channel& channel;
    pm::JointSleep& sleep;
    std::mutex mutex;
    std::condition_variable changed;
    bool is_over = false;
    bool all_at_once = true;
};

/// Sends and answers go by both threads; whichever of them is asleep, nothing is missed.
TEST_P(JointSleepConformance, a_channel_is_slept_on_while_another_thread_uses_it) {
    run(2, [](Channel& channel) {
        ASSERT_NE(channel.joint_sleep(), nullptr);
        const std::uint64_t count = 400 * scale;
        const Node other = 1 - channel.self();
        Shared shared(channel);
        shared.all_at_once = channel.self() == 0;
        std::uint64_t received = 0;
        const auto take = [&](Message&) {
            ++received;
            shared.changed.notify_all();
        };
        std::thread server([&] { shared.serve(take); });
        std::mt19937_64 random(seed() + channel.self());
        std::unique_lock lock(shared.mutex);
        std::uint64_t expected = 0;
        for (std::uint64_t i = 0; i < count && !testing::Test::HasFatalFailure(); ++i) {
            lock.unlock();
            for (auto spins = random() % (i % 8 == 0 ? 20'000 : 200); spins > 0; --spins) pm::relax();
            lock.lock();
            const Node to = i % 4 == 3 ? channel.self() : other; // the sleeper may be the receiver
            shared.wait(lock, random() % 2 == 0, take, [&] { return channel.try_send(to, bytes_of(i)); });
            channel.flush();
            ++expected; // all send alike
            shared.wait(lock, random() % 2 == 0, take, [&] { return received >= expected; });
        }
        shared.is_over = true;
        lock.unlock();
        channel.wake();
        server.join();
    });
}

TEST_P(JointSleepConformance, a_send_that_is_refused_while_another_thread_sleeps_ends_that_sleep_when_there_is_room) {
    run(2, [](Channel& channel) {
        ASSERT_NE(channel.joint_sleep(), nullptr);
        for (const std::size_t bytes : {std::size_t{64}, std::size_t{100'000}}) {
            const std::uint64_t count = (bytes < 1000 ? 4'000 : 200) * scale;
            const std::vector<std::byte> content(bytes);
            if (channel.self() == 1) {
                std::uint64_t received = 0;
                const auto slowly = [&](Message&) {
                    if (++received % 500 == 0) std::this_thread::sleep_for(1ms);
                };
                wait(channel, slowly, [&] { return received == count; }, sleep_at_once);
                send(channel, 0, bytes_of(received));
                continue;
            }
            Shared shared(channel);
            bool go = false;
            const auto take = [&](Message&) {
                go = true;
                shared.changed.notify_all();
            };
            std::thread server([&] { shared.serve(take); });
            std::unique_lock lock(shared.mutex);
            for (std::uint64_t i = 0; i < count && !testing::Test::HasFatalFailure(); ++i)
                shared.wait(lock, false, take, [&] { return channel.try_send(1, content); });
            channel.flush();
            shared.wait(lock, false, take, [&] { return go; });
            shared.is_over = true;
            lock.unlock();
            channel.wake();
            server.join();
        }
    });
}

TEST_P(JointSleepConformance, wake_ends_a_sleep_while_another_thread_polls) {
    run(1, [](Channel& channel) {
        ASSERT_NE(channel.joint_sleep(), nullptr);
        for (int i = 0; i < 100; ++i) {
            Shared shared(channel);
            std::thread server([&] { shared.serve(ignore); });
            std::thread waker([&] {
                if (i % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 100));
                {
                    const std::lock_guard lock(shared.mutex);
                    shared.is_over = true;
                }
                channel.wake();
            });
            std::atomic<bool> ended{false};
            std::thread poller([&] { // it must not take away what wakes
                while (!ended) {
                    const std::lock_guard lock(shared.mutex);
                    channel.poll(ignore, pm::all_messages);
                }
            });
            const Instant start = now();
            server.join();
            EXPECT_LT(now() - start, 10s);
            ended = true;
            waker.join();
            poller.join();
        }
    });
}

TEST_P(Conformance, what_was_sent_before_a_channel_closes_arrives) {
    run(3, [](Channel& channel) {
        const std::uint64_t count = 300;
        if (channel.self() != 0) { // ends, and closes, as soon as the last message is committed
            for (std::uint64_t i = 0; i < count; ++i) send(channel, 0, pattern(i * 40, i));
            return;
        }
        std::uint64_t received = 0;
        std::vector<std::uint64_t> next(3);
        const auto check = [&](Message& message) {
            EXPECT_TRUE(is_pattern(message.bytes(), next[message.source()]++));
            ++received;
        };
        std::this_thread::sleep_for(20ms);
        wait(channel, check, [&] { return received == 2 * count; });
    });
}

TEST_P(Conformance, a_receiver_that_goes_away_harms_nobody) {
    run(3, [](Channel& channel) {
        if (channel.self() == 2) { // takes a little, then ends with traffic under way
            int received = 0;
            wait(channel, [&](Message&) { ++received; }, [&] { return received > 20; });
            return;
        }
        const Node partner = 1 - channel.self();
        std::uint64_t received = 0;
        const auto take = [&](Message& message) { received += message.source() == partner ? 1 : 0; };
        for (std::uint64_t i = 0; i < 2'000; ++i) {
            channel.try_send(2, bytes_of(i)); // soon refused for ever, or swallowed
            send(channel, partner, bytes_of(i), take);
        }
        wait(channel, take, [&] { return received == 2'000; });
    });
}

TEST_P(Conformance, what_was_sent_is_counted) {
    run(2, [](Channel& channel) {
        if (channel.self() != 0) return;
        send(channel, 1, pattern(10, 0));
        send(channel, 1, pattern(20'000, 0));
        EXPECT_EQ(channel.sent(1).messages, 2u);
        EXPECT_EQ(channel.sent(1).bytes, 20'010u);
        EXPECT_EQ(channel.sent(0).messages, 0u);
    });
}

TEST_P(Conformance, traits_tell_what_the_channel_is) {
    run(4, [](Channel& channel) {
        EXPECT_EQ(channel.nodes(), 4u);
        EXPECT_LT(channel.self(), 4u);
        EXPECT_FALSE(channel.traits().device.empty());
        EXPECT_GE(channel.traits().message_bytes_max, 65'536u);
        EXPECT_GT(channel.traits().bytes_per_peer_max, 0u);
        for (Node node = 0; node < 4; ++node) EXPECT_FALSE(channel.lost(node));
    });
}

/// Waits until all nodes have come here for the `round`th time, from 1.
class Barrier {
public:
    explicit Barrier(Channel& channel) : channel_(channel) {}

    void pass() {
        ++round_;
        for (Node to = 0; to < channel_.nodes(); ++to) send(channel_, to, {}, count_);
        wait(channel_, count_, [&] { return came_ >= round_ * channel_.nodes(); });
    }

private:
    Channel& channel_;
    Node round_ = 0;
    Node came_ = 0;
    std::function<void(Message&)> count_ = [this](Message&) { ++came_; };
};

bool is_zero(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

TEST_P(RemoteMemoryConformance, exposed_memory_is_reached_by_all_and_ordered_with_messages) {
    run(6, [](Channel& channel) {
        pm::RemoteMemory* memory = channel.remote_memory();
        ASSERT_NE(memory, nullptr);
        const std::uint64_t offset = 1 << 20;
        const std::size_t slot = 200'001; // each node has one in the memory of each
        const Node nodes = channel.nodes();
        std::vector<std::byte*> windows;
        for (Node node = 0; node < nodes; ++node) {
            EXPECT_TRUE(memory->reach(node));
            windows.push_back(memory->direct(node, offset));
            EXPECT_EQ(windows.back() != nullptr, channel.carrier(node) == "shmem") << "node " << node;
        }
        ASSERT_NE(windows[channel.self()], nullptr);
        const auto mine = memory->expose(offset, slot * nodes);
        ASSERT_TRUE(mine) << mine.error().text();
        EXPECT_EQ(mine->size(), slot * nodes);
        EXPECT_TRUE(is_zero(*mine));
        Barrier barrier(channel);
        barrier.pass();
        const auto content = pattern(slot, channel.self());
        for (Node to = 0; to < nodes; ++to)
            if (windows[to] != nullptr) copy_bytes(windows[to] + slot * channel.self(), content);
        barrier.pass();
        for (Node from = 0; from < nodes; ++from) { // who reaches is reached
            const Bytes got = Bytes(*mine).subspan(slot * from, slot);
            EXPECT_TRUE(windows[from] != nullptr ? is_pattern(got, from) : is_zero(got)) << "from node " << from;
            EXPECT_TRUE(windows[from] == nullptr ||
                        is_pattern(Bytes(windows[from] + slot * channel.self(), slot), channel.self()));
        }
        barrier.pass();
    });
}

TEST_P(RemoteMemoryConformance, memory_is_exposed_twice_without_harm_and_zero_after_it_was_concealed) {
    run(2, [](Channel& channel) {
        pm::RemoteMemory* memory = channel.remote_memory();
        ASSERT_NE(memory, nullptr);
        constexpr std::size_t page = 4096;
        const auto mine = memory->expose(page, 16 * page);
        ASSERT_TRUE(mine) << mine.error().text();
        copy_bytes(mine->data(), pattern(16 * page, 1));
        const auto more = memory->expose(0, 20 * page - 5);
        ASSERT_TRUE(more) << more.error().text();
        EXPECT_EQ(more->data() + page, mine->data());
        EXPECT_TRUE(is_pattern(*mine, 1)) << "it was exposed already";
        EXPECT_TRUE(is_zero(more->first(page)));
        EXPECT_TRUE(is_zero(more->subspan(17 * page)));
        memory->conceal(5 * page, 8 * page);
        const auto again = memory->expose(0, 20 * page);
        ASSERT_TRUE(again) << again.error().text();
        EXPECT_EQ(again->data(), more->data());
        EXPECT_TRUE(is_zero(again->subspan(5 * page, 8 * page)));
        const auto before = pattern(16 * page, 1);
        EXPECT_TRUE(std::ranges::equal(mine->first(4 * page), Bytes(before).first(4 * page))) << "it was not concealed";
        EXPECT_TRUE(std::ranges::equal(mine->subspan(12 * page), Bytes(before).subspan(12 * page))) << "nor was this";
        memory->conceal(0, 20 * page);
        memory->conceal(0, 20 * page); // nor does that any harm
    });
}

TEST_P(RemoteMemoryConformance, memory_outside_the_window_is_not_exposed) {
    run(1, [](Channel& channel) {
        pm::RemoteMemory* memory = channel.remote_memory();
        ASSERT_NE(memory, nullptr);
        const std::size_t window = memory->window_bytes();
        for (const auto& [offset, bytes] :
             std::vector<std::pair<std::uint64_t, std::size_t>>{{0, window + 1},
                                                                {window, 1},
                                                                {window + 4096, 0},
                                                                {0, std::size_t{1} << 60},
                                                                {4096, ~std::size_t{0} - 100}}) {
            const auto refused = memory->expose(offset, bytes);
            ASSERT_FALSE(refused);
            EXPECT_NE(refused.error().text().find("raise KUMI_SHMEM_EXPOSED"), std::string::npos)
                << refused.error().text();
        }
        const auto last = memory->expose(window - 4096, 4096);
        ASSERT_TRUE(last) << last.error().text();
        EXPECT_TRUE(is_zero(*last));
        EXPECT_TRUE(memory->expose(window, 0));
    });
}

// ---- nodes that leave, and nodes that die

/// Counts what a node says before it goes: numbers, in order, of which the last is the time when it was sent.
struct LastWords {
    static constexpr std::int64_t count = 100;

    /// Sends them to `to`, some of them large, and handles meanwhile what comes.
    static void send_to(Channel& channel, Node to, pm::Handler handler = ignore) {
        for (std::int64_t i = 0; i < count; ++i) {
            auto bytes = pattern(i % 10 == 5 ? 50'000 : 64, 0);
            const std::int64_t word = i + 1 < count ? i : now().time_since_epoch().count();
            std::memcpy(bytes.data(), &word, sizeof word);
            send(channel, to, bytes, handler);
        }
    }
    /// Sends them to all of `receivers`. Where they would be lost with the node, waits until all have confirmed them.
    static void send_to_all(Channel& channel, const World& world, const std::vector<Node>& receivers) {
        std::size_t confirmed = 0;
        const auto count_it = [&](Message&) { ++confirmed; };
        for (const Node to : receivers) send_to(channel, to, count_it);
        const auto is_done = [&] { return world.delivers_for_the_dead || confirmed == receivers.size(); };
        wait(channel, count_it, is_done, sleep_at_once);
    }
    void take(Channel& channel, Message& message) {
        std::int64_t word = 0;
        ASSERT_TRUE(read_value(message.bytes(), word));
        if (++received != count) {
            EXPECT_EQ(word, received - 1);
            return;
        }
        sent = Instant(Duration(word));
        channel.try_send(message.source(), Bytes{}); // for send_to_all()
    }

    std::int64_t received = 0;
    Instant sent{};
};

/// Waits until `node` is lost, and checks that all it sent came before, and that nothing can be sent to it any more.
void expect_lost(Channel& channel, Node node, LastWords& heard, pm::Handler take, pm::Patience patience,
                 Duration told_max) {
    ASSERT_NO_FATAL_FAILURE(wait(channel, take, [&] { return channel.lost(node); }, patience));
    const Instant told = now();
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{50'000}}) {
        EXPECT_FALSE(channel.try_reserve(node, bytes)) << "room at a lost node";
        EXPECT_FALSE(channel.try_send(node, std::vector<std::byte>(bytes)));
    }
    for (int i = 0; i < 1000; ++i) channel.poll(take, pm::all_messages); // what came, and was not handed out yet
    EXPECT_EQ(heard.received, LastWords::count);
    EXPECT_LT(told - heard.sent, told_max) << "from node " << node;
    EXPECT_TRUE(channel.lost(node)) << "it does not come back";
}

TEST_P(LeavingConformance, a_node_that_leaves_is_lost_within_a_second_and_all_that_it_sent_arrives) {
    for (const pm::Patience patience : {spin, sleep_at_once})
        run(3, [&](Channel& channel) {
            if (channel.self() == 2) {
                for (const Node to : {0u, 1u}) LastWords::send_to(channel, to);
                return;
            }
            const Node partner = 1 - channel.self();
            LastWords heard;
            bool is_partner_done = false;
            const auto take = [&](Message& message) {
                if (message.source() == 2) heard.take(channel, message);
                else is_partner_done = true;
            };
            ASSERT_NO_FATAL_FAILURE(expect_lost(channel, 2, heard, take, patience, told_max()));
            EXPECT_TRUE(is_partner_done || !channel.lost(partner));
            send(channel, partner, {}, take);
            wait(channel, take, [&] { return is_partner_done; });
        });
}

TEST_P(LeavingConformance, a_node_that_polls_noticed_as_lost_is_told_of_before_a_sleep) {
    run(2, [&](Channel& channel) {
        if (channel.self() == 1) return send(channel, 0, {}); // some devices tell only nodes that know of them
        for (const Instant end = deadline(); !channel.lost(1);) {
            channel.poll(ignore, pm::all_messages);
            ASSERT_LT(now(), end) << "node 1 has left";
        }
        EXPECT_FALSE(channel.arm()) << "the caller may have looked for lost nodes before its last poll";
    });
}

TEST_P(LeavingConformance, whoever_waits_for_room_at_a_node_that_leaves_waits_no_longer) {
    for (const pm::Patience patience : {spin, sleep_at_once})
        run(2, [&](Channel& channel) {
            if (channel.self() == 1) return std::this_thread::sleep_for(100ms); // takes nothing
            const Instant begin = now();
            const std::vector<std::byte> content(10'000);
            const auto fill_or_lost = [&] {
                while (channel.try_send(1, content)) {}
                return channel.lost(1);
            };
            wait(channel, ignore, fill_or_lost, patience);
            EXPECT_LT(now() - begin, told_max() + 100ms);
        });
}

TEST_P(DyingConformance, a_node_that_is_killed_is_lost_within_a_second_and_all_that_it_sent_arrives) {
    for (const Node victim : {0u, 1u, 2u})
        GetParam().run_and_kill(3, {victim}, [&](Channel& channel) {
            if (channel.self() == victim) {
                std::vector<Node> others{0, 1, 2};
                std::erase(others, victim);
                LastWords::send_to_all(channel, GetParam(), others);
                for (const Node to : others) // it dies while it fills a slot
                    (void)channel.try_reserve(to, to == 2 ? 50'000 : 8);
                return;
            }
            const Node partner = 3 - victim - channel.self();
            LastWords heard;
            bool is_partner_done = false;
            const auto take = [&](Message& message) {
                if (message.source() == victim) heard.take(channel, message);
                else is_partner_done = true;
            };
            const pm::Patience patience = channel.self() == 1 ? spin : sleep_at_once;
            ASSERT_NO_FATAL_FAILURE(expect_lost(channel, victim, heard, take, patience, told_max()));
            EXPECT_TRUE(is_partner_done || !channel.lost(partner));
            send(channel, partner, {}, take);
            wait(channel, take, [&] { return is_partner_done; });
        });
}

TEST_P(DyingConformance, the_last_node_that_lives_knows_within_a_second_that_all_others_are_dead) {
    GetParam().run_and_kill(5, {0, 1, 2, 4}, [&](Channel& channel) {
        if (channel.self() != 3) return LastWords::send_to_all(channel, GetParam(), {3});
        std::vector<LastWords> heard(5);
        const auto take = [&](Message& message) { heard[message.source()].take(channel, message); };
        const auto are_lost = [&] {
            return channel.lost(0) && channel.lost(1) && channel.lost(2) && channel.lost(4);
        };
        wait(channel, take, are_lost, sleep_at_once);
        const Instant told = now();
        Instant last{};
        for (const Node node : {0u, 1u, 2u, 4u}) {
            EXPECT_EQ(heard[node].received, LastWords::count) << "from node " << node;
            last = std::max(last, heard[node].sent);
        }
        EXPECT_LT(told - last, told_max());
        EXPECT_FALSE(channel.lost(3));
    });
}

TEST_P(DyingConformance, a_node_that_is_killed_in_its_sleep_is_lost_within_a_second) {
    GetParam().run_and_kill(2, {1}, [&](Channel& channel) {
        if (channel.self() == 1) {
            LastWords::send_to_all(channel, GetParam(), {0});
            std::thread([] {
                std::this_thread::sleep_for(50ms);
                ::kill(::getpid(), SIGKILL);
            }).detach();
            pm::poll_until(channel, ignore, [] { return false; }, sleep_at_once, deadline());
            return;
        }
        LastWords heard;
        const auto take = [&](Message& message) { heard.take(channel, message); };
        expect_lost(channel, 1, heard, take, sleep_at_once, told_max() + 50ms);
    });
}

/// Longer than any device waits for a sign of life.
TEST_P(DyingConformance, a_node_that_runs_is_never_lost_whether_it_sleeps_polls_or_computes) {
    GetParam().run_and_kill(4, {}, [&](Channel& channel) {
        std::set<Node> have_looked;
        const auto take = [&](Message& message) { have_looked.insert(message.source()); };
        const Instant end = now() + 1500ms;
        if (channel.self() == 0) std::this_thread::sleep_until(end);
        if (channel.self() == 1) pm::poll_until(channel, take, [] { return false; }, sleep_at_once, end);
        if (channel.self() > 1)
            while (now() < end) channel.poll(take, pm::all_messages);
        for (int i = 0; i < 10; ++i) channel.poll(take, pm::all_messages);
        for (Node node = 0; node < 4; ++node) EXPECT_FALSE(channel.lost(node)) << "node " << node;
        for (Node node = 0; node < 4; ++node) send(channel, node, {}, take);
        wait(channel, take, [&] { return have_looked.size() == 4; }); // none leaves before all have looked
    });
}

TEST_P(DyingConformance, a_node_that_is_stopped_for_three_seconds_is_not_lost_and_goes_on) {
    GetParam().run_and_kill(3, {}, [&](Channel& channel) {
        std::set<Node> heard;
        const auto take = [&](Message& message) { heard.insert(message.source()); };
        if (channel.self() == 1) {
            const pid_t stopped = ::getpid();
            const pid_t waker = ::fork();
            if (waker == 0) {
                std::this_thread::sleep_for(3s);
                ::kill(stopped, SIGCONT);
                ::_exit(0);
            }
            ::kill(stopped, SIGSTOP);
            ::waitpid(waker, nullptr, 0);
            wait(channel, take, [&] { return heard.size() == 2; });
            for (const Node to : {0u, 2u}) send(channel, to, {}, take);
            return;
        }
        send(channel, 1, {}, take);
        const Instant begin = now();
        const auto is_over = [&] { return heard.contains(1) || channel.lost(1); };
        wait(channel, take, is_over, channel.self() == 0 ? spin : sleep_at_once);
        EXPECT_FALSE(channel.lost(1)) << "after " << (now() - begin) / 1ms << " ms";
        EXPECT_GT(now() - begin, 2s) << "it was not stopped";
    });
}

template <class Power>
std::vector<World> worlds_with(Power&& power) {
    std::vector<World> all = worlds();
    std::erase_if(all, [&](const World& world) { return !power(world); });
    return all;
}

std::string name_of(const testing::TestParamInfo<World>& world) { return world.param.name; }

/// Worlds that others stand for, but for nodes that die.
bool is_for_deaths(const World& world) {
    return world.name.starts_with("udp_processes") || world.name == "composite_processes";
}

INSTANTIATE_TEST_SUITE_P(Worlds, Conformance,
                         testing::ValuesIn(worlds_with([](const World& world) { return !is_for_deaths(world); })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Worlds, JointSleepConformance,
                         testing::ValuesIn(worlds_with([](const World& world) {
                             return world.has_joint_sleep && !is_for_deaths(world);
                         })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Worlds, RemoteMemoryConformance,
                         testing::ValuesIn(worlds_with([](const World& world) { return world.has_remote_memory; })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Worlds, LeavingConformance,
                         testing::ValuesIn(worlds_with([](const World& world) { return !is_for_deaths(world); })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Worlds, DyingConformance,
                         testing::ValuesIn(worlds_with([](const World& world) { return !!world.run_and_kill; })),
                         name_of);
// A program may have no world with such a power, as the one over MPI.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(JointSleepConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RemoteMemoryConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DyingConformance);

} // namespace
} // namespace kumi::conformance
