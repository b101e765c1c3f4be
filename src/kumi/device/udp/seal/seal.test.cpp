#include "kumi/device/udp/seal/seal.hpp"

#include "kumi/device/udp/seal/replay_window.hpp"
#include "skips.hpp"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace kumi::device::udp {
namespace {

using namespace std::chrono_literals;
using Opened = Seal::Opened;
using Packet = std::vector<std::byte>;
using pm::Node;

Packet content_of(std::size_t bytes) {
    Packet content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i * 7 + bytes);
    return content;
}

Packet body_of(const Packet& packet) { return Packet(packet.begin() + sizeof(SealHeader), packet.end()); }

SealHeader header_of(const Packet& packet) {
    SealHeader header{};
    EXPECT_TRUE(read_value(packet, header));
    return header;
}

base::JobKeys keys_of_job(int job) {
    base::JobKeys made;
    made.token = 1000u + static_cast<unsigned>(job);
    for (std::size_t i = 0; i < made.secret.size(); ++i)
        made.secret[i] = static_cast<std::byte>(i * 31 + static_cast<unsigned>(job));
    return made;
}

using Offers = std::vector<SealOffer>;

/// The seals of one channel, one a node. `damage` changes what all nodes but the sender see of its offer.
struct Channel {
    explicit Channel(Node nodes = 3, Options options = {}, const base::JobKeys& keys = keys_of_job(0),
                     const std::function<void(Offers&)>& damage = {}) {
        Offers offers;
        for (Node node = 0; node < nodes; ++node) {
            auto made = Seal::make(options, keys, node);
            EXPECT_TRUE(made) << made.error().text();
            seals.push_back(*std::move(made));
            offers.push_back(seals.back()->offer());
        }
        for (Node node = 0; node < nodes; ++node) {
            Offers seen = offers;
            if (damage) damage(seen);
            seen[node] = offers[node];
            seals[node]->meet(seen);
        }
    }

    Seal& operator[](Node node) { return *seals[node]; }

    std::vector<std::unique_ptr<Seal>> seals;
};

Packet sealed(Seal& by, Node to, const Packet& content, Instant time = {}) {
    Packet out(content.size() + seal_bytes);
    const std::size_t half = content.size() / 2;
    out.resize(by.close(to, Bytes(content).first(half), Bytes(content).subspan(half), out.data(), time));
    EXPECT_EQ(out.size(), content.size() + seal_bytes);
    return out;
}

/// A copy is opened: opening changes the bytes.
Opened opened(Seal& by, Packet packet, const Packet* content = nullptr) {
    Bytes inside;
    const Opened answer = by.open(packet, inside);
    if (answer == Opened::yes && content != nullptr) {
        EXPECT_TRUE(std::equal(inside.begin(), inside.end(), content->begin(), content->end()));
    }
    return answer;
}

template <class T>
Packet with(Packet packet, std::size_t at, T value) {
    std::memcpy(packet.data() + at, &value, sizeof value);
    return packet;
}

class SealTest : public testing::Test {
protected:
    void SetUp() override {
        const auto probe = Seal::make({}, keys_of_job(0), 0);
        if (!probe && !probes::has_library("libcrypto")) KUMI_SKIP(skips::built_without("OpenSSL"));
        ASSERT_TRUE(probe) << probe.error().text();
    }
};

// ---- what a packet is

