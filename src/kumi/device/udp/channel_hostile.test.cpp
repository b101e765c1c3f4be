// What strangers send to a channel's port: counted by name, never delivered, and real messages go on.
#include "kumi/device/udp/channel.hpp"

#include "loopback/ends.hpp"
#include "skips.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace kumi::device::udp {
namespace {

using namespace std::chrono_literals;
using loopback::BareSocket;
using loopback::Ends;
using loopback::Packet;
using loopback::TappedEnds;
using loopback::dropped;
using loopback::packets_of_another_pair;
using loopback::value_of;
using reliable::PacketHeader;

constexpr std::uint64_t seed = 20'241; // of the random bytes below

Packet random_bytes(std::mt19937_64& random, std::size_t bytes) {
    Packet packet(bytes);
    for (std::byte& byte : packet) byte = static_cast<std::byte>(random());
    return packet;
}

std::uint64_t count_of(UdpChannel& channel, std::string_view name) { return value_of(channel.counters(), name); }

/// Sends the packets to node 1, a few at a time, while nodes 0 and 1 talk.
void send_while_talking(Ends& ends, const std::vector<Packet>& packets) {
    const BareSocket stranger;
    std::size_t next = 0;
    const auto before = ends.meanwhile;
    ends.meanwhile = [&] {
        before();
        for (int i = 0; i < 8 && next < packets.size(); ++i) stranger.send(ends[1].address(), packets[next++]);
    };
    ends.talk(500);
    EXPECT_TRUE(ends.run_until([&] { return next == packets.size(); }));
    ends.meanwhile = before;
    ends.talk(10);
}

TEST(UdpHostile, random_bytes_are_truncated_or_foreign) {
    std::mt19937_64 random(seed);
    std::vector<Packet> packets;
    std::uint64_t shorter = 0;
    for (int i = 0; i < 1000; ++i) {
        packets.push_back(random_bytes(random, 1 + random() % (i % 2 == 0 ? 100 : 2000)));
        shorter += packets.back().size() < sizeof(PacketHeader) ? 1 : 0;
    }
    Ends ends(2);
    send_while_talking(ends, packets);
    EXPECT_EQ(count_of(ends[1], "dropped_truncated"), shorter);
    EXPECT_EQ(count_of(ends[1], "dropped_foreign"), packets.size() - shorter);
    EXPECT_EQ(dropped(ends[1]), packets.size());
    EXPECT_EQ(dropped(ends[0]), 0u);
}

TEST(UdpHostile, empty_datagrams_are_counted_and_change_nothing) {
    Ends ends(2);
    send_while_talking(ends, std::vector<Packet>(500));
    EXPECT_TRUE(ends.run_until([&] { return dropped(ends[1]) == 500; }));
    EXPECT_EQ(count_of(ends[1], "dropped_empty"), 500u);
    EXPECT_EQ(dropped(ends[0]), 0u);
}

TEST(UdpHostile, empty_datagrams_and_garbage_do_not_keep_a_sleeper_from_waking_in_time) {
    Ends ends(2);
    const BareSocket stranger;
    std::mt19937_64 random(seed);
    for (int i = 0; i < 100; ++i) {
        stranger.send(ends[1].address(), {});
        stranger.send(ends[1].address(), random_bytes(random, 80));
    }
    const Instant start = now();
    const Instant deadline = start + std::chrono::milliseconds(50);
    const auto nothing = [](pm::Message&) { ADD_FAILURE() << "nobody sent this"; };
    while (now() < deadline)
        if (ends[1].poll(nothing, pm::all_messages) == 0 && ends[1].arm()) ends[1].sleep(deadline);
    EXPECT_LT(now() - start, std::chrono::seconds(5));
    EXPECT_EQ(count_of(ends[1], "dropped_foreign"), 100u);
}

TEST(UdpHostile, every_beginning_of_a_real_packet_is_truncated) {
    TappedEnds tapped;
    tapped.ends.talk(1, 200);
    const Packet whole = tapped.packets.at(0);
    std::vector<Packet> packets;
    for (std::size_t bytes = 1; bytes < whole.size(); ++bytes)
        packets.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    send_while_talking(tapped.ends, packets);
    EXPECT_EQ(count_of(tapped.ends[1], "dropped_truncated"), packets.size());
    EXPECT_EQ(dropped(tapped.ends[1]), packets.size());
}

TEST(UdpHostile, the_largest_datagrams_there_are_do_no_harm) {
    std::mt19937_64 random(seed);
    Ends ends(2);
    send_while_talking(ends, std::vector<Packet>(20, random_bytes(random, 65'507)));
    EXPECT_EQ(count_of(ends[1], "dropped_foreign"), 20u);
}

TEST(UdpHostile, garbage_behind_a_real_packet_is_dropped) {
    TappedEnds tapped;
    tapped.ends.talk(1, 200);
    std::mt19937_64 random(seed);
    std::vector<Packet> packets;
    for (int i = 0; i < 100; ++i) {
        packets.push_back(tapped.packets.at(0));
        const Packet garbage = random_bytes(random, 1000);
        packets.back().insert(packets.back().end(), garbage.begin(), garbage.end());
    }
    send_while_talking(tapped.ends, packets);
    EXPECT_EQ(count_of(tapped.ends[1], "dropped_foreign"), packets.size());
    EXPECT_GE(value_of(tapped.ends[1].counters(0), "duplicates"), packets.size());
}

TEST(UdpHostile, a_real_packet_with_a_changed_head_is_never_taken) {
    TappedEnds tapped;
    tapped.ends.talk(1, 8);
    const Packet whole = tapped.packets.at(0);
    std::vector<Packet> packets;
    for (std::size_t bit = 0; bit < sizeof(PacketHeader) * 8; ++bit) {
        packets.push_back(whole);
        packets.back()[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
    send_while_talking(tapped.ends, packets);
    EXPECT_EQ(count_of(tapped.ends[1], "dropped_foreign"), 64u); // bits of the token
    EXPECT_LE(count_of(tapped.ends[1], "dropped_truncated"), 16u); // bits of the length
    EXPECT_EQ(count_of(tapped.ends[1], "dropped_foreign") + count_of(tapped.ends[1], "dropped_truncated") +
                  count_of(tapped.ends[1], "dropped_damaged"),
              packets.size());
    EXPECT_FALSE(tapped.ends[1].lost(0));
}

TEST(UdpHostile, packets_of_another_job_are_foreign) {
    const auto packets = packets_of_another_pair();
    ASSERT_GE(packets.size(), 2u);
    Ends ends(2);
    send_while_talking(ends, packets);
    EXPECT_EQ(count_of(ends[1], "dropped_foreign"), packets.size());
}

TEST(UdpHostile, packets_of_an_earlier_life_are_stale_and_nobody_is_lost) {
    const auto keys = base::make_job_keys();
    ASSERT_TRUE(keys);
    const auto packets = packets_of_another_pair({}, &*keys);
    std::this_thread::sleep_for(std::chrono::milliseconds(40)); // two lives within 16 ms would be one
    Ends ends(2, {}, &*keys);
    send_while_talking(ends, packets);
    EXPECT_EQ(count_of(ends[1], "dropped_stale"), packets.size());
    EXPECT_FALSE(ends[1].lost(0));
}

TEST(UdpHostile, packets_for_another_node_are_misaddressed) {
    TappedEnds tapped;
    tapped.ends.talk(20);
    const BareSocket stranger;
    const auto packets = tapped.packets; // all are for node 1
    for (const Packet& packet : packets) stranger.send(tapped.ends[0].address(), packet);
    tapped.ends.talk(10);
    EXPECT_TRUE(tapped.ends.run_until([&] { return dropped(tapped.ends[0]) == packets.size(); }));
    EXPECT_EQ(count_of(tapped.ends[0], "dropped_misaddressed"), packets.size());
}

TEST(UdpHostile, a_replay_is_a_duplicate_and_delivered_once) {
    TappedEnds tapped;
    tapped.ends.talk(50, 300);
    std::vector<Packet> packets;
    for (int again = 0; again < 3; ++again) packets.insert(packets.end(), tapped.packets.begin(), tapped.packets.end());
    const std::uint64_t before = value_of(tapped.ends[1].counters(0), "duplicates");
    std::uint64_t with_data = 0;
    for (const Packet& packet : packets) {
        PacketHeader header{};
        ASSERT_TRUE(read_value(packet, header));
        with_data += (header.flags & reliable::flag::data) != 0 ? 1 : 0;
    }
    ASSERT_GT(with_data, 0u);
    send_while_talking(tapped.ends, packets);
    EXPECT_GE(value_of(tapped.ends[1].counters(0), "duplicates") - before, with_data);
}

TEST(UdpHostile, a_flood_is_counted_while_messages_of_all_sizes_go_on) {
    std::mt19937_64 random(seed);
    std::vector<Packet> packets;
    for (int i = 0; i < 5000; ++i) packets.push_back(random_bytes(random, sizeof(PacketHeader) + random() % 100));
    const BareSocket stranger;
    std::size_t next = 0;
    Ends ends(2, {.packet_bytes_max = 1472}); // uses them until it ends
    ends.meanwhile = [&] {
        for (int i = 0; i < 32 && next < packets.size(); ++i, ++next)
            stranger.send(ends[next % 2].address(), packets[next]);
    };
    for (const std::size_t bytes : {8u, 1000u, 20'000u, 100'000u}) ends.talk(20, bytes);
    EXPECT_TRUE(ends.run_until([&] { return dropped(ends[0]) + dropped(ends[1]) == packets.size(); }));
    EXPECT_EQ(count_of(ends[0], "dropped_foreign"), packets.size() / 2);
    EXPECT_EQ(count_of(ends[1], "dropped_foreign"), packets.size() / 2);
}

// ---- encrypted

class UdpHostileEncrypted : public testing::Test {
protected:
    void SetUp() override {
        const auto probe = Seal::make({}, {}, 0);
        if (!probe && !probes::has_library("libcrypto")) KUMI_SKIP(skips::built_without("OpenSSL"));
        ASSERT_TRUE(probe) << probe.error().text();
    }
    static Options encrypted() { return {.encrypt = true}; }
};

TEST_F(UdpHostileEncrypted, packets_that_are_not_encrypted_are_refused_though_they_know_the_token) {
    const auto keys = base::make_job_keys();
    ASSERT_TRUE(keys);
    const auto packets = packets_of_another_pair({}, &*keys);
    Ends ends(2, encrypted(), &*keys);
    send_while_talking(ends, packets);
    EXPECT_EQ(count_of(ends[1], "dropped_foreign"), packets.size());
    EXPECT_EQ(dropped(ends[1]), packets.size());
}

TEST_F(UdpHostileEncrypted, a_replay_is_counted_as_one) {
    TappedEnds tapped(encrypted());
    tapped.ends.talk(50, 300);
    const auto packets = tapped.packets;
    send_while_talking(tapped.ends, packets);
    EXPECT_EQ(count_of(tapped.ends[1], "dropped_replayed"), packets.size());
    // On a slow machine node 0 repairs what was only late; nothing else may get as far as the protocol a second time.
    EXPECT_LE(value_of(tapped.ends[1].counters(0), "duplicates"), value_of(tapped.ends[0].counters(1), "repairs_sent"));
}

TEST_F(UdpHostileEncrypted, a_changed_packet_is_forged_or_truncated_or_foreign) {
    TappedEnds tapped(encrypted());
    tapped.ends.talk(1, 40);
    const Packet whole = tapped.packets.at(0);
    std::vector<Packet> packets;
    for (std::size_t byte = 0; byte < whole.size(); ++byte) {
        packets.push_back(whole);
        packets.back()[byte] ^= std::byte{0x10};
    }
    send_while_talking(tapped.ends, packets);
    UdpChannel& node = tapped.ends[1];
    EXPECT_EQ(count_of(node, "dropped_foreign"), 8u);
    // The packet has been taken before: where its number is as it was, it is a replay before it is a forgery. One that
    // says to be shorter than it is counts twice: the rest could be the next packet.
    EXPECT_GE(count_of(node, "dropped_foreign") + count_of(node, "dropped_truncated") +
                  count_of(node, "dropped_forged") + count_of(node, "dropped_replayed"),
              packets.size());
    EXPECT_GE(count_of(node, "dropped_forged"), 1u);
}

TEST_F(UdpHostileEncrypted, packets_of_another_job_an_earlier_life_or_another_network_are_refused) {
    const auto keys = base::make_job_keys();
    ASSERT_TRUE(keys);
    const auto earlier = packets_of_another_pair(encrypted(), &*keys);
    const auto foreign = packets_of_another_pair(encrypted());
    Options other_network = encrypted();
    other_network.network = "another";
    const auto misled = packets_of_another_pair(other_network, &*keys);
    Ends ends(2, encrypted(), &*keys);
    auto packets = earlier;
    packets.insert(packets.end(), foreign.begin(), foreign.end());
    packets.insert(packets.end(), misled.begin(), misled.end());
    send_while_talking(ends, packets);
    EXPECT_EQ(count_of(ends[1], "dropped_foreign"), foreign.size() + misled.size());
    EXPECT_EQ(count_of(ends[1], "dropped_forged") + count_of(ends[1], "dropped_replayed"), earlier.size());
}

TEST_F(UdpHostileEncrypted, a_flood_in_the_jobs_own_name_does_not_stop_it) {
    std::mt19937_64 random(seed);
    TappedEnds tapped(encrypted());
    Ends& ends = tapped.ends;
    ends.talk(1);
    SealHeader known{}; // everybody on the network sees it
    ASSERT_TRUE(read_value(tapped.packets.at(0), known));
    std::vector<Packet> packets;
    for (int i = 0; i < 2000; ++i) {
        packets.push_back(random_bytes(random, seal_bytes + random() % 200));
        const SealHeader header{known.name,
                                0,
                                static_cast<std::uint16_t>(packets.back().size()),
                                static_cast<std::uint8_t>(i % 3),
                                0,
                                1'000'000 + random() % 1'000'000};
        std::memcpy(packets.back().data(), &header, sizeof header);
    }
    send_while_talking(ends, packets);
    EXPECT_TRUE(ends.run_until([&] { return dropped(ends[1]) == packets.size(); }));
    EXPECT_EQ(count_of(ends[1], "dropped_forged"), packets.size());
}

TEST_F(UdpHostileEncrypted, a_node_whose_offer_is_no_public_key_is_lost_and_nothing_is_sent_to_it) {
    const BareSocket tap;
    Ends ends(3, encrypted(), nullptr, [&](Node node, std::vector<Hello>& hellos) {
        if (node != 0) return;
        hellos[2].seal.key = {};
        hellos[2].address = tap.address().wire();
    });
    const std::uint64_t word = 1;
    EXPECT_TRUE(ends[0].try_send(2, bytes_of(word)));
    EXPECT_TRUE(ends[0].lost(2));
    EXPECT_FALSE(ends[0].lost(1));
    Packet packet;
    EXPECT_FALSE(tap.receive(packet)) << packet.size() << " bytes left in clear";
    ends.talk(20, 100); // with node 1
}

TEST_F(UdpHostileEncrypted, what_follows_a_replay_in_one_datagram_is_still_taken) {
    const BareSocket tap;
    Address target;
    Packet first;
    std::uint64_t passed = 0, together = 0;
    Ends ends(2, encrypted(), nullptr, [&](Node node, std::vector<Hello>& hellos) {
        if (node != 0) return;
        Address::from_wire(hellos[1].address, target);
        hellos[1].address = tap.address().wire();
    });
    ends.meanwhile = [&] {
        // The first packet is in front of one that follows, as the system puts together what comes at once.
        for (Packet packet; tap.receive(packet); ++passed) {
            if (passed == 0) first = packet;
            Packet both = passed == 1 ? first : Packet{};
            together += passed == 1 ? 1 : 0;
            both.insert(both.end(), packet.begin(), packet.end());
            tap.send(target, both);
        }
    };
    ends.talk(20, 100);
    ASSERT_EQ(together, 1u);
    EXPECT_TRUE(ends.run_until([&] { return value_of(ends[1].counters(0), "packets_received") == passed; }, 5s));
    EXPECT_EQ(count_of(ends[1], "dropped_replayed"), 1u);
    EXPECT_EQ(dropped(ends[1]), 1u);
}

} // namespace
} // namespace kumi::device::udp
