#include "kumi/device/shmem/channel.hpp"

#include "kumi/device/shmem/shmem.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace kumi::device::shmem {
namespace {

void ignore(pm::Message&) {}

struct Host {
    explicit Host(Node nodes) : segment(*Segment::create(nodes, {})) {
        for (Node node = 0; node < nodes; ++node) {
            EXPECT_TRUE(segment->reserve_part(node));
            channels.push_back(std::make_unique<ShmemChannel>(segment, node));
        }
    }
    std::shared_ptr<Segment> segment;
    std::vector<std::unique_ptr<ShmemChannel>> channels;
};

TEST(ShmemChannel, rings_of_quiet_peers_are_not_looked_at) {
    Host host(70);
    ShmemChannel& receiver = *host.channels[0];
    EXPECT_EQ(receiver.rings_watched(), 0u);
    for (Node from = 0; from < 70; ++from) ASSERT_TRUE(host.channels[from]->try_send(0, bytes_of(from)));
    std::size_t received = receiver.poll(ignore, pm::all_messages);
    EXPECT_EQ(received, 70u);
    EXPECT_EQ(receiver.rings_watched(), 70u);
    for (int i = 0; i < 20'000; ++i) receiver.poll(ignore, pm::all_messages);
    EXPECT_LE(receiver.rings_watched(), 2u);
    for (Node from = 0; from < 70; ++from) ASSERT_TRUE(host.channels[from]->try_send(0, bytes_of(from)));
    for (int i = 0; i < 3; ++i) received += receiver.poll(ignore, pm::all_messages);
    EXPECT_EQ(received, 140u) << "a forgotten ring rings again";
}

TEST(ShmemChannel, a_busy_ring_stays_watched_among_quiet_ones) {
    Host host(10);
    for (Node from = 0; from < 10; ++from) ASSERT_TRUE(host.channels[from]->try_send(0, bytes_of(from)));
    std::size_t received = 0;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        ASSERT_TRUE(host.channels[7]->try_send(0, bytes_of(i)));
        received += host.channels[0]->poll(ignore, pm::all_messages);
    }
    EXPECT_EQ(received, 20'010u);
    EXPECT_LE(host.channels[0]->rings_watched(), 2u);
}

TEST(ShmemChannel, a_ring_that_is_forgotten_with_a_message_in_it_is_looked_at_again) {
    constexpr int polls_between_sweeps = 4096;
    Host host(10);
    ShmemChannel& receiver = *host.channels[0];
    const auto send_from = [&](Node from) { ASSERT_TRUE(host.channels[from]->try_send(0, bytes_of(from))); };
    std::size_t received = 0;
    for (Node from = 0; from < 10; ++from) send_from(from);
    for (int polls = 1; polls < 2 * polls_between_sweeps; ++polls) received += receiver.poll(ignore, pm::all_messages);
    ASSERT_EQ(received, 10u);
    ASSERT_EQ(receiver.rings_watched(), 10u) << "they brought something before the first sweep";
    // In the poll that ends with a sweep the others send when their rings have been looked at: no bell tells of it.
    send_from(9);
    const auto others_send = [&](pm::Message&) {
        for (Node from = 0; from < 9; ++from) send_from(from);
    };
    ASSERT_EQ(receiver.poll(others_send, pm::all_messages), 1u);
    ASSERT_LT(receiver.rings_watched(), 10u) << "this was not the poll with the sweep";
    for (int polls = 0; polls < 10; ++polls) received += receiver.poll(ignore, pm::all_messages);
    EXPECT_EQ(received, 19u);
}

TEST(ShmemChannel, every_peer_gets_its_turn_when_polls_are_short) {
    Host host(4);
    std::vector<int> taken(4);
    for (int round = 0; round < 400; ++round) {
        for (Node from = 1; from < 4; ++from) host.channels[from]->try_send(0, bytes_of(round));
        host.channels[0]->poll([&](pm::Message& message) { ++taken[message.source()]; }, 1);
    }
    for (Node from = 1; from < 4; ++from) EXPECT_GT(taken[from], 100) << "node " << from;
}

TEST(ShmemChannel, the_memory_of_a_peer_is_what_the_traits_say) {
    Host host(2);
    const Layout& layout = host.segment->layout();
    const std::size_t stated = host.channels[0]->traits().bytes_per_peer_max;
    EXPECT_GE(stated, 2 * layout.bytes_per_pair());
    EXPECT_LE(stated, 2 * layout.bytes_per_pair() + 512) << "what a process keeps for itself about a peer";
    EXPECT_EQ(host.channels[0]->traits().message_bytes_max, layout.buffer_bytes);
}

TEST(ShmemSegment, what_is_not_a_segment_is_refused) {
    base::Descriptor garbage(::memfd_create("test", MFD_CLOEXEC));
    const auto attached = Segment::attach(std::move(garbage), 2);
    ASSERT_FALSE(attached);
    EXPECT_NE(attached.error().text().find("same version"), std::string::npos);
    EXPECT_FALSE(Segment::attach(base::Descriptor{}, 2));
}

TEST(ShmemSegment, a_segment_for_other_nodes_is_refused) {
    auto made = Segment::create(3, {});
    ASSERT_TRUE(made);
    const auto attached = Segment::attach((*made)->duplicate(), 4);
    ASSERT_FALSE(attached);
    EXPECT_NE(attached.error().text().find("3 nodes, not for 4"), std::string::npos);
    EXPECT_TRUE(Segment::attach((*made)->duplicate(), 3));
}

/// A file that says it is `segment`, but has other seals and another size.
base::Descriptor imitation(const Segment& segment, unsigned seals, off_t more_bytes = 0) {
    base::Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    SegmentHeader header{};
    EXPECT_EQ(::pread(segment.duplicate().get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(segment.layout().segment_bytes()) + more_bytes), 0);
    EXPECT_EQ(::pwrite(file.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
}

constexpr unsigned all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

TEST(ShmemSegment, memory_that_its_maker_could_still_shrink_grow_or_seal_otherwise_is_refused) {
    const auto made = Segment::create(2, {});
    ASSERT_TRUE(made);
    EXPECT_TRUE(Segment::attach(imitation(**made, all_seals), 2));
    for (const int missing : {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL}) {
        const auto attached = Segment::attach(imitation(**made, all_seals & ~static_cast<unsigned>(missing)), 2);
        ASSERT_FALSE(attached) << "without seal " << missing;
        EXPECT_NE(attached.error().text().find("not one that this version of Kumi made"), std::string::npos)
            << attached.error().text();
    }
    EXPECT_EQ(static_cast<unsigned>(::fcntl((*made)->duplicate().get(), F_GET_SEALS)), all_seals)
        << "what is made is sealed as it should be";
}

TEST(ShmemSegment, memory_that_is_a_byte_shorter_or_longer_than_it_says_is_refused) {
    const auto made = Segment::create(2, {});
    ASSERT_TRUE(made);
    for (const off_t more : {-1, 1})
        EXPECT_FALSE(Segment::attach(imitation(**made, all_seals, more), 2)) << more << " bytes";
}

TEST(ShmemSegment, memory_of_another_version_is_refused) {
    const auto made = Segment::create(2, {});
    ASSERT_TRUE(made);
    SegmentHeader good{};
    ASSERT_EQ(::pread((*made)->duplicate().get(), &good, sizeof good, 0), static_cast<ssize_t>(sizeof good));
    const auto attaches = [&](SegmentHeader header) {
        base::Descriptor file = imitation(**made, all_seals);
        EXPECT_EQ(::pwrite(file.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
        return Segment::attach(std::move(file), 2).has_value();
    };
    EXPECT_TRUE(attaches(good));
    SegmentHeader other = good;
    ++other.version;
    EXPECT_FALSE(attaches(other));
    other = good;
    ++other.magic;
    EXPECT_FALSE(attaches(other));
    other = good;
    ++other.nodes;
    EXPECT_FALSE(attaches(other));
}

TEST(ShmemSegment, two_mappings_of_one_segment_are_the_same_memory) {
    const auto made = Segment::create(2, {});
    ASSERT_TRUE(made && (*made)->reserve_part(0) && (*made)->reserve_part(1));
    const auto attached = Segment::attach((*made)->duplicate(), 2);
    ASSERT_TRUE(attached) << attached.error().text();
    EXPECT_EQ((*attached)->fencing(), (*made)->fencing());
    EXPECT_EQ((*attached)->layout().segment_bytes(), (*made)->layout().segment_bytes());
    ShmemChannel zero(*made, 0), one(*attached, 1);
    const std::vector<std::byte> large(100'000, std::byte{7});
    for (const Bytes message : {Bytes(large).first(8), Bytes(large)}) {
        ASSERT_TRUE(zero.try_send(1, message));
        std::size_t received = 0;
        for (int i = 0; i < 10 && received == 0; ++i)
            one.poll(
                [&](pm::Message& came) {
                    received = std::ranges::equal(came.bytes(), message) ? came.bytes().size() : 1;
                },
                1);
        EXPECT_EQ(received, message.size());
    }
}

TEST(ShmemSegment, more_memory_than_there_is_is_refused_with_a_remedy) {
    const auto made =
        Segment::create(2, {.buffers_bytes_max = std::size_t{1} << 50, .node_buffers_bytes_max = std::size_t{1} << 50});
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().text().find("KUMI_SHMEM_MEMORY"), std::string::npos);
}

std::size_t memory_of(const Segment& segment) {
    struct stat status {};
    EXPECT_EQ(::fstat(segment.duplicate().get(), &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST(ShmemSegment, windows_cost_no_memory_until_something_is_exposed) {
    constexpr Node nodes = 300;
    auto made = Segment::create(nodes, {});
    ASSERT_TRUE(made) << made.error().text();
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    constexpr Node mapped = 10; // sanitizers leave less addresses
#else
    constexpr Node mapped = nodes;
#endif
    for (Node node = 0; node < mapped; ++node) ASSERT_NE((*made)->window(node), nullptr) << "node " << node;
    EXPECT_LE(memory_of(**made), page_bytes); // the header
}

TEST(ShmemSegment, where_files_are_limited_windows_are_smaller) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit limited{std::size_t{1} << 30, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
    const auto made = Segment::create(2, {});
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_GT((*made)->layout().window_bytes, std::size_t{400} << 20);
    EXPECT_LE((*made)->layout().segment_bytes(), std::size_t{1} << 30);
    EXPECT_TRUE(Segment::attach((*made)->duplicate(), 2));
}

TEST(ShmemChannel, concealed_memory_goes_back_to_the_system) {
    Host host(2);
    pm::RemoteMemory& memory = *host.channels[1]->remote_memory();
    const std::size_t before = memory_of(*host.segment);
    constexpr std::size_t bytes = 8 << 20;
    const auto exposed = memory.expose(bytes, bytes);
    ASSERT_TRUE(exposed) << exposed.error().text();
    std::memset(exposed->data(), 1, bytes);
    EXPECT_EQ(memory_of(*host.segment), before + bytes);
    memory.conceal(bytes, bytes);
    EXPECT_EQ(memory_of(*host.segment), before);
}

std::uint64_t counted(const std::vector<pm::Counter>& counters, std::string_view name) {
    for (const pm::Counter& counter : counters)
        if (counter.name == name) return counter.value;
    ADD_FAILURE() << "no counter " << name;
    return 0;
}

TEST(ShmemChannel, counters_say_what_was_sent_to_whom_what_was_refused_and_how_often_it_slept) {
    Host host(3);
    ShmemChannel& sender = *host.channels[0];
    const std::uint64_t word = 1;
    std::uint64_t messages = 0;
    while (sender.try_send(1, bytes_of(word))) ++messages; // until the ring is full
    ASSERT_TRUE(sender.try_send(2, bytes_of(word)));
    EXPECT_EQ(counted(sender.counters(), "messages_sent"), messages + 1);
    EXPECT_EQ(counted(sender.counters(), "bytes_sent"), 8 * (messages + 1));
    EXPECT_EQ(counted(sender.counters(), "sends_refused"), 1u);
    EXPECT_EQ(counted(sender.counters(1), "messages_sent"), messages);
    EXPECT_EQ(counted(sender.counters(2), "bytes_sent"), 8u);
    EXPECT_EQ(counted(sender.counters(0), "messages_sent"), 0u);

    EXPECT_EQ(counted(host.channels[2]->counters(), "sleeps"), 0u);
    while (host.channels[2]->poll(ignore, pm::all_messages) != 0) {}
    ASSERT_TRUE(host.channels[2]->arm());
    host.channels[2]->sleep(now());
    EXPECT_EQ(counted(host.channels[2]->counters(), "sleeps"), 1u);
}

// ---- waking: every sleeper is woken for its reason, and nobody else is

/// Notes whom it was to wake.
struct NotingWaker final : pm::Waker {
    void wake(Node node) noexcept override { woken.push_back(node); }
    std::vector<Node> taken() { return std::exchange(woken, {}); }
    std::vector<Node> woken;
};

using Nodes = std::vector<Node>;

/// Nodes that are slept on from outside; what wakes them is noted.
struct SleepingHost {
    explicit SleepingHost(Node nodes, const Options& options = {}) : segment(*Segment::create(nodes, options)) {
        for (Node node = 0; node < nodes; ++node) {
            EXPECT_TRUE(segment->reserve_part(node));
            channels.push_back(std::make_unique<ShmemChannel>(segment, node, &waker));
        }
    }
    pm::Channel& operator[](Node node) { return *channels[node]; }
    bool fall_asleep(Node node) {
        if (!channels[node]->arm()) return false;
        (*this)[node].joint_sleep()->begin_sleep();
        return true;
    }
    void wake_up(Node node) { (*this)[node].joint_sleep()->end_sleep(); }
    bool send(Node from, Node to, std::size_t bytes = 8) {
        return channels[from]->try_send(to, std::vector<std::byte>(bytes));
    }
    std::size_t receive(Node node, std::size_t messages_max) {
        std::size_t received = 0;
        for (int idle = 0; idle < 3 && received < messages_max;) {
            const std::size_t got = channels[node]->poll(ignore, messages_max - received);
            received += got;
            idle = got == 0 ? idle + 1 : 0;
        }
        return received;
    }

    NotingWaker waker;
    std::shared_ptr<Segment> segment;
    std::vector<std::unique_ptr<ShmemChannel>> channels;
};

/// The smallest rings and buffers that there are.
constexpr Options tiny{.rings_bytes_max = 1, .buffers_bytes_max = 1};

TEST(ShmemWaking, a_message_wakes_its_receiver_once_and_nobody_who_is_awake) {
    for (const base::Fencing fencing : {base::Fencing::by_reader, base::Fencing::by_writer}) {
        SleepingHost host(70, {.fencing = fencing});
        ASSERT_TRUE(host.send(0, 69));
        EXPECT_EQ(host.waker.taken(), Nodes{}) << "it is awake";
        EXPECT_FALSE(host.fall_asleep(69)) << "there is a message";
        EXPECT_EQ(host.receive(69, 1), 1u);
        ASSERT_TRUE(host.fall_asleep(69));
        ASSERT_TRUE(host.send(68, 69));
        ASSERT_TRUE(host.send(0, 69));
        EXPECT_EQ(host.waker.taken(), Nodes{69}) << "of several wakers one pays";
        host.wake_up(69);
        EXPECT_EQ(host.receive(69, 2), 2u);
        ASSERT_TRUE(host.fall_asleep(69));
        ASSERT_TRUE(host.send(0, 69));
        EXPECT_EQ(host.waker.taken(), Nodes{69}) << "from a ring that it has watched before";
    }
}

TEST(ShmemWaking, a_message_that_comes_while_a_ring_is_watched_keeps_its_receiver_awake) {
    SleepingHost host(2);
    ASSERT_TRUE(host.send(1, 0));
    EXPECT_EQ(host.receive(0, 1), 1u); // from now on the ring is watched, and its sender rings no bell
    ASSERT_TRUE(host.send(1, 0));
    EXPECT_FALSE(host.fall_asleep(0));
    EXPECT_EQ(host.receive(0, 1), 1u) << "nor is it forgotten";
    EXPECT_TRUE(host.fall_asleep(0));
}

TEST(ShmemWaking, wake_ends_a_sleep_or_the_next_one) {
    SleepingHost host(2);
    ASSERT_TRUE(host.fall_asleep(1));
    host[1].wake();
    EXPECT_EQ(host.waker.taken(), Nodes{1});
    host.wake_up(1);
    ASSERT_TRUE(host.fall_asleep(1)) << "that one has ended";
    host.wake_up(1);
    host[1].wake();
    EXPECT_FALSE(host.fall_asleep(1)) << "this one did not begin";
    EXPECT_TRUE(host.fall_asleep(1));
}

TEST(ShmemWaking, a_refused_sender_is_woken_when_a_quarter_of_the_ring_is_free) {
    SleepingHost host(2, tiny);
    std::size_t sent = 0;
    while (host.send(0, 1)) ++sent;
    EXPECT_EQ(sent, 31u) << "2 KiB are 32 lines, of which one stays free";
    ASSERT_TRUE(host.fall_asleep(0));
    EXPECT_EQ(host.receive(1, 7), 7u);
    EXPECT_EQ(host.waker.taken(), Nodes{});
    EXPECT_EQ(host.receive(1, 1), 1u);
    EXPECT_EQ(host.waker.taken(), Nodes{0});
    host.wake_up(0);
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(host.send(0, 1));
    EXPECT_FALSE(host.send(0, 1));
}

TEST(ShmemWaking, a_sender_whose_ring_got_room_before_it_slept_does_not_sleep) {
    SleepingHost host(2, tiny);
    while (host.send(0, 1)) {}
    EXPECT_EQ(host.receive(1, 8), 8u);
    EXPECT_FALSE(host.fall_asleep(0));
    EXPECT_TRUE(host.fall_asleep(0)) << "it was told, and did not try again";
}

TEST(ShmemWaking, a_sender_that_does_not_wait_any_more_is_not_woken) {
    SleepingHost host(2, tiny);
    while (host.send(0, 1)) {}
    ASSERT_TRUE(host.fall_asleep(0));
    host.wake_up(0);
    ASSERT_TRUE(host.fall_asleep(0));
    EXPECT_EQ(host.receive(1, 16), 16u);
    EXPECT_EQ(host.waker.taken(), Nodes{});
}

TEST(ShmemWaking, a_sender_that_is_refused_while_another_thread_sleeps_wakes_that_one_when_there_is_room) {
    SleepingHost host(2, tiny);
    ASSERT_TRUE(host.fall_asleep(0));
    while (host.send(0, 1)) {}
    EXPECT_EQ(host.waker.taken(), Nodes{});
    EXPECT_EQ(host.receive(1, 8), 8u);
    EXPECT_EQ(host.waker.taken(), Nodes{0});
}

TEST(ShmemWaking, who_wants_a_buffer_is_woken_when_one_comes_back) {
    SleepingHost host(2, tiny);
    const std::size_t all = host.segment->layout().buffer_bytes;
    ASSERT_TRUE(host.send(0, 1, all));
    EXPECT_FALSE(host.send(0, 1, all));
    ASSERT_TRUE(host.fall_asleep(0));
    EXPECT_EQ(host.receive(1, 1), 1u);
    EXPECT_EQ(host.waker.taken(), Nodes{0});
    host.wake_up(0);
    EXPECT_TRUE(host.send(0, 1, all));
    EXPECT_FALSE(host.send(0, 1, all));
    EXPECT_EQ(host.receive(1, 1), 1u);
    EXPECT_FALSE(host.fall_asleep(0)) << "it came back before";
    EXPECT_EQ(host.waker.taken(), Nodes{});
}

TEST(ShmemWaking, who_is_refused_a_buffer_while_another_thread_sleeps_wakes_that_one_when_it_comes_back) {
    SleepingHost host(2, tiny);
    ASSERT_TRUE(host.send(0, 1, host.segment->layout().buffer_bytes));
    ASSERT_TRUE(host.fall_asleep(0));
    EXPECT_FALSE(host.send(0, 1, 100'000));
    EXPECT_EQ(host.waker.taken(), Nodes{});
    EXPECT_EQ(host.receive(1, 1), 1u);
    EXPECT_EQ(host.waker.taken(), Nodes{0});
}

TEST(ShmemWaking, a_kept_buffer_wakes_its_sender_when_it_is_given_back_and_not_before) {
    SleepingHost host(2, tiny);
    const std::size_t all = host.segment->layout().buffer_bytes;
    ASSERT_TRUE(host.send(0, 1, all));
    EXPECT_FALSE(host.send(0, 1, all));
    ASSERT_TRUE(host.fall_asleep(0));
    pm::KeptMessage kept;
    EXPECT_EQ(host[1].poll([&](pm::Message& message) { kept = message.keep(); }, 1), 1u);
    EXPECT_EQ(host.waker.taken(), Nodes{});
    kept = {};
    EXPECT_EQ(host.waker.taken(), Nodes{0});
}

// ---- bounds

TEST(ShmemChannel, the_longest_message_inside_a_ring_takes_no_buffer_and_one_byte_more_does) {
    SleepingHost host(2);
    const std::size_t longest = host.segment->layout().inline_bytes_max();
    for (const std::size_t bytes : {longest, longest + 1}) {
        const pm::SendSlot slot = host[0].try_reserve(1, bytes);
        ASSERT_TRUE(slot);
        EXPECT_EQ(slot.bytes().size(), bytes);
        const std::byte* const buffers = host.segment->buffers(0);
        const bool is_in_buffer =
            slot.bytes().data() >= buffers && slot.bytes().data() < buffers + host.segment->layout().buffer_bytes;
        EXPECT_EQ(is_in_buffer, bytes > longest);
        std::memset(slot.bytes().data(), 5, bytes);
        host[0].commit(slot);
        std::size_t right = 0;
        while (right == 0)
            host[1].poll(
                [&](pm::Message& message) {
                    right = static_cast<std::size_t>(
                        std::count(message.bytes().begin(), message.bytes().end(), std::byte{5}));
                },
                1);
        EXPECT_EQ(right, bytes);
    }
}

/// Puts a record into the ring from node 1 to node 0, as a program gone wild would.
void write_buffer_record(const Segment& segment, std::uint32_t unit, std::uint64_t bytes) {
    base::RingWriter<Memory, base::RingLine> ring(segment.ring(0, 1), segment.control(0, 1));
    struct {
        std::uint64_t bytes;
        std::uint32_t unit, reserved;
    } const record{bytes, unit, 0};
    base::RingLine* const line = ring.try_reserve(1);
    ASSERT_NE(line, nullptr);
    std::memcpy(line->payload, &record, sizeof record);
    ring.commit(2, sizeof record);
    segment.attention(0)[0].fetch_or(std::uint64_t{1} << 1);
}

TEST(ShmemChannelDeathTest, a_record_that_points_behind_the_buffers_ends_the_program) {
    const auto receive = [](std::uint32_t units_from_end, std::uint64_t bytes) {
        Host host(2);
        write_buffer_record(*host.segment, static_cast<std::uint32_t>(host.segment->layout().units()) - units_from_end,
                            bytes);
        std::size_t received = 0;
        host.channels[0]->poll([&](pm::Message& message) { received = message.bytes().size(); }, 1);
        return received;
    };
    EXPECT_EQ(receive(1, unit_bytes), unit_bytes) << "the last unit, whole";
    EXPECT_EQ(receive(3, 3 * unit_bytes), 3 * unit_bytes);
    EXPECT_DEATH(receive(1, unit_bytes + 1), "place.bytes");
    EXPECT_DEATH(receive(3, 3 * unit_bytes + 1), "place.bytes");
    EXPECT_DEATH(receive(0, 0), "place.unit");
}

TEST(ShmemChannel, a_large_message_that_finds_the_ring_full_is_refused_and_takes_no_buffer) {
    SleepingHost host(2, tiny);
    const std::size_t all = host.segment->layout().buffer_bytes;
    std::size_t small = 0;
    while (host.send(0, 1)) ++small;
    EXPECT_FALSE(host.send(0, 1, all));
    EXPECT_EQ(host.receive(1, small), small);
    EXPECT_TRUE(host.send(0, 1, all));
    EXPECT_FALSE(host.send(0, 1, all));
    EXPECT_EQ(host.receive(1, 9), 1u);
}

TEST(ShmemChannel, a_cancelled_buffer_is_free_again) {
    SleepingHost host(1, tiny);
    const std::size_t all = host.segment->layout().buffer_bytes;
    for (int i = 0; i < 3; ++i) {
        const pm::SendSlot slot = host[0].try_reserve(0, all);
        ASSERT_TRUE(slot) << "round " << i;
        EXPECT_FALSE(host[0].try_reserve(0, all / 2)) << "there is no other";
        host[0].cancel(slot);
    }
    EXPECT_EQ(host.receive(0, 1), 0u);
    EXPECT_EQ(host[0].sent(0).messages, 0u);
}

TEST(ShmemChannel, a_window_begins_with_its_node_and_ends_before_the_next) {
    Host host(3);
    std::vector<pm::RemoteMemory*> memories;
    for (Node node = 0; node < 3; ++node) memories.push_back(host.channels[node]->remote_memory());
    const std::size_t window = memories[0]->window_bytes();
    for (Node node = 0; node < 3; ++node)
        for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{window - page_bytes}}) {
            const auto exposed = memories[node]->expose(offset, page_bytes);
            ASSERT_TRUE(exposed) << exposed.error().text();
            std::memset(exposed->data(), static_cast<int>(node + 1), page_bytes);
        }
    for (Node node = 0; node < 3; ++node)
        for (Node by = 0; by < 3; ++by) {
            ASSERT_TRUE(memories[by]->reach(node));
            EXPECT_EQ(*memories[by]->direct(node, 0), std::byte(node + 1));
            EXPECT_EQ(*memories[by]->direct(node, window - 1), std::byte(node + 1));
        }
    memories[1]->conceal(0, page_bytes);
    ASSERT_TRUE(memories[1]->expose(0, page_bytes));
    EXPECT_EQ(*memories[0]->direct(1, 0), std::byte{0});
    EXPECT_EQ(*memories[0]->direct(0, window - 1), std::byte{1}) << "the neighbours' memory is still there";
    EXPECT_EQ(*memories[0]->direct(1, window - 1), std::byte{2});
    EXPECT_EQ(*memories[0]->direct(2, 0), std::byte{3});
}

TEST(ShmemChannel, memory_that_is_exposed_is_set_aside_to_its_last_byte) {
    Host host(2);
    pm::RemoteMemory& memory = *host.channels[0]->remote_memory();
    const std::size_t before = memory_of(*host.segment);
    ASSERT_TRUE(memory.expose(0, page_bytes + 1));
    EXPECT_EQ(memory_of(*host.segment), before + 2 * page_bytes);
    ASSERT_TRUE(memory.expose(page_bytes, 2 * page_bytes));
    EXPECT_EQ(memory_of(*host.segment), before + 3 * page_bytes);
    memory.conceal(page_bytes, page_bytes);
    EXPECT_EQ(memory_of(*host.segment), before + 2 * page_bytes);
    ASSERT_TRUE(memory.expose(0, 3 * page_bytes)) << "what was concealed is missing again";
    EXPECT_EQ(memory_of(*host.segment), before + 3 * page_bytes);
}

TEST(ShmemChannel, polls_hand_out_no_more_than_they_are_asked_for_and_more_while_a_stream_lasts) {
    SleepingHost host(2);
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(host.send(1, 0));
    std::size_t last = 0, most = 0;
    for (std::size_t received = 0; received < 500;) {
        const std::size_t got = host[0].poll(ignore, pm::all_messages);
        ASSERT_GT(got, 0u);
        if (received == 0) {
            EXPECT_EQ(got, 1u) << "the first is handed out before another is looked for";
        }
        EXPECT_LE(got, std::max<std::size_t>(1, 2 * last));
        most = std::max(most, got);
        last = got;
        received += got;
    }
    EXPECT_EQ(most, 64u);
}

// ---- options

/// A variable of the environment, for the length of a test.
struct Variable {
    Variable(const char* given_name, const char* text) : name(given_name) { ::setenv(name, text, 1); }
    ~Variable() { ::unsetenv(name); }
    const char* name;
};

TEST(ShmemOptions, are_those_of_the_environment) {
    EXPECT_EQ(options_from_environment()->buffers_bytes_max, Options{}.buffers_bytes_max);
    EXPECT_FALSE(options_from_environment()->fencing);
    const Variable memory("KUMI_SHMEM_MEMORY", "10M"), exposed("KUMI_SHMEM_EXPOSED", "3G"),
        fencing("KUMI_SHMEM_FENCING", "writer");
    const auto options = options_from_environment();
    ASSERT_TRUE(options);
    EXPECT_EQ(options->rings_bytes_max, std::size_t{2} << 20);
    EXPECT_EQ(options->buffers_bytes_max, std::size_t{8} << 20);
    EXPECT_EQ(options->node_buffers_bytes_max, std::size_t{8} << 20);
    EXPECT_EQ(options->exposed_bytes_max, std::size_t{3} << 30);
    EXPECT_EQ(options->fencing, base::Fencing::by_writer);
    ::setenv("KUMI_SHMEM_FENCING", "reader", 1);
    EXPECT_EQ(options_from_environment()->fencing, base::Fencing::by_reader);
}

TEST(ShmemOptions, that_make_no_sense_are_refused_by_name) {
    for (const char* name : {"KUMI_SHMEM_MEMORY", "KUMI_SHMEM_EXPOSED", "KUMI_SHMEM_FENCING"}) {
        const Variable wrong(name, "nonsense");
        const auto options = options_from_environment();
        ASSERT_FALSE(options) << name;
        EXPECT_EQ(options.error().text().find(std::string(name) + "=nonsense: "), 0u) << options.error().text();
    }
}

} // namespace
} // namespace kumi::device::shmem
