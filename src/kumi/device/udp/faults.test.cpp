#include "kumi/device/udp/faults.hpp"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <map>

namespace kumi::device::udp {
namespace {

// ---- KUMI_FAULT

TEST(UdpFaults, every_word_is_read_and_what_belongs_to_others_is_passed_over) {
    const auto all =
        parse_faults("udp.loss=0.01,udp.duplicate=0.02,shmem.loss=1,udp.reorder=0.5,udp.corrupt=1,udp.truncate=0,"
                     "udp.largest=1472,udp.burst=vanish,udp.seed=7");
    ASSERT_TRUE(all) << all.error().text();
    EXPECT_EQ(all->loss, 0.01);
    EXPECT_EQ(all->duplicate, 0.02);
    EXPECT_EQ(all->reorder, 0.5);
    EXPECT_EQ(all->corrupt, 1);
    EXPECT_EQ(all->truncate, 0);
    EXPECT_TRUE(all->burst_vanish);
    EXPECT_EQ(all->largest, 1472u);
    EXPECT_EQ(all->seed, 7u);
    EXPECT_TRUE(all->any());
    EXPECT_FALSE(parse_faults("")->any());
    EXPECT_FALSE(parse_faults("ether.loss=0.5")->any());
}

TEST(UdpFaults, what_makes_no_sense_is_named_with_what_to_write) {
    for (const char* wrong : {"udp.loss", "udp.loss=", "udp.loss=x", "udp.loss=1.5", "udp.loss=-0.1", "udp.loss=0.1x",
                              "udp.loss=nan", "udp.loss=0,1", "udp.=1", "udp.lost=0.1", "udp.burst=yes",
                              "udp.largest=some", "udp.seed=-1", "udp.seed=", "loss=0.1", "udp"}) {
        const auto faults = parse_faults(std::string("udp.seed=1,") + wrong);
        ASSERT_FALSE(faults) << wrong;
        const std::string& text = faults.error().text();
        EXPECT_EQ(text.find("KUMI_FAULT: "), 0u) << text;
        EXPECT_NE(text.find(": write udp.loss=0.01 (also duplicate, reorder, corrupt, truncate; from 0 to 1), "),
                  std::string::npos)
            << text;
        EXPECT_EQ(text.find('\n'), std::string::npos);
    }
    EXPECT_EQ(parse_faults("udp.seed=1,udp.lost=0.1").error().text().find("KUMI_FAULT: udp.lost=0.1: "), 0u);
}

// ---- what happens to packets

using Packet = std::vector<std::byte>;
constexpr std::uint32_t count = 4000;

Packet packet_numbered(std::uint32_t number) {
    Packet packet(32);
    for (std::size_t at = 0; at < packet.size(); at += sizeof number) std::memcpy(&packet[at], &number, sizeof number);
    return packet;
}

std::uint32_t number_of(const Packet& packet) {
    std::uint32_t number = 0;
    read_value(packet, number);
    return number;
}

/// What comes out of packets 0, 1, 2… that go to one node.
std::vector<Packet> passed(const Faults& faults, bool flushed = true) {
    FaultyWire wire(faults);
    std::vector<Packet> out;
    const auto send = [&](pm::Node to, Bytes packet) {
        EXPECT_EQ(to, 3u);
        out.emplace_back(packet.begin(), packet.end());
    };
    for (std::uint32_t i = 0; i < count; ++i) wire.pass(3, packet_numbered(i), send);
    if (flushed) wire.flush(send);
    return out;
}

/// A tenth of all, within five standard deviations.
void expect_a_tenth(std::size_t happened) { EXPECT_NEAR(static_cast<double>(happened), count / 10.0, 95); }

TEST(UdpFaults, without_any_all_packets_pass_in_order) {
    const auto out = passed({});
    ASSERT_EQ(out.size(), count);
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(out[i], packet_numbered(i));
}

TEST(UdpFaults, loss_loses_that_part_and_changes_nothing_else) {
    const auto out = passed({.loss = 0.1, .seed = 5});
    expect_a_tenth(count - out.size());
    for (std::size_t i = 1; i < out.size(); ++i) EXPECT_LT(number_of(out[i - 1]), number_of(out[i]));
    EXPECT_TRUE(passed({.loss = 1}).empty());
}

TEST(UdpFaults, duplicates_follow_what_they_duplicate) {
    const auto out = passed({.duplicate = 0.1, .seed = 5});
    expect_a_tenth(out.size() - count);
    std::map<std::uint32_t, int> times;
    for (const Packet& packet : out) ++times[number_of(packet)];
    EXPECT_EQ(times.size(), count);
    for (const auto& [number, times_seen] : times) EXPECT_LE(times_seen, 2) << number;
    EXPECT_TRUE(std::is_sorted(out.begin(), out.end(),
                               [](const Packet& a, const Packet& b) { return number_of(a) < number_of(b); }));
}

TEST(UdpFaults, what_is_reordered_is_overtaken_by_a_few_and_not_lost) {
    const auto out = passed({.reorder = 0.1, .seed = 5});
    ASSERT_EQ(out.size(), count);
    std::size_t overtaken = 0;
    std::uint32_t latest = 0;
    std::vector<bool> seen(count);
    for (const Packet& packet : out) {
        const std::uint32_t number = number_of(packet);
        EXPECT_FALSE(seen[number]);
        seen[number] = true;
        EXPECT_EQ(packet, packet_numbered(number));
        if (number < latest) {
            ++overtaken;
            EXPECT_LE(latest - number, 20u); // eight packets that go, and those that wait themselves
        }
        latest = std::max(latest, number);
    }
    EXPECT_GT(overtaken, count / 25);
}

TEST(UdpFaults, flush_lets_go_what_was_held_back_once) {
    FaultyWire wire({.reorder = 1});
    std::vector<pm::Node> went;
    const auto send = [&](pm::Node to, Bytes) { went.push_back(to); };
    wire.pass(1, packet_numbered(0), send);
    wire.pass(2, packet_numbered(1), send);
    EXPECT_TRUE(went.empty());
    wire.flush(send);
    EXPECT_EQ(went, (std::vector<pm::Node>{1, 2}));
    wire.flush(send);
    EXPECT_EQ(went.size(), 2u);
}

TEST(UdpFaults, packets_to_another_node_do_not_let_go_what_is_held_back) {
    FaultyWire wire({.reorder = 1});
    std::map<pm::Node, int> went;
    const auto send = [&](pm::Node to, Bytes) { ++went[to]; };
    wire.pass(1, packet_numbered(0), send);
    for (std::uint32_t i = 0; i < 20; ++i) wire.pass(2, packet_numbered(i), send);
    EXPECT_EQ(went[1], 0);
    EXPECT_GT(went[2], 0);
    wire.flush(send);
    EXPECT_EQ(went[1], 1);
    EXPECT_EQ(went[2], 20);
}

TEST(UdpFaults, corruption_changes_one_bit) {
    const auto out = passed({.corrupt = 0.1, .seed = 5});
    ASSERT_EQ(out.size(), count);
    std::size_t changed = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Packet sound = packet_numbered(i);
        ASSERT_EQ(out[i].size(), sound.size());
        int bits = 0;
        for (std::size_t at = 0; at < sound.size(); ++at)
            bits += std::popcount(std::to_integer<unsigned>(out[i][at] ^ sound[at]));
        EXPECT_LE(bits, 1);
        changed += static_cast<std::size_t>(bits);
    }
    expect_a_tenth(changed);
}

TEST(UdpFaults, truncation_leaves_a_shorter_beginning) {
    const auto out = passed({.truncate = 0.1, .seed = 5});
    ASSERT_EQ(out.size(), count);
    std::size_t cut = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Packet sound = packet_numbered(i);
        ASSERT_LE(out[i].size(), sound.size());
        EXPECT_TRUE(std::equal(out[i].begin(), out[i].end(), sound.begin()));
        cut += out[i].size() < sound.size() ? 1 : 0;
    }
    expect_a_tenth(cut);
}

TEST(UdpFaults, a_seed_repeats_what_happened_and_another_does_not) {
    const Faults all{.loss = 0.1, .duplicate = 0.1, .reorder = 0.1, .corrupt = 0.1, .truncate = 0.1, .seed = 11};
    Faults other = all;
    other.seed = 12;
    EXPECT_EQ(passed(all, false), passed(all, false));
    EXPECT_NE(passed(all, false), passed(other, false));
}

} // namespace
} // namespace kumi::device::udp