TEST_F(SealTest, packets_of_every_size_come_out_as_they_went_in_with_either_cipher) {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 0; bytes <= 300; ++bytes) sizes.push_back(bytes);
    sizes.insert(sizes.end(), {1431, 1432, 1433, 9000, 65'472});
    for (const bool aes : {true, false}) {
        Channel nodes(2, {.prefers_aes = aes});
        for (const std::size_t bytes : sizes) {
            const Packet content = content_of(bytes);
            const Packet packet = sealed(nodes[0], 1, content);
            EXPECT_EQ(Seal::bytes_of_sealed(packet), packet.size());
            EXPECT_EQ(opened(nodes[1], packet, &content), Opened::yes) << bytes << (aes ? " AES" : " ChaCha20");
        }
    }
}

TEST_F(SealTest, nodes_with_and_without_instructions_for_aes_agree_on_a_cipher) {
    std::vector<std::unique_ptr<Seal>> nodes;
    Offers offers;
    for (Node node = 0; node < 3; ++node) {
        nodes.push_back(*Seal::make({.prefers_aes = node != 1}, keys_of_job(0), node));
        offers.push_back(nodes.back()->offer());
    }
    for (auto& node : nodes) node->meet(offers);
    const Packet content = content_of(100);
    for (Node from = 0; from < 3; ++from)
        for (Node to = 0; to < 3; ++to)
            EXPECT_EQ(opened(*nodes[to], sealed(*nodes[from], to, content), &content), Opened::yes);
    // A choice that differs is no common cipher.
    offers[1].prefers_aes = 1;
    auto wrong = Seal::make({.prefers_aes = true}, keys_of_job(0), 0);
    ASSERT_TRUE(wrong);
    offers[0] = (*wrong)->offer();
    (*wrong)->meet(offers);
    nodes[1]->meet(offers);
    EXPECT_EQ(opened(*nodes[1], sealed(**wrong, 1, content)), Opened::forged);
}

TEST_F(SealTest, the_content_cannot_be_read_on_the_wire_and_never_looks_the_same_twice) {
    Channel nodes;
    const Packet content(64, std::byte{'k'});
    const Packet first = sealed(nodes[0], 1, content), second = sealed(nodes[0], 1, content),
                 other = sealed(nodes[0], 2, content);
    EXPECT_EQ(std::search(first.begin(), first.end(), content.begin(), content.begin() + 8), first.end());
    EXPECT_NE(body_of(first), body_of(second));
    EXPECT_NE(body_of(first), body_of(other));
}

TEST_F(SealTest, the_token_which_is_all_that_protects_plain_networks_is_not_on_the_wire) {
    Channel nodes;
    const std::uint64_t token = keys_of_job(0).token;
    const Bytes bytes = bytes_of(token);
    const Packet packet = sealed(nodes[0], 1, content_of(64));
    EXPECT_EQ(std::search(packet.begin(), packet.end(), bytes.begin(), bytes.end()), packet.end());
}

TEST_F(SealTest, a_changed_bit_anywhere_is_refused_and_the_true_packet_is_still_taken) {
    Channel nodes;
    const Packet content = content_of(40);
    const Packet packet = sealed(nodes[0], 1, content);
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
        Packet changed = packet;
        changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        const Opened answer = opened(nodes[1], changed);
        const std::size_t byte = bit / 8;
        if (byte < 8) EXPECT_EQ(answer, Opened::foreign) << bit;
        else if (byte >= 12 && byte < 14) EXPECT_TRUE(answer == Opened::truncated || answer == Opened::forged) << bit;
        else EXPECT_EQ(answer, Opened::forged) << bit;
    }
    EXPECT_EQ(opened(nodes[1], packet, &content), Opened::yes);
}

TEST_F(SealTest, every_shorter_piece_of_a_packet_is_truncated_and_what_follows_it_is_left_alone) {
    Channel nodes;
    const Packet content = content_of(40);
    const Packet packet = sealed(nodes[0], 1, content);
    for (std::size_t bytes = 0; bytes < packet.size(); ++bytes)
        EXPECT_EQ(opened(nodes[1], Packet(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(bytes))),
                  Opened::truncated)
            << bytes;
    Packet longer = packet;
    longer.resize(packet.size() + 100, std::byte{0x55});
    EXPECT_EQ(opened(nodes[1], longer, &content), Opened::yes);
}

TEST_F(SealTest, one_that_says_to_be_a_byte_shorter_than_a_seal_is_truncated) {
    Channel nodes;
    const Packet packet = sealed(nodes[0], 1, content_of(0));
    ASSERT_EQ(packet.size(), seal_bytes);
    const auto opened_with = [&](std::uint16_t bytes, std::size_t came) {
        Packet lying = packet;
        lying.resize(came);
        return opened(nodes[1], with(lying, offsetof(SealHeader, bytes), bytes));
    };
    EXPECT_EQ(opened_with(seal_bytes - 1, seal_bytes), Opened::truncated);
    EXPECT_EQ(opened_with(0, seal_bytes), Opened::truncated);
    EXPECT_EQ(opened_with(seal_bytes + 1, seal_bytes), Opened::truncated);
    EXPECT_EQ(opened_with(seal_bytes + 1, seal_bytes + 1), Opened::forged);
    EXPECT_EQ(opened_with(0xFFFF, seal_bytes), Opened::truncated);
    EXPECT_EQ(opened_with(seal_bytes, seal_bytes), Opened::yes);
}

