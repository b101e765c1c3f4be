#include "kumi/device/shmem/channel.hpp"

#include "kumi/device/shmem/shmem.hpp"

#include <cstring>
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

TEST(ShmemSegment, more_memory_than_there_is_is_refused_with_a_remedy) {
    const auto made = Segment::create(2, {.buffers_bytes_max = std::size_t{1} << 50, .node_buffers_bytes_max = std::size_t{1} << 50});
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

} // namespace
} // namespace kumi::device::shmem
