#include "kumi/reliable/packet.hpp"

#include "kumi/base/data/checksum.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kumi::reliable {
namespace {

constexpr std::uint64_t token = 42;

std::vector<std::byte> packet_of(PacketHeader header, std::size_t rest) {
    header.token = token;
    header.bytes = static_cast<std::uint16_t>(sizeof header + rest);
    header.checksum = 0;
    std::vector<std::byte> packet(sizeof header + rest, std::byte{3});
    std::memcpy(packet.data(), &header, sizeof header);
    header.checksum = base::checksum(packet);
    std::memcpy(packet.data(), &header, sizeof header);
    return packet;
}

/// Nothing: it is sound.
std::optional<Drop> drop_of(const std::vector<std::byte>& packet, Checked checked = Checked::everything) {
    Bytes bytes = packet;
    PacketHeader header;
    Drop cause;
    if (parse(bytes, token, checked, header, cause)) return std::nullopt;
    return cause;
}

TEST(Packet, sound_ones_are_taken_and_cut_to_their_size) {
    for (const std::size_t rest : {0u, 8u, 16u, 40u, 1416u, 65'416u}) {
        auto packet = packet_of({.flags = flag::data, .sequence = 17}, rest);
        EXPECT_EQ(drop_of(packet), std::nullopt);
        packet.resize(packet.size() + 5); // more came with it
        Bytes bytes = packet;
        PacketHeader header;
        Drop cause;
        ASSERT_TRUE(parse(bytes, token, Checked::everything, header, cause));
        EXPECT_EQ(bytes.size(), sizeof header + rest);
        EXPECT_EQ(header.sequence, 17u);
    }
}

TEST(Packet, one_that_is_cut_short_anywhere_is_dropped) {
    const auto packet = packet_of({.flags = flag::data}, 64);
    for (std::size_t bytes = 0; bytes < packet.size(); ++bytes)
        EXPECT_EQ(drop_of({packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(bytes)}), Drop::truncated)
            << bytes;
}

TEST(Packet, any_flipped_bit_is_found) {
    auto packet = packet_of({.flags = flag::data}, 64);
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
        packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        EXPECT_TRUE(drop_of(packet).has_value()) << "bit " << bit;
        packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
}

TEST(Packet, one_without_the_token_is_foreign) {
    auto packet = packet_of({.flags = flag::data}, 64);
    packet[3] ^= std::byte{1};
    EXPECT_EQ(drop_of(packet), Drop::foreign);
    EXPECT_EQ(drop_of(packet, Checked::nothing), Drop::foreign);
}

TEST(Packet, words_that_do_not_add_up_are_malformed) {
    EXPECT_EQ(drop_of(packet_of({.ack_words = 2}, 16)), std::nullopt);
    EXPECT_EQ(drop_of(packet_of({.ack_words = 2}, 24)), Drop::malformed);
    EXPECT_EQ(drop_of(packet_of({.ack_words = 3}, 16)), Drop::malformed);
    EXPECT_EQ(drop_of(packet_of({.flags = flag::data, .ack_words = 2}, 16)), Drop::malformed);
}

TEST(Packet, one_of_an_odd_size_is_dropped) {
    auto packet = packet_of({.flags = flag::data}, 16);
    const std::uint16_t bytes = sizeof(PacketHeader) + 12;
    std::memcpy(packet.data() + offsetof(PacketHeader, bytes), &bytes, sizeof bytes);
    EXPECT_EQ(drop_of(packet, Checked::nothing), Drop::truncated);
}

TEST(Packet, every_cause_has_a_name_of_its_own) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < drop_causes; ++i) names.insert(name_of(static_cast<Drop>(i)));
    EXPECT_EQ(names.size(), drop_causes);
}

TEST(Packet, what_comes_before_what_is_clear_across_the_wrap) {
    EXPECT_TRUE(is_before(0xFFFF'FFFFu, 0));
    EXPECT_FALSE(is_before(0, 0xFFFF'FFFFu));
    EXPECT_FALSE(is_before(5, 5));
}

/// A sound packet, but for the size that it says to have.
std::vector<std::byte> packet_that_says(int size) {
    auto packet = packet_of({.flags = flag::data}, 64);
    const auto bytes = static_cast<std::uint16_t>(size);
    std::memcpy(packet.data() + offsetof(PacketHeader, bytes), &bytes, sizeof bytes);
    return packet;
}

TEST(Packet, one_that_says_to_be_smaller_than_a_header_or_larger_than_what_came_is_dropped) {
    for (const int bytes : {0, 8, 48, 128, 65'528})
        EXPECT_EQ(drop_of(packet_that_says(bytes), Checked::nothing), Drop::truncated) << bytes;
    for (const int bytes : {56, 64, 112, 120})
        EXPECT_EQ(drop_of(packet_that_says(bytes), Checked::nothing), std::nullopt) << bytes;
}

TEST(Packet, of_one_whose_head_is_checked_any_flipped_bit_of_the_head_is_found) {
    auto packet = packet_of({.flags = flag::data | flag::head_checked}, 64);
    std::uint32_t sum = 0;
    std::memcpy(packet.data() + offsetof(PacketHeader, checksum), &sum, sizeof sum);
    sum = base::checksum(Bytes(packet).first(summed_head_bytes));
    std::memcpy(packet.data() + offsetof(PacketHeader, checksum), &sum, sizeof sum);
    for (const Checked checked : {Checked::heads, Checked::everything}) {
        EXPECT_EQ(drop_of(packet, checked), std::nullopt);
        for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
            packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
            EXPECT_EQ(drop_of(packet, checked).has_value(), bit < summed_head_bytes * 8) << "bit " << bit;
            packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        }
    }
}

TEST(Packet, any_flipped_bit_of_small_messages_is_found_where_only_heads_are_checked) {
    auto packet = packet_of({.flags = flag::data}, 64);
    EXPECT_EQ(drop_of(packet, Checked::heads), std::nullopt);
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
        packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        EXPECT_TRUE(drop_of(packet, Checked::heads).has_value()) << "bit " << bit;
        packet[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
}

TEST(Packet, a_record_is_its_message_and_zeros_to_the_next_word) {
    for (std::size_t bytes = 0; bytes <= 33; ++bytes) {
        std::vector<std::byte> memory(record_bytes(bytes) + 8, std::byte{0xFF});
        const std::vector<std::byte> message(bytes, std::byte{5});
        write_record(memory.data(), Bytes(message));
        RecordHeader record;
        ASSERT_TRUE(read_value(memory, record));
        EXPECT_EQ(record.bytes, bytes);
        EXPECT_EQ(record.offset, whole_message);
        EXPECT_EQ(record_bytes(bytes) % 8, 0u);
        for (std::size_t i = sizeof record; i < memory.size(); ++i) {
            const std::size_t at = i - sizeof record;
            const auto expected = at < bytes ? std::byte{5} : i < record_bytes(bytes) ? std::byte{0} : std::byte{0xFF};
            EXPECT_EQ(memory[i], expected) << bytes << " at " << i;
        }
    }
}

} // namespace
} // namespace kumi::reliable