TEST_F(SealTest, a_replay_is_refused_and_reordering_within_the_window_is_not) {
    Channel nodes;
    std::vector<Packet> packets;
    for (std::uint64_t i = 0; i < ReplayWindow::width + 1; ++i) packets.push_back(sealed(nodes[0], 1, content_of(8)));
    EXPECT_EQ(opened(nodes[1], packets.back()), Opened::yes);
    for (std::size_t i = packets.size() - 2; i > 0; --i) ASSERT_EQ(opened(nodes[1], packets[i]), Opened::yes) << i;
    for (std::size_t i = 1; i < packets.size(); ++i) ASSERT_EQ(opened(nodes[1], packets[i]), Opened::replayed) << i;
    EXPECT_EQ(opened(nodes[1], packets[0]), Opened::replayed) << "too old to tell";
}

TEST_F(SealTest, a_forged_number_far_ahead_does_not_move_the_window) {
    Channel nodes;
    const Packet first = sealed(nodes[0], 1, content_of(8)), second = sealed(nodes[0], 1, content_of(8));
    EXPECT_EQ(opened(nodes[1], with(first, offsetof(SealHeader, number), std::uint64_t{1'000'000})), Opened::forged);
    EXPECT_EQ(opened(nodes[1], second), Opened::yes);
    EXPECT_EQ(opened(nodes[1], first), Opened::yes);
}

TEST_F(SealTest, numbers_of_different_senders_do_not_mix) {
    Channel nodes;
    for (int i = 0; i < 3; ++i) {
        const Packet first = sealed(nodes[0], 2, content_of(8)), second = sealed(nodes[1], 2, content_of(8));
        EXPECT_EQ(opened(nodes[2], first), Opened::yes);
        EXPECT_EQ(opened(nodes[2], second), Opened::yes);
        EXPECT_EQ(opened(nodes[2], first), Opened::replayed);
        EXPECT_EQ(opened(nodes[2], second), Opened::replayed);
    }
}

TEST_F(SealTest, random_bytes_with_the_right_name_are_refused) {
    Channel nodes;
    const std::uint64_t name = header_of(sealed(nodes[0], 1, content_of(8))).name;
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        Packet bytes(random() % 300);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        const SealHeader header{name,
                                static_cast<std::uint32_t>(random() % 4),
                                static_cast<std::uint16_t>(bytes.size()),
                                static_cast<std::uint8_t>(random()),
                                static_cast<std::uint8_t>(random()),
                                random()};
        if (bytes.size() >= sizeof header) std::memcpy(bytes.data(), &header, sizeof header);
        EXPECT_EQ(opened(nodes[1], bytes), bytes.size() < seal_bytes ? Opened::truncated : Opened::forged);
    }
}

// ---- whose a packet is

