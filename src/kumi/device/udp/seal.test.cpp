#include "kumi/device/udp/seal.hpp"

#include "skips.hpp"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <set>

namespace kumi::device::udp {
namespace {

using Opened = Seal::Opened;
using Packet = std::vector<std::byte>;

Packet content_of(std::size_t bytes) {
    Packet content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i * 7 + bytes);
    return content;
}

// ---- the window

TEST(ReplayWindow, each_number_is_new_once) {
    ReplayWindow window;
    for (std::uint64_t number = 0; number < 3 * ReplayWindow::width; ++number) {
        EXPECT_TRUE(window.is_new(number));
        window.note(number);
        EXPECT_FALSE(window.is_new(number));
    }
}

TEST(ReplayWindow, numbers_out_of_order_are_new_once_within_the_window_and_never_behind_it) {
    for (const std::uint64_t first : {std::uint64_t{ReplayWindow::width}, std::uint64_t{12'345}, std::uint64_t{1} << 40}) {
        ReplayWindow window;
        window.note(first);
        const std::uint64_t oldest = first + 1 - ReplayWindow::width;
        EXPECT_FALSE(window.is_new(oldest - 1));
        EXPECT_FALSE(window.is_new(0));
        for (std::uint64_t number = first - 1; number >= oldest; --number) {
            ASSERT_TRUE(window.is_new(number)) << number;
            window.note(number);
            ASSERT_FALSE(window.is_new(number)) << number;
        }
    }
}

TEST(ReplayWindow, a_jump_ahead_forgets_what_it_leaves_behind_and_only_that) {
    for (const std::uint64_t jump : {1ull, 63ull, 64ull, 65ull, 2047ull, 2048ull, 2049ull, 1'000'000ull}) {
        ReplayWindow window;
        std::set<std::uint64_t> seen;
        for (std::uint64_t number = 5; number < 5 + ReplayWindow::width; number += 3) window.note(number), seen.insert(number);
        const std::uint64_t latest = *seen.rbegin() + jump;
        window.note(latest);
        seen.insert(latest);
        for (std::uint64_t number = latest < 5'000 ? 0 : latest - 5'000; number <= latest + 2; ++number) {
            const bool too_old = number + ReplayWindow::width <= latest;
            ASSERT_EQ(window.is_new(number), !too_old && !seen.contains(number)) << number << " after a jump by " << jump;
        }
    }
}

// ---- the seal

class SealTest : public testing::Test {
protected:
    static base::JobKeys keys(int job) {
        base::JobKeys made;
        made.token = 1000u + static_cast<unsigned>(job);
        for (std::size_t i = 0; i < made.secret.size(); ++i) made.secret[i] = static_cast<std::byte>(i * 31 + static_cast<unsigned>(job));
        return made;
    }

    void SetUp() override {
        const auto probe = Seal::make(keys(0), 0, 1, {1, 1});
        if (!probe && !probes::has_library("libcrypto")) KUMI_SKIP(skips::built_without("OpenSSL"));
        ASSERT_TRUE(probe) << probe.error().text();
    }

    /// A node of a job of three; all are in life 1 unless it is said otherwise.
    static std::unique_ptr<Seal> node(pm::Node self, int job = 0, std::vector<std::uint32_t> lives = {1, 1, 1}) {
        auto made = Seal::make(keys(job), self, lives[self], lives);
        EXPECT_TRUE(made);
        return *std::move(made);
    }

    static Packet sealed(Seal& by, pm::Node to, const Packet& content) {
        Packet out(content.size() + seal_bytes);
        const std::size_t half = content.size() / 2;
        EXPECT_EQ(by.close(to, Bytes(content).first(half), Bytes(content).subspan(half), out.data()), out.size());
        return out;
    }

    /// A copy is opened: opening changes the bytes.
    static Opened opened(Seal& by, Packet packet, const Packet* content = nullptr) {
        Bytes inside;
        const Opened answer = by.open(packet, inside);
        if (answer == Opened::yes && content != nullptr) {
            EXPECT_TRUE(std::equal(inside.begin(), inside.end(), content->begin(), content->end()));
        }
        return answer;
    }
};

TEST_F(SealTest, packets_of_every_size_come_out_as_they_went_in) {
    const auto zero = node(0), one = node(1);
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 0; bytes <= 300; ++bytes) sizes.push_back(bytes);
    sizes.insert(sizes.end(), {1431, 1432, 1433, 9000, 65'000});
    for (const std::size_t bytes : sizes) {
        const Packet content = content_of(bytes);
        const Packet packet = sealed(*zero, 1, content);
        EXPECT_EQ(Seal::bytes_of_sealed(packet), packet.size());
        EXPECT_EQ(opened(*one, packet, &content), Opened::yes) << bytes;
    }
}

TEST_F(SealTest, the_content_cannot_be_read_on_the_wire_and_never_looks_the_same_twice) {
    const auto zero = node(0);
    const Packet content(64, std::byte{'k'});
    const Packet first = sealed(*zero, 1, content), second = sealed(*zero, 1, content), other = sealed(*zero, 2, content);
    const auto body = [](const Packet& packet) { return Packet(packet.begin() + sizeof(SealHeader), packet.end()); };
    EXPECT_EQ(std::search(first.begin(), first.end(), content.begin(), content.begin() + 8), first.end());
    EXPECT_NE(body(first), body(second));
    EXPECT_NE(body(first), body(other));
}

TEST_F(SealTest, a_changed_bit_anywhere_is_refused_and_the_true_packet_is_still_taken) {
    const auto zero = node(0), one = node(1);
    const Packet content = content_of(40);
    const Packet packet = sealed(*zero, 1, content);
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
        Packet changed = packet;
        changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        const Opened answer = opened(*one, changed);
        const std::size_t byte = bit / 8;
        if (byte < 8) EXPECT_EQ(answer, Opened::foreign) << bit;
        else if (byte >= 12 && byte < 16) EXPECT_TRUE(answer == Opened::truncated || answer == Opened::forged) << bit;
        else EXPECT_EQ(answer, Opened::forged) << bit;
    }
    EXPECT_EQ(opened(*one, packet, &content), Opened::yes);
}

TEST_F(SealTest, every_shorter_piece_of_a_packet_is_truncated_and_what_follows_it_is_left_alone) {
    const auto zero = node(0), one = node(1);
    const Packet content = content_of(40);
    const Packet packet = sealed(*zero, 1, content);
    for (std::size_t bytes = 0; bytes < packet.size(); ++bytes)
        EXPECT_EQ(opened(*one, Packet(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(bytes))), Opened::truncated) << bytes;
    Packet longer = packet;
    longer.resize(packet.size() + 100, std::byte{0x55});
    EXPECT_EQ(opened(*one, longer, &content), Opened::yes);
}

TEST_F(SealTest, a_replay_is_refused_and_reordering_within_the_window_is_not) {
    const auto zero = node(0), one = node(1);
    std::vector<Packet> packets;
    for (std::uint64_t i = 0; i < ReplayWindow::width + 1; ++i) packets.push_back(sealed(*zero, 1, content_of(8)));
    EXPECT_EQ(opened(*one, packets.back()), Opened::yes);
    for (std::size_t i = packets.size() - 2; i > 0; --i) ASSERT_EQ(opened(*one, packets[i]), Opened::yes) << i;
    for (std::size_t i = 1; i < packets.size(); ++i) ASSERT_EQ(opened(*one, packets[i]), Opened::replayed) << i;
    EXPECT_EQ(opened(*one, packets[0]), Opened::replayed) << "too old to tell";
}

TEST_F(SealTest, a_forged_number_far_ahead_does_not_move_the_window) {
    const auto zero = node(0), one = node(1);
    const Packet first = sealed(*zero, 1, content_of(8)), second = sealed(*zero, 1, content_of(8));
    Packet ahead = first;
    const std::uint64_t number = 1'000'000;
    std::memcpy(ahead.data() + offsetof(SealHeader, number), &number, sizeof number);
    EXPECT_EQ(opened(*one, ahead), Opened::forged);
    EXPECT_EQ(opened(*one, second), Opened::yes);
    EXPECT_EQ(opened(*one, first), Opened::yes);
}

TEST_F(SealTest, a_packet_for_another_node_or_in_the_name_of_another_is_forged) {
    const auto zero = node(0), one = node(1), two = node(2);
    const Packet to_one = sealed(*zero, 1, content_of(8));
    EXPECT_EQ(opened(*two, to_one), Opened::forged);
    EXPECT_EQ(opened(*zero, to_one), Opened::forged) << "sent back to its sender";
    for (const std::uint32_t source : {1u, 2u, 3u, 0xFFFF'FFFFu}) {
        Packet renamed = to_one;
        std::memcpy(renamed.data() + offsetof(SealHeader, source), &source, sizeof source);
        EXPECT_EQ(opened(*one, renamed), Opened::forged) << source;
    }
    EXPECT_EQ(opened(*one, to_one), Opened::yes);
}

TEST_F(SealTest, a_packet_of_another_life_is_forged) {
    const auto zero = node(0), zero_again = node(0, 0, {2, 1, 1}), one = node(1), one_again = node(1, 0, {2, 1, 1});
    EXPECT_EQ(opened(*one, sealed(*zero_again, 1, content_of(8))), Opened::forged);
    EXPECT_EQ(opened(*one_again, sealed(*zero, 1, content_of(8))), Opened::forged);
    EXPECT_EQ(opened(*one_again, sealed(*zero_again, 1, content_of(8))), Opened::yes);
}

TEST_F(SealTest, two_jobs_cannot_read_each_other) {
    const auto zero = node(0, 1), one = node(1, 2);
    Packet packet = sealed(*zero, 1, content_of(8));
    EXPECT_EQ(opened(*one, packet), Opened::foreign);
    const std::uint64_t token = keys(2).token; // which is no secret
    std::memcpy(packet.data(), &token, sizeof token);
    EXPECT_EQ(opened(*one, packet), Opened::forged);
}

TEST_F(SealTest, the_same_token_with_another_secret_is_of_no_use) {
    base::JobKeys guessed = keys(0);
    guessed.secret[31] ^= std::byte{1};
    const auto zero = Seal::make(guessed, 0, 1, {1, 1, 1});
    ASSERT_TRUE(zero);
    EXPECT_EQ(opened(*node(1), sealed(**zero, 1, content_of(8))), Opened::forged);
}

TEST_F(SealTest, random_bytes_with_the_right_token_are_refused) {
    const auto one = node(1);
    std::uint64_t state = 88'172'645'463'325'252u;
    const auto random = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; };
    for (int i = 0; i < 2000; ++i) {
        Packet bytes(random() % 300);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        const SealHeader header{keys(0).token, static_cast<std::uint32_t>(random() % 4), static_cast<std::uint32_t>(bytes.size()), random()};
        if (bytes.size() >= sizeof header) std::memcpy(bytes.data(), &header, sizeof header);
        const Opened answer = opened(*one, bytes);
        EXPECT_EQ(answer, bytes.size() < seal_bytes ? Opened::truncated : Opened::forged);
    }
}

TEST_F(SealTest, one_that_says_to_be_a_byte_shorter_than_a_seal_is_truncated) {
    const auto zero = node(0), one = node(1);
    const Packet packet = sealed(*zero, 1, content_of(0));
    ASSERT_EQ(packet.size(), seal_bytes);
    const auto opened_with = [&](std::uint32_t bytes, std::size_t came) {
        Packet lying = packet;
        lying.resize(came);
        std::memcpy(lying.data() + offsetof(SealHeader, bytes), &bytes, sizeof bytes);
        return opened(*one, lying);
    };
    EXPECT_EQ(opened_with(seal_bytes - 1, seal_bytes), Opened::truncated);
    EXPECT_EQ(opened_with(0, seal_bytes), Opened::truncated);
    EXPECT_EQ(opened_with(seal_bytes + 1, seal_bytes), Opened::truncated);
    EXPECT_EQ(opened_with(seal_bytes + 1, seal_bytes + 1), Opened::forged);
    EXPECT_EQ(opened_with(0xFFFF'FFFFu, seal_bytes), Opened::truncated);
    EXPECT_EQ(opened_with(seal_bytes, seal_bytes), Opened::yes);
}

TEST_F(SealTest, every_node_life_and_job_has_a_key_of_its_own) {
    const Packet content(64, std::byte{'k'});
    base::JobKeys same_secret = keys(0);
    same_secret.token = 4711;
    const auto other_job = Seal::make(same_secret, 0, 1, {1, 1, 1});
    ASSERT_TRUE(other_job);
    // All are number 0 to node 2: with one key they would look alike.
    const std::vector<Packet> packets{sealed(*node(0), 2, content), sealed(*node(1), 2, content),
                                      sealed(*node(0, 0, {2, 1, 1}), 2, content), sealed(**other_job, 2, content)};
    std::set<Packet> bodies;
    for (const Packet& packet : packets)
        bodies.emplace(packet.begin() + sizeof(SealHeader), packet.end() - seal_tag_bytes);
    EXPECT_EQ(bodies.size(), packets.size());
}

TEST_F(SealTest, numbers_of_different_senders_do_not_mix) {
    const auto zero = node(0), one = node(1), two = node(2);
    for (int i = 0; i < 3; ++i) {
        const Packet first = sealed(*zero, 2, content_of(8)), second = sealed(*one, 2, content_of(8));
        EXPECT_EQ(opened(*two, first), Opened::yes);
        EXPECT_EQ(opened(*two, second), Opened::yes);
        EXPECT_EQ(opened(*two, first), Opened::replayed);
        EXPECT_EQ(opened(*two, second), Opened::replayed);
    }
}

} // namespace
} // namespace kumi::device::udp
