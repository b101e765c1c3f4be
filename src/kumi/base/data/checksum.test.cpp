#include "kumi/base/data/checksum.hpp"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace kumi::base {
namespace {

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

TEST(Checksum, the_instruction_and_the_table_agree) {
    for (std::size_t count = 0; count <= 4096; count += 8) {
        const auto bytes = random_bytes(count, count);
        EXPECT_EQ(checksum(bytes), checksum_by_table(bytes)) << count << " bytes";
    }
}

TEST(Checksum, a_packet_cut_in_two_has_the_same_sum) {
    const auto bytes = random_bytes(1472, 1);
    for (std::size_t cut = 0; cut < bytes.size(); cut += 32)
        EXPECT_EQ(checksum(Bytes(bytes).first(cut), Bytes(bytes).subspan(cut)), checksum(bytes)) << "cut at " << cut;
}

TEST(Checksum, every_flipped_bit_changes_it) {
    auto bytes = random_bytes(256, 2);
    const std::uint32_t whole = checksum(bytes);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        EXPECT_NE(checksum(bytes), whole) << "bit " << bit;
        bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
}

TEST(Checksum, every_two_flipped_bits_change_it) {
    auto bytes = random_bytes(96, 3); // three rounds of the lanes
    const std::uint32_t whole = checksum(bytes);
    const auto flip = [&](std::size_t bit) { bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8); };
    std::size_t unseen = 0;
    for (std::size_t first = 0; first < bytes.size() * 8; ++first)
        for (std::size_t second = first + 1; second < bytes.size() * 8; ++second) {
            flip(first), flip(second);
            if (checksum(bytes) == whole) ++unseen;
            flip(first), flip(second);
        }
    EXPECT_EQ(unseen, 0u);
}

TEST(Checksum, zeros_of_different_length_differ) {
    const std::vector<std::byte> zeros(128);
    EXPECT_NE(checksum(Bytes(zeros).first(64)), checksum(zeros));
}

} // namespace
} // namespace kumi::base