TEST_F(SealTest, a_packet_for_another_node_or_in_the_name_of_another_is_forged) {
    Channel nodes;
    const Packet to_one = sealed(nodes[0], 1, content_of(8));
    EXPECT_EQ(opened(nodes[2], to_one), Opened::forged);
    EXPECT_EQ(opened(nodes[0], to_one), Opened::forged) << "sent back to its sender";
    for (const std::uint32_t source : {1u, 2u, 3u, 0xFFFF'FFFFu})
        EXPECT_EQ(opened(nodes[1], with(to_one, offsetof(SealHeader, source), source)), Opened::forged) << source;
    EXPECT_EQ(opened(nodes[1], to_one), Opened::yes);
}

TEST_F(SealTest, a_node_of_the_job_that_knows_all_but_the_private_keys_of_two_others_cannot_speak_for_them) {
    // Node 2 knows the job's secret, the network and every offer. It makes a seal that says to be node 0's.
    Offers offers;
    Channel nodes(3, {}, keys_of_job(0), [&](Offers& seen) { offers = seen; });
    auto pretender = Seal::make({}, keys_of_job(0), 0);
    ASSERT_TRUE(pretender);
    (*pretender)->meet(offers);
    const Packet content = content_of(8);
    EXPECT_EQ(opened(nodes[1], sealed(**pretender, 1, content)), Opened::forged);
    EXPECT_EQ(opened(**pretender, sealed(nodes[1], 0, content)), Opened::forged) << "nor read what they say";
    EXPECT_EQ(opened(nodes[1], sealed(nodes[0], 1, content)), Opened::yes);
}

TEST_F(SealTest, a_node_sends_to_itself) {
    Channel nodes(1);
    for (int i = 0; i < 3; ++i) {
        const Packet content = content_of(20);
        const Packet packet = sealed(nodes[0], 0, content);
        EXPECT_EQ(opened(nodes[0], packet, &content), Opened::yes);
        EXPECT_EQ(opened(nodes[0], packet), Opened::replayed);
    }
}

TEST_F(SealTest, two_jobs_cannot_read_each_other) {
    Channel one(2, {}, keys_of_job(1)), two(2, {}, keys_of_job(2));
    const Packet packet = sealed(one[0], 1, content_of(8));
    EXPECT_EQ(opened(two[1], packet), Opened::foreign);
    const std::uint64_t name = header_of(sealed(two[0], 1, content_of(8))).name; // which is no secret
    EXPECT_EQ(opened(two[1], with(packet, 0, name)), Opened::forged);
}

TEST_F(SealTest, two_networks_of_one_job_cannot_read_each_other) {
    Channel lan(2, {.network = "lan"}), myrinet(2, {.network = "myrinet"});
    const Packet packet = sealed(lan[0], 1, content_of(8));
    EXPECT_EQ(opened(myrinet[1], packet), Opened::foreign);
    const std::uint64_t name = header_of(sealed(myrinet[0], 1, content_of(8))).name;
    EXPECT_EQ(opened(myrinet[1], with(packet, 0, name)), Opened::forged);
    EXPECT_EQ(opened(myrinet[1], sealed(myrinet[0], 1, content_of(8))), Opened::yes) << "nothing that follows is lost";
}

TEST_F(SealTest, another_channel_on_one_network_as_after_a_restart_has_other_keys) {
    Channel before, after;
    EXPECT_EQ(header_of(sealed(before[0], 1, {})).name, header_of(sealed(after[0], 1, {})).name);
    EXPECT_EQ(opened(after[1], sealed(before[0], 1, content_of(8))), Opened::forged);
    EXPECT_EQ(opened(after[1], sealed(after[0], 1, content_of(8))), Opened::yes);
}

/// Whether two nodes understand each other when node 1 believes something else.
Opened with_another(const std::function<void(Options&, base::JobKeys&, Offers&)>& change) {
    Options options;
    base::JobKeys keys = keys_of_job(0);
    auto zero = Seal::make(options, keys, 0);
    Offers offers{(*zero)->offer(), {}};
    Offers theirs = offers;
    change(options, keys, theirs);
    auto one = Seal::make(options, keys, 1);
    offers[1] = (*one)->offer();
    theirs[1] = offers[1];
    (*zero)->meet(offers);
    (*one)->meet(theirs);
    const Packet content = content_of(8);
    Packet packet = sealed(**zero, 1, content);
    return opened(**one, with(packet, 0, header_of(sealed(**one, 1, content)).name), &content);
}

TEST_F(SealTest, a_key_is_made_of_the_secret_the_token_the_network_and_the_salt) {
    EXPECT_EQ(with_another([](Options&, base::JobKeys&, Offers&) {}), Opened::yes);
    EXPECT_EQ(with_another([](Options& options, base::JobKeys&, Offers&) { options.network = "another"; }),
              Opened::forged);
    EXPECT_EQ(with_another([](Options&, base::JobKeys& keys, Offers&) { keys.secret[31] ^= std::byte{1}; }),
              Opened::forged);
    EXPECT_EQ(with_another([](Options&, base::JobKeys& keys, Offers&) { ++keys.token; }), Opened::forged);
    EXPECT_EQ(with_another([](Options&, base::JobKeys&, Offers& offers) { offers[0].salt[15] ^= std::byte{1}; }),
              Opened::forged);
    EXPECT_EQ(with_another([](Options&, base::JobKeys&, Offers& offers) { offers[0].key[0] ^= std::byte{1}; }),
              Opened::forged);
}

TEST_F(SealTest, an_offer_that_is_no_public_key_makes_no_key_and_harms_no_other_pair) {
    Channel nodes(3, {}, keys_of_job(0), [](Offers& offers) { offers[2].key = {}; }); // a point of small order
    Packet out(seal_bytes + 8);
    EXPECT_EQ(nodes[0].close(2, content_of(8), {}, out.data(), {}), 0u);
    EXPECT_EQ(nodes[0].close(2, content_of(8), {}, out.data(), {}), 0u);
    EXPECT_EQ(opened(nodes[0], sealed(nodes[2], 0, content_of(8))), Opened::forged);
    EXPECT_EQ(opened(nodes[1], sealed(nodes[0], 1, content_of(8))), Opened::yes);
}

// ---- keys that wear out

/// Two nodes whose packets cross; every key with every nonce is collected.
struct Worn {
    explicit Worn(std::uint64_t packets, Duration after = 1h)
        : nodes(2,
                {.rekeying = {packets, after, [this](Bytes key, Bytes nonce) {
                                  std::pair<Packet, Packet> use{{key.begin(), key.end()}, {nonce.begin(), nonce.end()}};
                                  keys.insert(use.first);
                                  EXPECT_TRUE(used.insert(std::move(use)).second) << "a key met a nonce twice";
                              }}}) {}

    std::set<std::pair<Packet, Packet>> used;
    std::set<Packet> keys;
    Channel nodes;
};

TEST_F(SealTest, a_key_is_replaced_after_so_many_packets_once_its_receiver_has_said_that_it_saw_it) {
    Worn worn(4);
    Channel& nodes = worn.nodes;
    // Node 1 says nothing, so node 0 does not know whether it has come as far.
    EXPECT_EQ(nodes[0].keys_used(1), 0u) << "no key before they talk";
    for (int i = 0; i < 10; ++i) EXPECT_EQ(opened(nodes[1], sealed(nodes[0], 1, content_of(8))), Opened::yes);
    EXPECT_EQ(nodes[0].keys_used(1), 1u);
    EXPECT_EQ(opened(nodes[0], sealed(nodes[1], 0, content_of(8))), Opened::yes);
    EXPECT_EQ(opened(nodes[1], sealed(nodes[0], 1, content_of(8))), Opened::yes);
    EXPECT_EQ(nodes[0].keys_used(1), 2u);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(opened(nodes[1], sealed(nodes[0], 1, content_of(8))), Opened::yes);
    EXPECT_EQ(nodes[0].keys_used(1), 2u) << "node 1 has not said that it saw the second";
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(opened(nodes[0], sealed(nodes[1], 0, content_of(8))), Opened::yes);
        ASSERT_EQ(opened(nodes[1], sealed(nodes[0], 1, content_of(8))), Opened::yes);
    }
    for (const Node node : {0u, 1u}) { // 1,000 packets, four a key
        EXPECT_GE(nodes[node].keys_used(1 - node), 200u);
        EXPECT_LE(nodes[node].keys_used(1 - node), 300u);
    }
    EXPECT_EQ(worn.keys.size(), nodes[0].keys_used(1) + nodes[1].keys_used(0)) << "no two are alike";
}

TEST_F(SealTest, a_key_is_replaced_after_so_much_time) {
    Worn worn(1'000'000, 10min);
    Channel& nodes = worn.nodes;
    Instant time{};
    const auto both_ways = [&] {
        EXPECT_EQ(opened(nodes[1], sealed(nodes[0], 1, content_of(8), time)), Opened::yes);
        EXPECT_EQ(opened(nodes[0], sealed(nodes[1], 0, content_of(8), time)), Opened::yes);
    };
    time += 24h; // before the first packet
    both_ways();
    time += 10min - 1ns;
    both_ways();
    EXPECT_EQ(nodes[0].keys_used(1), 1u);
    time += 1ns;
    both_ways();
    EXPECT_EQ(nodes[0].keys_used(1), 2u);
    EXPECT_EQ(nodes[1].keys_used(0), 2u);
    time += 10min;
    both_ways();
    EXPECT_EQ(nodes[0].keys_used(1), 3u);
}

TEST_F(SealTest, packets_of_the_key_before_are_taken_when_they_are_late_and_older_ones_are_not) {
    Worn worn(1);
    Channel& nodes = worn.nodes;
    const auto answer = [&] { EXPECT_EQ(opened(nodes[0], sealed(nodes[1], 0, content_of(8))), Opened::yes); };
    const Packet late = sealed(nodes[0], 1, content_of(8));
    EXPECT_EQ(opened(nodes[1], sealed(nodes[0], 1, content_of(8))), Opened::yes);
    answer();
    const Packet second = sealed(nodes[0], 1, content_of(8));
    EXPECT_EQ(header_of(second).epoch, 1);
    EXPECT_EQ(opened(nodes[1], second), Opened::yes);
    EXPECT_EQ(opened(nodes[1], late), Opened::yes) << "its key is the one before";
    EXPECT_EQ(opened(nodes[1], late), Opened::replayed);
    const Packet too_late = sealed(nodes[0], 1, content_of(8));
    EXPECT_EQ(header_of(too_late).epoch, 1);
    answer();
    for (const int epoch : {2, 3}) {
        const Packet next = sealed(nodes[0], 1, content_of(8));
        EXPECT_EQ(header_of(next).epoch, epoch);
        EXPECT_EQ(opened(nodes[1], next), Opened::yes);
        answer();
    }
    EXPECT_EQ(opened(nodes[1], too_late), Opened::forged) << "two keys ago";
}

TEST_F(SealTest, a_forged_packet_of_the_next_key_or_of_one_far_ahead_changes_nothing) {
    Worn worn(4);
    Channel& nodes = worn.nodes;
    const Packet content = content_of(8);
    const Packet packet = sealed(nodes[0], 1, content);
    for (const int epoch : {1, 2, 3, 127, 128, 254, 255})
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ(opened(nodes[1], with(packet, offsetof(SealHeader, epoch), static_cast<std::uint8_t>(epoch))),
                      Opened::forged)
                << epoch;
    EXPECT_EQ(opened(nodes[1], packet), Opened::yes);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(opened(nodes[0], sealed(nodes[1], 0, content)), Opened::yes);
        ASSERT_EQ(opened(nodes[1], sealed(nodes[0], 1, content)), Opened::yes);
    }
    EXPECT_GT(nodes[0].keys_used(1), 10u);
}

TEST_F(SealTest, whatever_is_lost_late_or_doubled_nodes_never_lose_each_others_keys) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        Worn worn(1 + random() % 5);
        std::vector<std::pair<Node, Packet>> under_way;
        std::uint64_t arrived = 0, last_in_a_row = 0;
        for (int step = 0; step < 3000; ++step) {
            const Node from = static_cast<Node>(random() % 2);
            Packet packet = sealed(worn.nodes[from], 1 - from, content_of(random() % 20));
            if (random() % 3 == 0) continue; // lost
            under_way.emplace_back(1 - from, packet);
            if (random() % 8 == 0) under_way.emplace_back(1 - from, packet);
            while (under_way.size() > random() % 12) {
                const std::size_t next = random() % under_way.size();
                const Opened answer = opened(worn.nodes[under_way[next].first], under_way[next].second);
                EXPECT_TRUE(answer == Opened::yes || answer == Opened::replayed || answer == Opened::forged);
                arrived += answer == Opened::yes ? 1 : 0;
                under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(next));
            }
        }
        EXPECT_GT(arrived, 1500u) << seed;
        EXPECT_GT(worn.nodes[0].keys_used(1), 100u) << seed;
        for (int i = 0; i < 4; ++i)
            for (Node from = 0; from < 2; ++from)
                last_in_a_row +=
                    opened(worn.nodes[1 - from], sealed(worn.nodes[from], 1 - from, content_of(4))) == Opened::yes ? 1
                                                                                                                   : 0;
        EXPECT_EQ(last_in_a_row, 8u) << seed;
    }
}

} // namespace
} // namespace kumi::device::udp
